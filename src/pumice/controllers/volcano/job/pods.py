"""The pods of a job: their names, their labels and annotations, and whether a task may have pods now.

A pod carries the job's version (events of older pods are ignored) and its place (task, index, partition), as annotations for
the scheduler and as labels for selectors. A task that depends on other tasks gets no pods before these are ready.
"""

from collections.abc import Mapping, Sequence

from pumice.api import Object, annotations as key, kinds, name_of, namespace_of, spec_of, status_of
from pumice.api.defaults import SCHEDULER_NAME
from pumice.api.json_objects import annotations_of, controlled_by, copied, labels_of
from pumice.controllers.volcano.job import spec

FROM_JOB = (key.PREEMPTABLE, key.COOLDOWN_TIME, key.REVOCABLE_ZONE, key.JDB_MIN_AVAILABLE, key.JDB_MAX_UNAVAILABLE)
LABELS_FROM_JOB = (key.PREEMPTABLE, key.COOLDOWN_TIME)


def make_pod(job: Object, task: Object, index: int, group: str, forwarded: bool = False) -> Object:
    """The pod with this index of a task, before volumes and plugins are added."""
    template = copied(task.get("template") or {})
    task_name = spec.task_name(job, task)
    pod = kinds.new(kinds.POD, namespace_of(job), spec.pod_name(job, task_name, index), spec=template.get("spec") or {})
    meta = template.get("metadata") or {}
    labels, notes = _labels(job, task, task_name, index), _annotations(job, task, task_name, index, group)
    if forwarded:
        labels[key.JOB_FORWARDING] = notes[key.JOB_FORWARDING] = "true"
    pod["metadata"]["labels"] = {**(meta.get("labels") or {}), **labels}
    pod["metadata"]["annotations"] = {**(meta.get("annotations") or {}), **notes}
    pod["metadata"]["ownerReferences"] = [controlled_by(job)]
    pod["spec"]["schedulerName"] = pod["spec"].get("schedulerName") or spec_of(job).get("schedulerName") or SCHEDULER_NAME
    priority_class = pod["spec"].get("priorityClassName") or spec_of(job).get("priorityClassName")
    if priority_class:
        pod["spec"]["priorityClassName"] = priority_class
    return pod


def _labels(job: Object, task: Object, task_name: str, index: int) -> dict[str, str]:
    labels = {
        key.JOB_NAME: name_of(job),
        key.TASK_SPEC: task_name,
        key.TASK_INDEX: str(index),
        key.JOB_NAMESPACE: namespace_of(job),
        key.JOB_QUEUE: spec.queue_name(job),
        **{name: labels_of(job)[name] for name in LABELS_FROM_JOB if name in labels_of(job)},
    }
    if spec.partition_size(task):
        labels[key.PARTITION_ID] = str(index // spec.partition_size(task))
    return labels


def _annotations(job: Object, task: Object, task_name: str, index: int, group: str) -> dict[str, str]:
    notes = {
        key.TASK_SPEC: task_name,
        key.TASK_INDEX: str(index),
        key.GROUP_NAME: group,
        key.JOB_NAME: name_of(job),
        key.JOB_QUEUE: spec.queue_name(job),
        key.JOB_VERSION: str(spec.version_of(job)),
        key.JOB_RETRY_COUNT: str(spec.retry_count(job)),
        key.TEMPLATE_UID: f"{name_of(job)}-{task_name}",
        **{name: annotations_of(job)[name] for name in FROM_JOB if name in annotations_of(job)},
    }
    if policy := task.get("topologyPolicy"):
        notes[key.NUMA_POLICY] = policy
    return notes


def by_task(pods: Sequence[Object]) -> dict[str, dict[str, Object]]:
    """The pods by the name of their task, then by their own name."""
    found: dict[str, dict[str, Object]] = {}
    for pod in pods:
        found.setdefault(annotations_of(pod).get(key.TASK_SPEC, ""), {})[name_of(pod)] = pod
    return found


def may_start(task: Object, tasks: Mapping[str, Object], pods: Mapping[str, Mapping[str, Object]]) -> bool:
    """Whether those of the job's tasks that this task depends on are ready. Tasks and pods are given by the name of the task."""
    depends = task.get("dependsOn") or {}
    names = depends.get("name") or []
    ready = [_ready(tasks.get(name), pods.get(name, {})) for name in names]
    return any(ready) if depends.get("iteration") == "any" and len(names) > 1 else all(ready)


def _ready(task: Object | None, pods: Mapping[str, Object]) -> bool:
    if task is None or task.get("minAvailable") is None:
        return True
    return sum(_serves(pod) for pod in pods.values()) >= int(task["minAvailable"])


def _serves(pod: Object) -> bool:
    """Whether a pod has succeeded, or runs with all its containers ready."""
    phase = status_of(pod).get("phase")
    if phase == "Succeeded":
        return True
    return phase == "Running" and all(each.get("ready") for each in status_of(pod).get("containerStatuses") or ())
