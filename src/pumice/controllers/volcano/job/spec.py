"""The fields of a Job, with the defaults that admission writes, so that a Job without these defaults reads the same.

Every function here reads only the Job object; none looks at pods.
"""

from pumice.api import Object, name_of, spec_of, status_of
from pumice.api.defaults import DEFAULT_QUEUE

MAX_RETRY = 3
MOST_REPLICAS = 100_000  #: the most replicas that a task may have


def tasks(job: Object) -> list[Object]:
    return spec_of(job).get("tasks") or []


def task_named(job: Object, name: str) -> Object | None:
    return next((task for task in tasks(job) if task_name(job, task) == name), None)


def task_name(job: Object, task: Object) -> str:
    return str(task.get("name") or f"default{tasks(job).index(task)}")


def replicas(task: Object) -> int:
    return min(int(task.get("replicas") or 0), MOST_REPLICAS)


def task_min_available(task: Object) -> int:
    stated = task.get("minAvailable")
    return replicas(task) if stated is None else int(stated)


def partition_size(task: Object) -> int:
    """The number of pods in a partition; 0 if the task is not partitioned."""
    return int((task.get("partitionPolicy") or {}).get("partitionSize") or 0)


def total_replicas(job: Object) -> int:
    return sum(replicas(task) for task in tasks(job))


def total_min_available(job: Object) -> int:
    return sum(task_min_available(task) for task in tasks(job))


def min_available(job: Object) -> int:
    return int(spec_of(job).get("minAvailable") or 0)


def min_success(job: Object) -> int | None:
    stated = spec_of(job).get("minSuccess")
    return None if stated is None else int(stated)


def max_retry(job: Object) -> int:
    return int(spec_of(job).get("maxRetry") or MAX_RETRY)


def queue_name(job: Object) -> str:
    return str(spec_of(job).get("queue") or DEFAULT_QUEUE)


def pod_name(job: Object, task: str, index: int) -> str:
    return f"{name_of(job)}-{task}-{index}"


def phase_of(job: Object) -> str:
    return str((status_of(job).get("state") or {}).get("phase") or "")


def version_of(job: Object) -> int:
    return int(status_of(job).get("version") or 0)


def retry_count(job: Object) -> int:
    return int(status_of(job).get("retryCount") or 0)
