"""The parts of a workload: jobs with their pods, and what else the workload's file contains.

Readers (`formats/`) yield jobs in the order of submission. The simulated cluster makes Kubernetes objects of a job when its time has come.

`group_of` and `pods_of` make the Kubernetes objects of a job that a scheduler sees: a PodGroup and its pods.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from operator import length_hint
from typing import NamedTuple

from msgspec.structs import replace

from pumice.api import InputError
from pumice.api.annotations import CHECKPOINT, ESTIMATE, GROUP_NAME, HOSTNAME, USER
from pumice.api.core import Node, NodeSpec, NodeStatus, PriorityClass
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.meta import Metadata, OwnerReference, Wire
from pumice.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from pumice.api.quantity import Quantity, format_milli, is_gpu, quantity
from pumice.api.volcano import PodGroup, PodGroupSpec, PodGroupStatus, Queue, QueueSpec, QueueStatus
from pumice.scheduler.model.pod_request import requested_by_containers
from pumice.simulate.fault_settings import NO_FAULTS, Faults

GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """Equal pods of a job. Readers give the same object to all jobs that are alike, so that what follows from it is computed once."""

    count: int
    spec: PodSpec
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


@dataclass(slots=True)
class Work:
    """A job of the workload."""

    name: str
    submit: float
    run: float  #: seconds that each of its pods runs
    roles: tuple[Role, ...]
    queue: str = DEFAULT_QUEUE
    user: str = ""
    priority: int = 0
    estimate: float | None = None  #: the run time that the scheduler expects; None if it knows none
    minimum: int | None = None  #: pods without which it does not start; None for all
    checkpoint: float = 0.0  #: seconds of work between two checkpoints; 0 for no checkpoints
    namespace: str = "default"
    group: PodGroup | None = None  #: the job's PodGroup, where it is known; else one is made
    scheduler: str = ""  #: the schedulerName of its pods; empty for that of the policy
    slow: Mapping[int, float] | None = None  #: by number of the pod, how many times as long it runs
    measured: bool = True  #: whether it counts in the measures; series over time count every job

    @property
    def pods(self) -> int:
        return self.roles[0].count if len(self.roles) == 1 else sum(role.count for role in self.roles)

    def is_grouped(self, usually: bool) -> bool:
        """Whether it has a PodGroup: `usually` is for jobs of the scheduler that is simulated."""
        return self.group is not None if self.scheduler else usually

    @property
    def gang(self) -> int:
        return self.pods if self.minimum is None else self.minimum

    @property
    def restarts_whole(self) -> bool:
        """Whether the job cannot go on without one of its pods, so that all of them begin again."""
        return self.minimum is None


@dataclass
class Workload:
    """One source of jobs."""

    name: str
    jobs: Iterator[Work]
    nodes: list[Node] = field(default_factory=list)  #: the nodes that it ran on, if they are known
    objects: list[tuple[str, Wire]] = field(default_factory=list)  #: queues, priority classes and similar objects
    began: float | None = None  #: seconds since 1970 at the workload's time 0
    left_out: Counter[str] = field(default_factory=Counter)  #: reasons why jobs cannot run, each with its number of jobs
    faults: Faults = NO_FAULTS  #: what goes wrong in the simulation
    note: str = ""  #: how its jobs were read, where a reader could expect otherwise

    def __post_init__(self) -> None:
        self.jobs = _Bounded(self.name, self.jobs)


MOST_PODS = 1_000_000  #: of one job: ten times what the largest supported cluster runs


class _Bounded(Iterator[Work]):
    """The jobs of a workload. Raises InputError for a job that no memory holds."""

    def __init__(self, where: str, jobs: Iterator[Work]) -> None:
        self._where, self._jobs = where, jobs

    def __next__(self) -> Work:
        work = next(self._jobs)
        if work.pods > MOST_PODS:
            raise InputError(f'job "{work.name}" has {work.pods} pods; a job has at most {MOST_PODS}', where=self._where)
        return work

    def __length_hint__(self) -> int:
        return length_hint(self._jobs)


@lru_cache(maxsize=4096)
def _spec(requests: tuple[tuple[str, str], ...]) -> PodSpec:
    asked = {name: quantity(amount) for name, amount in requests}
    return PodSpec(containers=[Container(name="main", resources=ResourceRequirements(requests=asked))])


@lru_cache(maxsize=4096)
def _role(count: int, requests: tuple[tuple[str, str], ...]) -> Role:
    return Role(count, _spec(requests))


def role(count: int, requests: Mapping[str, str | int]) -> Role:
    """A role of `count` pods with these requests. Equal roles are one object."""
    return _role(count, tuple((name, str(amount)) for name, amount in requests.items()))


def node(name: str, allocatable: Mapping[str, str | int], labels: Mapping[str, str] | None = None) -> Node:
    amounts = {"pods": quantity(100_000)} | {resource: quantity(amount) for resource, amount in allocatable.items()}
    return Node(Metadata(name=name, labels={HOSTNAME: name} | dict(labels or {})), NodeSpec(), NodeStatus(allocatable=amounts))


def in_order(jobs: Iterable[Work]) -> Iterator[Work]:
    """The jobs by submission. Jobs of the same instant keep the order of the file."""
    return iter(sorted(jobs, key=lambda work: work.submit))


WAITING = PodStatus(phase="Pending")
NEW_GROUP = PodGroupStatus(phase="Pending")


class Amounts(NamedTuple):
    """The resources that are counted for each job: whole CPUs, bytes, whole GPUs."""

    cpu: float = 0.0
    memory: float = 0.0
    gpu: float = 0.0


def instant_text(seconds: float) -> str:
    """An instant as a creationTimestamp, more exact than an API server writes it, so that jobs keep the order in which they came."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def object_name(work: Work) -> str:
    """The name of a job's objects. Numbers get leading zeros, so that they sort by name as they do by number."""
    return f"job-{work.name:0>9}" if work.name.isdigit() else work.name


def group_of(work: Work, created: str, *, owned: bool = False) -> PodGroup:
    """The PodGroup of a job. `owned`: with an owner, which makes new pods in place of evicted ones."""
    name = object_name(work)
    owners = [OwnerReference(name, kind="Job", controller=True)] if owned else None
    annotations = {USER: work.user} if work.user else {}
    if work.estimate is not None:
        annotations[ESTIMATE] = f"{work.estimate:.6f}s"
    if work.checkpoint:
        annotations[CHECKPOINT] = f"{work.checkpoint:.6f}s"
    if work.group is not None:
        known = work.group.metadata
        annotations = {**(known.annotations or {}), **annotations}
        meta = replace(
            known,
            name=name,
            namespace=work.namespace,
            annotations=annotations,
            creation_timestamp=created,
            owner_references=known.owner_references or owners,
        )
        return replace(work.group, metadata=meta)
    meta = Metadata(name, work.namespace, annotations=annotations or None, creation_timestamp=created, owner_references=owners)
    return PodGroup(meta, _group_spec(work.roles, work.gang, work.queue, work.priority), NEW_GROUP)


@lru_cache(maxsize=4096)
def _group_spec(roles: tuple[Role, ...], gang: int, queue: str, priority: int) -> PodGroupSpec:
    return PodGroupSpec(
        min_member=gang,
        queue=queue,
        priority_class_name=class_name(priority) if priority else None,
        min_resources=least_resources(roles, gang),
    )


def class_name(priority: int) -> str:
    return f"priority-{priority}"


@lru_cache(maxsize=4096)
def least_resources(roles: tuple[Role, ...], gang: int) -> dict[str, Quantity]:
    """The minResources of a gang, as the job controller computes them: the requests of the first pods of its roles."""
    left, total = gang, dict[str, int]()
    for role in roles:
        count = min(left, role.count)
        left -= count
        for name, milli in requested_by_containers(role.spec).items():
            total[name] = total.get(name, 0) + milli * count
    return {name: quantity(format_milli(milli)) for name, milli in total.items()}


def pods_of(work: Work, created: str, scheduler: str, *, grouped: bool) -> list[Pod]:
    """The pods of a job, none of them on a node."""
    name, pods = object_name(work), list[Pod]()
    for role in work.roles:
        spec = _spec_of(role, scheduler, work.priority)
        annotations = {**(role.annotations or {}), GROUP_NAME: name} if grouped else role.annotations
        first = len(pods)
        pods += [
            Pod(Metadata(f"{name}-{index}", work.namespace, None, role.labels, annotations, created), spec, WAITING)
            for index in range(first, first + role.count)
        ]
    return pods


@lru_cache(maxsize=4096)
def _spec_of(role: Role, scheduler: str, priority: int) -> PodSpec:
    return replace(role.spec, scheduler_name=scheduler, priority=priority or role.spec.priority)


def queue(name: str, weight: int = 1) -> Queue:
    return Queue(Metadata(name), QueueSpec(weight=weight), QueueStatus(state="Open"))


def priority_class(priority: int) -> PriorityClass:
    return PriorityClass(Metadata(class_name(priority)), priority)


@lru_cache(maxsize=4096)
def total_of(roles: tuple[Role, ...]) -> Amounts:
    """The amounts that all pods of the roles request together."""
    return Amounts(*(sum(amounts_of(role)[index] * role.count for role in roles) for index in range(len(Amounts._fields))))


@lru_cache(maxsize=4096)
def amounts_of(role: Role) -> Amounts:
    """The amounts that one pod of a role requests."""
    asked = requested_by_containers(role.spec)
    gpus = sum(milli for name, milli in asked.items() if is_gpu(name)) + asked.get(GPU_MILLI, 0) / 1000
    return Amounts(asked.get("cpu", 0) / 1000, asked.get("memory", 0) / 1000, gpus / 1000)


GPU_MILLI = "alibabacloud.com/gpu-milli"  #: thousandths of GPU cards: a pod may request less than a whole card
