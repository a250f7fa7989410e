"""What a cycle decided, as values. The edge turns them into effects; tests compare them."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import TypeVar, overload

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.engine.rules import Reason
from pumice.scheduler.framework.alike import Member, filled
from pumice.scheduler.framework.containment import Failure
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.resources import EPSILON, Mask
from pumice.scheduler.model.task import Task

T = TypeVar("T")


class Bind(Struct, frozen=True):
    """Put a pod on a node. `annotations` are to be written with it. `bound_by`: the extender that has bound it already."""

    task: Task
    node: str
    annotations: dict[str, str]
    bound_by: str = ""


class Evict(Struct, frozen=True):
    """Delete a pod, in favour of a pod or PodGroup ("namespace/name"; empty if of nobody)."""

    task: Task
    node: str
    beneficiary: str
    action: str
    permitted_by: tuple[str, ...] = ()  #: plugins that have a say on victims of this action


class Pipelined(Struct, frozen=True):
    """A pod waits for room on a node that is being released."""

    task: Task
    node: str


class GroupCondition(Struct, frozen=True):
    """A PodGroup condition with status True."""

    type: str
    reason: str
    message: str


class GroupStatus(Struct, frozen=True):
    """A PodGroup as the cycle leaves it."""

    job: Job
    phase: str
    condition: GroupCondition | None
    hypernode: str = ""  #: that its tasks occupy, for the annotation volcano.sh/job-allocated-hypernode; empty for none


class Waiting(Struct, frozen=True):
    """Why a pod is still pending."""

    task: Task
    reason: str
    message: str


class GroupEvent(Struct, frozen=True):
    """Something a person should read, on a PodGroup."""

    job: Job
    type: str
    reason: str
    message: str


class MadeWhenRead(Sequence[T]):
    """So many values, which cost nothing until somebody looks."""

    def __init__(self, count: int, make: Callable[[], list[T]]) -> None:
        self._count = count
        self._make = make

    @cached_property
    def _made(self) -> list[T]:
        return self._make()

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._made[index]

    def __iter__(self) -> Iterator[T]:
        return iter(self._made)

    def __eq__(self, other: object) -> bool:
        return list(self) == other

    __hash__ = None  # type: ignore[assignment]


class Standing(Struct, frozen=True):
    """How a job stands, and those that are like it, whose names go into the blanks of texts."""

    members: list[Member]
    phase: str
    condition: GroupCondition | None
    hypernode: str
    pods: list[tuple[int, str, str]]  #: number of each that waits, reason and message
    nominated: list[tuple[int, str]]  #: number of each with room made for it in vain, and where

    @property
    def words(self) -> Hashable:
        """All that is told of the jobs but their names, and what they have running."""
        counts = self.members[0].job.counts.values()
        return self.phase, self.condition, self.hypernode, tuple(self.pods), tuple(self.nominated), tuple(counts)

    def group(self, member: Member) -> GroupStatus:
        condition = self.condition
        if condition is not None:
            condition = replace(condition, message=filled(condition.message, member.tasks))
        return GroupStatus(member.job, self.phase, condition, self.hypernode)

    def waiting(self, member: Member) -> list[Waiting]:
        """What is told of its pods that wait."""
        return [self._of(pod, member) for pod in self.pods]

    def last_word(self, member: Member) -> Waiting | None:
        """What is told of the last of them."""
        return self._of(self.pods[-1], member) if self.pods else None

    def _of(self, pod: tuple[int, str, str], member: Member) -> Waiting:
        number, reason, message = pod
        return Waiting(member.tasks[number], reason, filled(message, member.tasks))


_age = attrgetter("created")


class Conclusion(Struct, frozen=True):
    """How all jobs stand, and other pods that wait."""

    standings: list[Standing]
    refused: list[Waiting]
    stranded: list[Waiting]

    def of(self, uids: Container[str]) -> Conclusion:
        """Without other jobs."""
        return replace(self, standings=[standing for standing in self.standings if standing.members[0].uid in uids])

    def groups(self) -> Sequence[GroupStatus]:
        """What is told of each job, by age."""
        count = sum(len(standing.members) for standing in self.standings)
        return MadeWhenRead(count, lambda: [standing.group(member) for member, standing in self._by_age()])

    def waiting(self) -> Sequence[Waiting]:
        """Why each pod waits: those that were tried alone, those of jobs by age, those that nobody looks at."""
        count = sum(len(standing.members) * len(standing.pods) for standing in self.standings)
        return MadeWhenRead(len(self.refused) + count + len(self.stranded), self._waiting)

    def _waiting(self) -> list[Waiting]:
        made = [waiting for member, standing in self._by_age() for waiting in standing.waiting(member)]
        return [*self.refused, *made, *self.stranded]

    def last_word(self, job: Job) -> Waiting | None:
        """What is told of the last of the job's pods that waits."""
        for standing in self.standings:
            members = standing.members
            for place in range(bisect_left(members, job.created, key=_age), len(members)):
                if members[place].job is job:
                    return standing.last_word(members[place])
                if members[place].created != job.created:
                    break
        return None

    def _by_age(self) -> list[tuple[Member, Standing]]:
        return sorted((member, standing) for standing in self.standings for member in standing.members)


class Decisions(Struct):
    binds: list[Bind] = field(default_factory=list)
    evictions: list[Evict] = field(default_factory=list)
    pipelined: list[Pipelined] = field(default_factory=list)
    ungated: dict[str, Task] = field(default_factory=dict)  #: by uid: pods whose queue has room; its gate is to be taken from them
    nominations: dict[Task, str] = field(default_factory=dict)  #: nodes with room made, or about to be made, for a pod; "" takes one back
    groups: Sequence[GroupStatus] = field(default_factory=list)
    waiting: Sequence[Waiting] = field(default_factory=list)
    conclusion: Conclusion | None = None  #: what the two are made of
    events: list[GroupEvent] = field(default_factory=list)
    failures: dict[Failure, None] = field(default_factory=dict)  #: of plugins, in the order they were met
    again_at: float = inf  #: when pods that are held back now may go

    def tell(self, conclusion: Conclusion) -> None:
        """From here on this is what is told of jobs and pods."""
        self.conclusion, self.groups, self.waiting = conclusion, conclusion.groups(), conclusion.waiting()


# Why a task has no node: counts per reason, and the sentence made of them.


class Shortage(Struct, frozen=True):
    """What a queue, or the cluster, has not for a task or a job, in one resource."""

    queue: str  #: empty for the cluster
    column: int
    asked: float
    held: float  #: or promised
    allowed: float

    @property
    def short(self) -> float:
        return self.asked + self.held - self.allowed


class FitErrors:
    """The refusals of one task's last try. `final` marks rows that no eviction would open."""

    def __init__(self, nodes: int, counts: Counter[str], final: Mask) -> None:
        self.nodes = nodes
        self.counts = counts
        self.final = final

    def __str__(self) -> str:
        reasons = sorted(f"{count} {text}" for text, count in self.counts.items())
        return f"0/{self.nodes} nodes are unavailable: {', '.join(reasons)}." if reasons else "all nodes are unavailable"


def everywhere(evaluation: Evaluation, reason: Reason) -> FitErrors:
    """One reason for all nodes."""
    n = evaluation.table.count
    return FitErrors(n, Counter({reason.text: n}), np.full(len(evaluation.table), reason.final))


def explain(evaluation: Evaluation, among: Mask | None = None) -> FitErrors:
    """What refuses the task on each node: first its resources, then the filters in order until a reason that is final."""
    if evaluation.rejected is not None:
        return everywhere(evaluation, evaluation.rejected)
    table, template = evaluation.table, evaluation.template
    counts: Counter[str] = Counter()
    active = table.alive.copy() if among is None else table.alive & among
    nodes = int(np.count_nonzero(active))
    for column, amount in template.needs:
        short = active & ~(table.future_idle_in(column) > amount - EPSILON)
        counts[f"Insufficient {table.dimensions.names[column]}"] += int(np.count_nonzero(short))
        active &= ~short
    final = np.zeros(len(table), bool)
    for refused in evaluation.refusals():
        hits = active & refused.where
        counts[refused.reason.text] += int(np.count_nonzero(hits))
        if refused.reason.final:
            active &= ~hits
            final |= hits
    return FitErrors(nodes, +counts, final)
