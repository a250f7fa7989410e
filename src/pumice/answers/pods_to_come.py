"""The pods that a job's controller will make, and that do not exist yet. Answers are rehearsed with them.

Volcano's controller makes the pods of a Job once its PodGroup is admitted. Which pods these are follows from the Job, if the state was read
together with its Jobs (`inputs/known_objects.py`); else from what its PodGroup says: how many of each role, and what all of them request.
The pods of other workloads follow from their template.
"""

from collections.abc import Iterable
from typing import cast

from msgspec.structs import replace

from pumice.answers.completed_objects import newcomers
from pumice.answers.trial_cluster import TrialCluster
from pumice.api import Object, name_of, namespace_of, spec_of
from pumice.api.annotations import GROUP_NAME, TASK_SPEC
from pumice.api.defaults import SCHEDULER_NAME
from pumice.api.json_objects import annotations_of, controlled_by, merged
from pumice.api.kinds import kind_of
from pumice.api.meta import Metadata, Wire
from pumice.api.pod import Pod
from pumice.api.quantity import format_milli
from pumice.api.structs import convert
from pumice.api.volcano import PodGroup
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec as job_spec
from pumice.controllers.volcano.job.pods import make_pod, may_start
from pumice.controllers.volcano.job.volumes import mount
from pumice.controllers.volcano.podgroup import PodGroups, group_name
from pumice.inputs.known_objects import owner_of
from pumice.scheduler.model import Cluster, Job, Task, status
from pumice.simulate.workload import Role, role

MARK = "promised/"  #: the uids of promised pods begin with it
OF_QUOTAS = ("requests.", "limits.", "count/")  #: beginnings of names under which quotas count what the other names say


def is_promised(task: Task) -> bool:
    return task.uid.startswith(MARK)


def promise(trial: TrialCluster, job: Job) -> None:
    """Let the pods exist that the job's controller will make once the job is admitted."""
    for kind, pod in newcomers([("Pod", pod) for pod in _to_come(trial.cluster, job)], trial.cluster):
        trial.put(kind, pod)


def promise_workload(trial: TrialCluster, workload: Object, count: int) -> None:
    """Let so many pods exist that the controller of a Job of Kubernetes, a Deployment or the like will make, and their PodGroup."""
    space, template = namespace_of(workload), spec_of(workload)["template"]
    made: list[tuple[str, Wire]] = []
    for number in range(count):
        name = f"{name_of(workload)}-{number}"
        own = {"name": name, "namespace": space, "uid": f"{MARK}{space}/{name}", "ownerReferences": [controlled_by(workload)]}
        pod: Object = {"metadata": merged(template.get("metadata") or {}, own), "spec": spec_of(template)}
        if spec_of(pod).get("schedulerName") == SCHEDULER_NAME and not annotations_of(pod).get(GROUP_NAME):
            if not made:
                made.append(("PodGroup", convert(PodGroups().build(pod, cast("Lister", _Owner(workload))), PodGroup)))
            pod["metadata"]["annotations"] = {**annotations_of(pod), GROUP_NAME: group_name(pod)}
        made.append(("Pod", convert(pod, Pod)))
    for kind, item in newcomers(made, trial.cluster):
        trial.put(kind, item)


class _Owner:
    """As much of a Lister as a PodGroup needs to be made: the owner of its pods."""

    def __init__(self, workload: Object) -> None:
        self._workload = workload

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._workload if kind == kind_of(self._workload) else None


def _to_come(cluster: Cluster, job: Job) -> list[Wire]:
    found = owner_of(cluster, job)
    if found is not None:
        return [pod for pod in _by_job(cluster, found, job) if f"{job.namespace}/{pod.metadata.name}" not in cluster.tasks]
    return [] if job.tasks or not job.min_resources.any() or _is_for_others(cluster, job) else _by_group(cluster, job)


def _by_job(cluster: Cluster, found: Object, job: Job) -> Iterable[Pod]:
    """The pods of the Job's tasks that may have pods now: of tasks that wait for no other task."""
    held = _held(found, job)
    for part in job_spec.tasks(found):
        for index in range(job_spec.replicas(part)) if job_spec.task_name(found, part) not in held else ():
            pod = make_pod(found, part, index, job.name)
            mount(pod, found)
            pod["metadata"]["namespace"] = job.namespace
            pod["metadata"]["uid"] = f"{MARK}{job.namespace}/{name_of(pod)}"
            yield convert(pod, Pod)


def held_tasks(cluster: Cluster, job: Job) -> dict[str, list[str]]:
    """The tasks of the job's Job that get no pods yet, each with those that it depends on."""
    found = owner_of(cluster, job)
    return _held(found, job) if found is not None else {}


def _held(found: Object, job: Job) -> dict[str, list[str]]:
    present: dict[str, dict[str, Object]] = {}
    for task in job.tasks.values():
        phase = "Running" if task.status == status.RUNNING else "Succeeded" if task.status == status.SUCCEEDED else "Pending"
        present.setdefault(task.role, {})[task.name] = {"status": {"phase": phase}}
    parts = {job_spec.task_name(found, part): part for part in job_spec.tasks(found)}
    return {name: part["dependsOn"].get("name") or [] for name, part in parts.items() if not may_start(part, parts, present)}


def roles_to_come(cluster: Cluster, job: Job) -> tuple[Role, ...]:
    """The pods of a job of which none exists yet, as roles."""
    found = owner_of(cluster, job)
    if found is None:
        return _roles_of(job)
    firsts = ((job_spec.replicas(part), convert(make_pod(found, part, 0, job.name), Pod)) for part in job_spec.tasks(found))
    return tuple(
        Role(count, replace(pod.spec, scheduler_name=None), _without_group(pod.metadata.annotations), pod.metadata.labels)
        for count, pod in firsts
        if count
    )


def _without_group(annotations: dict[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (annotations or {}).items() if key != GROUP_NAME}


def _roles_of(job: Job) -> tuple[Role, ...]:
    """The pods of a job in the roles that its PodGroup counts, each with an equal part of the requests."""
    count = max(1, job.min_member)
    spec = job.group.spec if job.group is not None else None
    least = (spec.min_resources if spec is not None else None) or {}
    asked = {name: amount for name, amount in least.items() if not name.startswith(OF_QUOTAS) and name != "pods"}
    equal = role(count, {name: format_milli(amount.milli // count) for name, amount in asked.items()})
    members = (spec.min_task_member if spec is not None else None) or {}
    return tuple(Role(number, equal.spec, {TASK_SPEC: name}) for name, number in members.items() if number) or (equal,)


def _by_group(cluster: Cluster, job: Job) -> list[Wire]:
    made: list[Wire] = []
    priority_class = job.group.spec.priority_class_name if job.group is not None else None
    scheduler = SCHEDULER_NAME if SCHEDULER_NAME in cluster.schedulers else min(cluster.schedulers)
    for part in _roles_of(job):
        notes = {**(part.annotations or {}), GROUP_NAME: job.name}
        asked = replace(part.spec, scheduler_name=scheduler, priority_class_name=priority_class)
        for _ in range(part.count):
            name = f"{job.name}-{len(made)}"
            made.append(Pod(Metadata(name, job.namespace, f"{MARK}{job.namespace}/{name}", annotations=notes), asked))
    return made


def _is_for_others(cluster: Cluster, job: Job) -> bool:
    """Whether the job has pods that ask for a scheduler which is not served here."""
    return any(task.namespace == job.namespace and task.annotations.get(GROUP_NAME) == job.name for task in cluster.tasks.values())
