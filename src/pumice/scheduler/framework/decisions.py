"""The decisions of a cycle, as values. The callers of the cycle carry them out; tests compare them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import TypeVar, overload

from msgspec import Struct, field
from msgspec.structs import replace

from pumice.api.kube_pod_groups import NativePodGroup
from pumice.scheduler.framework.job_classes import Member, filled
from pumice.scheduler.framework.plugin_guard import Failure
from pumice.scheduler.framework.profiles import ExtenderSpec
from pumice.scheduler.model import Job, Task

T = TypeVar("T")
GATED = "SchedulingGated"  #: the reason of pods that are not tried


class Bind(Struct, frozen=True):
    """Bind a pod to a node. `annotations` are written to the pod with the bind. `binder`: the extender that is to bind it in our place."""

    task: Task
    node: str
    annotations: dict[str, str]
    binder: ExtenderSpec | None = None


class Evict(Struct, frozen=True):
    """Delete a pod, in favour of the pod or PodGroup `beneficiary` ("namespace/name"; empty if there is none)."""

    task: Task
    node: str
    beneficiary: str
    action: str
    permitted_by: tuple[str, ...] = ()  #: names of the plugins that let the pod go


class Pipelined(Struct, frozen=True):
    """A pod that waits for room on a node that is being released."""

    task: Task
    node: str


class GroupCondition(Struct, frozen=True):
    """A PodGroup condition with status True."""

    type: str
    reason: str
    message: str


#: the condition of a gang that is ready
GANG_READY = GroupCondition("Scheduled", "tasks in gang are ready to be scheduled", "")


class GroupStatus(Struct, frozen=True):
    """The status of a PodGroup after the cycle."""

    job: Job
    phase: str
    condition: GroupCondition | None
    hypernode: str = ""  #: the HyperNode of its tasks, for the annotation volcano.sh/job-allocated-hypernode; empty for none
    held_places: str = ""  #: for the annotation pumice.io/held-places; empty for none


class NativeGroupCondition(Struct, frozen=True):
    """The condition PodGroupInitiallyScheduled of Kubernetes' own PodGroup after the cycle."""

    group: NativePodGroup
    is_scheduled: bool
    reason: str
    message: str


class GroupTry(Struct, frozen=True):
    """What became of one try of Kubernetes' own group: scheduled, unschedulable, waiting_on_preemption or error."""

    profile: str
    result: str


class PreemptionTry(Struct, frozen=True):
    """What became of one search for victims, by kube-scheduler's rules. `result`: the code of its status."""

    preemptor: str  #: pod, podgroup or compositepodgroup
    result: str
    victims: int | None = None  #: how many pods were chosen; None if no choice was made
    disruptions: int = 0  #: how many of the units among them belong to groups
    violations: int = 0  #: of PodDisruptionBudgets


class PlacementTries(Struct, frozen=True):
    """The placements in which a PodGroup was tried."""

    profile: str
    feasible: int
    infeasible: int


class Waiting(Struct, frozen=True):
    """Why a pod is still pending."""

    task: Task
    reason: str
    message: str


class HeldBack(Struct, frozen=True):
    """Why a pod of kube-scheduler's profiles is not tried. Nothing is written to the pod."""

    state: str  #: in the words of kube-scheduler's queue
    why: str


class GroupEvent(Struct, frozen=True):
    """A Kubernetes event to be recorded for a PodGroup."""

    job: Job
    type: str
    reason: str
    message: str


class MadeWhenRead(Sequence[T]):
    """A sequence of values that are made when one of them is first read. `count`: how many there will be."""

    def __init__(self, count: Callable[[], int], make: Callable[[], list[T]]) -> None:
        self._count = count
        self._make = make

    @cached_property
    def _made(self) -> list[T]:
        return self._make()

    def __len__(self) -> int:
        return self._count()

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


class JobOutcome(Struct, frozen=True):
    """The status of a group of jobs that are alike. Their pods' names go into the blanks of the texts."""

    members: list[Member]
    phase: str
    condition: GroupCondition | None
    hypernode: str
    pods: list[tuple[int, str, str]]  #: of each pod that waits: its number in the job, reason and message
    held_places: str = ""

    @property
    def reported(self) -> Hashable:
        """All that is reported of the jobs except their names, and their numbers of pods by status."""
        counts = frozenset(self.members[0].job.by_status.items())
        return self.phase, self.condition, self.hypernode, self.held_places, tuple(self.pods), counts

    def group(self, member: Member) -> GroupStatus:
        condition = self.condition
        if condition is not None:
            condition = replace(condition, message=filled(condition.message, member.tasks))
        return GroupStatus(member.job, self.phase, condition, self.hypernode, self.held_places)

    def waiting(self, member: Member) -> list[Waiting]:
        """Why each waiting pod of the job waits."""
        return [self._of(pod, member) for pod in self.pods]

    def last_word(self, member: Member) -> Waiting | None:
        """Why the last of the job's waiting pods waits; None if no pod waits."""
        return self._of(self.pods[-1], member) if self.pods else None

    def _of(self, pod: tuple[int, str, str], member: Member) -> Waiting:
        number, reason, message = pod
        return Waiting(member.tasks[number], reason, filled(message, member.tasks))


_age = attrgetter("created")


class Unsaid:
    """The statuses of jobs at rest, which were not looked at. They are found out when they are first read."""

    def __init__(self, groups: list[list[Member]], pods: int) -> None:
        self.groups = groups
        self.pods = pods  #: number of their pods that wait
        self.find_out: Callable[[], Decisions]  #: set by the cycle, if there are any: the decisions of one that looks at each job

    @property
    def jobs(self) -> Iterator[Job]:
        return (member.job for members in self.groups for member in members)

    @cached_property
    def _found(self) -> Decisions:
        return self.find_out()

    @cached_property
    def outcomes(self) -> list[JobOutcome]:
        uids = {job.uid for job in self.jobs}
        conclusion = self._found.conclusion if uids else None
        found = conclusion.outcomes if conclusion is not None else []
        its = ((outcome, [member for member in outcome.members if member.uid in uids]) for outcome in found)
        return [replace(outcome, members=members) for outcome, members in its if members]


class Conclusion(Struct, frozen=True):
    """The statuses of all jobs, and the other pods that wait."""

    outcomes: list[JobOutcome]  #: of the jobs that were looked at
    refused: list[Waiting]
    stranded: list[Waiting]
    at_rest: Unsaid = Unsaid([], 0)

    @property
    def all_outcomes(self) -> list[JobOutcome]:
        """The statuses of all jobs. Those of jobs at rest are found out now, which takes as long as a cycle that looks at each job."""
        return [*self.outcomes, *self.at_rest.outcomes]

    def without_those_at_rest(self) -> Conclusion:
        return replace(self, at_rest=Unsaid([], 0))

    def unsaid(self, groups: dict[str, list[Member]], find_out: Callable[[], Decisions]) -> Conclusion:
        """The conclusion without the statuses of some jobs that are like no other: these, by uid, count as jobs at rest."""
        pods = sum(len(outcome.pods) for outcome in self.outcomes if outcome.members[0].uid in groups)
        at_rest = Unsaid([*self.at_rest.groups, *groups.values()], self.at_rest.pods + pods)
        at_rest.find_out = find_out
        return replace(self, outcomes=[each for each in self.outcomes if each.members[0].uid not in groups], at_rest=at_rest)

    def phases(self) -> list[tuple[Job, str, str]]:
        """Each job with its phase and HyperNode, the oldest first."""
        looked_at = [(member, outcome.phase, outcome.hypernode) for outcome in self.outcomes for member in outcome.members]
        resting = [(member, member.job.phase, member.job.allocated_hypernode) for group in self.at_rest.groups for member in group]
        return [(member.job, phase, hypernode) for member, phase, hypernode in sorted([*looked_at, *resting])]

    def of(self, uids: Container[str]) -> Conclusion:
        """The conclusion with only those statuses whose first job is among these uids."""
        return replace(self, outcomes=[outcome for outcome in self.outcomes if outcome.members[0].uid in uids])

    def groups(self) -> Sequence[GroupStatus]:
        """The status of each job's PodGroup, the oldest first."""
        return MadeWhenRead(self._job_count, lambda: [outcome.group(member) for member, outcome in self._by_age()])

    def _job_count(self) -> int:
        return sum(len(outcome.members) for outcome in self.outcomes) + sum(map(len, self.at_rest.groups))

    def waiting(self) -> Sequence[Waiting]:
        """Why each pod waits: first pods that were tried alone, then the pods of jobs by age, then pods that no action looks at."""
        return MadeWhenRead(self._waiting_count, self._waiting)

    def _waiting_count(self) -> int:
        count = sum(len(outcome.members) * len(outcome.pods) for outcome in self.outcomes)
        return len(self.refused) + count + self.at_rest.pods + len(self.stranded)

    def _waiting(self) -> list[Waiting]:
        made = [waiting for member, outcome in self._by_age() for waiting in outcome.waiting(member)]
        return [*self.refused, *made, *self.stranded]

    def last_words(self) -> list[Waiting]:
        """Why the last of the waiting pods of each job waits, but for jobs at rest; and why those pods wait that `waiting` has besides."""
        words = [outcome.last_word(member) for outcome in self.outcomes if outcome.pods for member in outcome.members]
        return [*self.refused, *(word for word in words if word is not None), *self.stranded]

    def last_word(self, job: Job) -> Waiting | None:
        """Why the last of the job's waiting pods waits; None if no pod of the job waits, or if the job was at rest."""
        for outcome in self.outcomes:
            members = outcome.members if outcome.pods else []
            for place in range(bisect_left(members, job.created, key=_age), len(members)):
                if members[place].job is job:
                    return outcome.last_word(members[place])
                if members[place].created != job.created:
                    break
        return None

    def _by_age(self) -> list[tuple[Member, JobOutcome]]:
        return sorted((member, outcome) for outcome in self.all_outcomes for member in outcome.members)


class Decisions(Struct):
    binds: list[Bind] = field(default_factory=list)
    evictions: list[Evict] = field(default_factory=list)
    pipelined: list[Pipelined] = field(default_factory=list)
    ungated: dict[str, Task] = field(default_factory=dict)  #: by uid: pods whose queue has room, so that its gate is to be removed
    nominations: dict[Task, str] = field(default_factory=dict)  #: nominated nodes, where room is made for the pod; "" for no longer
    groups: Sequence[GroupStatus] = field(default_factory=list)
    held: dict[Task, HeldBack] = field(default_factory=dict)  #: pods of kube-scheduler's profiles that are held back
    #: device claims that lose their devices, as these are of no use there (""), or only one of those for whom they are kept (its uid)
    released_claims: dict[str, str] = field(default_factory=dict)
    native_groups: dict[str, NativeGroupCondition] = field(default_factory=dict)  #: by "namespace/name"
    group_tries: list[GroupTry] = field(default_factory=list)
    preemption_tries: list[PreemptionTry] = field(default_factory=list)
    placement_tries: list[PlacementTries] = field(default_factory=list)
    waiting: Sequence[Waiting] = field(default_factory=list)
    conclusion: Conclusion | None = None  #: what `groups` and `waiting` are made of
    events: list[GroupEvent] = field(default_factory=list)  #: without those of jobs at rest
    failures: dict[Failure, None] = field(default_factory=dict)  #: failures of plugins, in the order in which they occurred
    again_at: float = inf  #: when pods that are held back now may be placed

    def tell(self, conclusion: Conclusion) -> None:
        """Take the statuses of jobs and the reasons of waiting pods from this conclusion."""
        self.conclusion, self.groups, self.waiting = conclusion, conclusion.groups(), conclusion.waiting()

    def of_those_looked_at(self) -> Decisions:
        """The decisions without the statuses of jobs at rest, of which nothing new is known."""
        if self.conclusion is None or not self.conclusion.at_rest.groups:
            return self
        copy = replace(self)
        copy.tell(self.conclusion.without_those_at_rest())
        return copy
