"""What a workload is made of: jobs with the pods they consist of, and what the file told beside them.

Readers (`formats/`) give these, in the order of submission; the simulated cluster makes Kubernetes objects of them when their time has
come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pumice.api.annotations import HOSTNAME
from pumice.api.core import Node, NodeSpec, NodeStatus
from pumice.api.meta import DEFAULT_QUEUE, Metadata, Wire
from pumice.api.pod import Container, PodSpec, ResourceRequirements
from pumice.api.quantity import quantity
from pumice.api.volcano import PodGroup
from pumice.simulate.faults import NO_FAULTS, Faults

GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """Equal pods of a job. Readers give one and the same to jobs that are alike, so that what follows from it is found once."""

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
    estimate: float | None = None  #: what the scheduler is told of `run`; None for nothing
    minimum: int | None = None  #: pods without which it does not start; None for all
    checkpoint: float = 0.0  #: every so many seconds of work are safe; 0 for never
    namespace: str = "default"
    group: PodGroup | None = None  #: its own, where it is known; else one is made
    scheduler: str = ""  #: whose it is; empty for that of the policy
    slow: Mapping[int, float] | None = None  #: pods by number that run so many times as long

    @property
    def pods(self) -> int:
        return sum(role.count for role in self.roles)

    @property
    def gang(self) -> int:
        return self.pods if self.minimum is None else self.minimum

    @property
    def restarts_whole(self) -> bool:
        """Whether it cannot go on without one of its pods, so that all begin again."""
        return self.minimum is None


@dataclass
class Workload:
    """One source of jobs."""

    name: str
    jobs: Iterator[Work]
    nodes: list[Node] = field(default_factory=list)  #: the cluster that it ran on, if it tells
    objects: list[tuple[str, Wire]] = field(default_factory=list)  #: queues, priority classes and their like
    began: float | None = None  #: seconds since 1970 at its 0
    left_out: Counter[str] = field(default_factory=Counter)  #: why jobs cannot run, and how many
    faults: Faults = NO_FAULTS  #: what goes wrong besides


@lru_cache(maxsize=4096)
def _spec(requests: tuple[tuple[str, str], ...]) -> PodSpec:
    asked = {name: quantity(amount) for name, amount in requests}
    return PodSpec(containers=[Container(name="main", resources=ResourceRequirements(requests=asked))])


@lru_cache(maxsize=4096)
def _role(count: int, requests: tuple[tuple[str, str], ...]) -> Role:
    return Role(count, _spec(requests))


def role(count: int, requests: Mapping[str, str | int]) -> Role:
    """Equal pods that ask for this; equal ones are one object."""
    return _role(count, tuple((name, str(amount)) for name, amount in requests.items()))


def node(name: str, allocatable: Mapping[str, str | int], labels: Mapping[str, str] | None = None) -> Node:
    amounts = {"pods": quantity(100_000)} | {resource: quantity(amount) for resource, amount in allocatable.items()}
    return Node(Metadata(name=name, labels={HOSTNAME: name} | dict(labels or {})), NodeSpec(), NodeStatus(allocatable=amounts))


def in_order(jobs: Iterable[Work]) -> Iterator[Work]:
    """By submission; equal ones as they stand in the file."""
    return iter(sorted(jobs, key=lambda work: work.submit))
