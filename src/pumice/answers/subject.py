"""What a question is about: `job/x`, `pod/x`, `podgroup/x`, `queue/x`, `node/x`, with a namespace before the name where there is one."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from pumice.api import InputError, did_you_mean
from pumice.api.annotations import TEMPLATE_HASH
from pumice.scheduler.model import Cluster, Job, Task, status

KINDS = ("job", "pod", "podgroup", "queue", "node")
NAMESPACED = ("job", "pod", "podgroup")
SHORT = {
    "jobs": "job",
    "vcjob": "job",
    "vj": "job",
    "pods": "pod",
    "po": "pod",
    "pg": "podgroup",
    "podgroups": "podgroup",
    "queues": "queue",
}
SHORT |= {"q": "queue", "nodes": "node", "no": "node"}
OWNERS = {
    "deploy": "deployment",
    "sts": "statefulset",
    "rs": "replicaset",
    "ds": "daemonset",
}  #: they are jobs here, whose pods may have no PodGroup
OWNERS |= {each: each for each in OWNERS.values()} | {f"{each}s": each for each in OWNERS.values()}
SCALED = ("ReplicaSet", "StatefulSet", "DaemonSet")  #: kinds of owners that make pods anew when their template changes
NAMED_JOB = ("volcano.sh/job-name", "batch.kubernetes.io/job-name", "job-name")  #: labels and annotations that name a pod's job


class Subject(Struct, frozen=True):
    kind: str
    key: str  #: as the cluster knows it: a name, or namespace/name
    asked: str = ""  #: the name that users know; empty if it is the key
    owner: str = ""  #: the kind that users know; empty if it is the kind

    def __str__(self) -> str:
        return f"{self.owner or self.kind}/{(self.asked or self.key).removeprefix('default/')}"


class WaitingPart(Struct, frozen=True):
    """The waiting part of a subject: of a job, or of some pods."""

    job: Job | None
    tasks: list[Task]  #: the pods that wait
    members: frozenset[Task]  #: the same pods, for lookups

    @property
    def name(self) -> str:
        """The name that changes use: that of a PodGroup, or of the workload whose template is to be changed, or of a pod."""
        if self.job is not None and (self.job.tasks or self.job.group is not None):
            return f"podgroup/{self.job.uid}"
        task = self.tasks[0]
        kind, _, owner = task.owner.partition("/")
        if kind not in SCALED:
            return f"pod/{task.key}"
        name = named_by_user(kind, owner, task)
        return f"{kind.lower() if name == owner else 'deployment'}/{task.namespace}/{name}"


def as_they_came(tasks: Iterable[Task]) -> list[Task]:
    """Pods in the order in which they came: a state in which something was undone may have them in another one."""
    return sorted(tasks, key=lambda task: task.number)


def waiter(job: Job | None, tasks: Iterable[Task]) -> WaitingPart:
    waits = [task for task in tasks if task.status & (status.PENDING | status.PIPELINED)]
    return WaitingPart(job, waits, frozenset(waits))


def find(cluster: Cluster, text: str, namespace: str = "default", kinds: tuple[str, ...] = KINDS) -> Subject:
    """The subject that `text` names: KIND/NAME, KIND/NAMESPACE/NAME, or NAMESPACE/NAME of a job or a pod. Raises InputError."""
    kind, slash, name = text.partition("/")
    owner = OWNERS.get(kind.lower(), "")
    kind = "job" if owner else SHORT.get(kind.lower(), kind.lower())
    is_named = bool(slash and name.rpartition("/")[2])
    if is_named and kind not in KINDS and "/" not in name:
        return _by_name(cluster, text)
    if not is_named or kind not in kinds:
        listed = ", ".join(f"{kind}/NAME" for kind in kinds)
        raise InputError(f'"{text}" is no subject; write one of {listed}, or NAMESPACE/NAME, or job/NAMESPACE/NAME')
    if kind in ("queue", "node"):
        known: Mapping[str, object] = cluster.queues if kind == "queue" else cluster.nodes.rows
        return _known(Subject(kind, name), known)
    key = name if "/" in name else f"{namespace}/{name}"
    if kind == "job":
        return Subject("job", _job_key(cluster, key), key, owner)
    return _known(Subject(kind, key), cluster.tasks if kind == "pod" else cluster.jobs)


def split(text: str) -> Subject:
    kind, _, name = text.partition("/")
    owner = OWNERS.get(kind.lower(), "")
    known = SHORT.get(kind.lower(), kind.lower())
    if owner or known in KINDS:
        return Subject("job" if owner else known, name if "/" in name else f"default/{name}", owner=owner)
    return Subject("job", text)


def _by_name(cluster: Cluster, key: str) -> Subject:
    """The job of this namespace and name, or else the pod. Raises InputError."""
    if key in cluster.tasks:
        return Subject("pod", key)
    return Subject("job", _job_key(cluster, key), key)


def subject_of(job: Job) -> Subject:
    """A PodGroup as a subject: as the job to which it belongs, if there is one."""
    owner = job.group.metadata.controller if job.group is not None else None
    if owner is None or owner.kind != "Job":
        return Subject("podgroup", job.uid)
    return Subject("job", job.uid, f"{job.namespace}/{owner.name}")


def _known(subject: Subject, known: Mapping[str, object]) -> Subject:
    if subject.key not in known:
        raise InputError(f"there is no {subject.kind} {subject.key}{did_you_mean(subject.key, known)}")
    return subject


def _job_key(cluster: Cluster, key: str) -> str:
    """The key under which a job is known: its own if a PodGroup or pods have it, else that of the PodGroup it owns. Raises InputError."""
    if key in cluster.jobs:
        return key
    namespace, _, name = key.partition("/")
    for job in cluster.jobs.values():
        owner = job.group.metadata.controller if job.group is not None else None
        if job.namespace == namespace and owner is not None:
            first = next(iter(job.tasks.values()), None)
            if name in (owner.name, named_by_user(owner.kind, owner.name, first)):
                return job.uid
    if tasks_of_job(cluster, key):
        return key
    names = [*cluster.jobs, *(f"{task.namespace}/{named}" for task in cluster.tasks.values() if (named := _job_of(task)))]
    raise InputError(f"there is no job {key}{did_you_mean(key, names)}")


def tasks_of_job(cluster: Cluster, key: str) -> list[Task]:
    """The pods that name a job in their labels or annotations, or whose owner has this name."""
    namespace, _, name = key.partition("/")
    return [task for task in cluster.tasks.values() if task.namespace == namespace and _job_of(task) == name]


def _job_of(task: Task) -> str:
    named = next((pairs[key] for key in NAMED_JOB for pairs in (task.labels, task.annotations) if key in pairs), "")
    kind, _, owner = task.owner.partition("/")
    return named or ("" if kind == "Node" else named_by_user(kind, owner, task))


def named_by_user(kind: str, name: str, task: Task | None) -> str:
    """The name of an owner of pods. The pods of a Deployment are owned by a ReplicaSet, whose name ends with the hash of the template."""
    ending = f"-{task.labels.get(TEMPLATE_HASH)}" if task is not None and kind == "ReplicaSet" else ""
    return name.removesuffix(ending)


_NAMED = re.compile(r"(?<![\w./-])((?:podgroup|pod|deployment|replicaset|statefulset|daemonset)/)?([\w.-]+/[\w.-]+)(?![\w/])")


def called(cluster: Cluster, text: str) -> str:
    """The text with the names that users gave their jobs, in place of those of PodGroups that were made for them."""

    def of_user(found: re.Match[str]) -> str:
        job = cluster.jobs.get(found[2]) if found[1] != "pod/" else None
        owner = job.group.metadata.controller if job is not None and job.group is not None else None
        if job is not None and owner is not None:
            return f"{owner.kind.lower()}/{_brief(f'{job.namespace}/{owner.name}')}"
        return f"{found[1]}{_brief(found[2])}" if found[1] else found[0]

    return _NAMED.sub(of_user, text)


def _brief(key: str) -> str:
    return key.removeprefix("default/")


def owner_of(task: Task) -> str:
    """The name of a pod's PodGroup, or of the pod itself if it has none, as changes use it."""
    job = task.job
    return f"podgroup/{job.uid}" if job is not None and job.group is not None else f"pod/{task.key}"


def who_waits(cluster: Cluster, subject: Subject) -> WaitingPart:
    """The waiting pods of a job, a PodGroup or a pod."""
    if subject.kind == "pod":
        task = cluster.tasks[subject.key]
        return waiter(task.job, [task])
    job = cluster.jobs.get(subject.key)
    if job is not None:
        return waiter(job, job.tasks.values())
    tasks = tasks_of_job(cluster, subject.key)
    return waiter(tasks[0].job if tasks else None, tasks)
