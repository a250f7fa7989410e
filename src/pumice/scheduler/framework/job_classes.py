"""Jobs that request the same. Only the first of them is tried; as long as nothing has changed since, the others are refused like it.

Jobs of a queue are alike if they differ only in names and age (`_class_key`). Classes of alike jobs are kept from cycle to cycle: only
jobs that changed are examined again. Within a cycle a group is split if something changes before the others' turn (`job_class_turns.py`).
What a session notes about the first job holds for all; where a text names a pod it has a blank, which is filled with the names of each
job's pods (`filled`).

Jobs are grouped only in sessions without observers that watch, whose actions and plugins read only the kept state. Else each is alone.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api.annotations import QUEUE_GATE
from pumice.scheduler.framework.at_rest import AtRest, Needs
from pumice.scheduler.model import INQUEUE, Job, Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "alike"  #: its key in the cluster's memory
ClassKey = tuple[Any, ...]


class Member(NamedTuple):
    """A job of a group, with its tasks. Members sort by age."""

    created: float
    uid: str
    job: Job
    tasks: tuple[Task, ...]
    number: int  #: of the first task: the order of arrival, for jobs of equal creation time
    key: Hashable  #: its class
    roughly: int | None  #: what it roughly is; None if it is never compared with others

    @classmethod
    def of(cls, job: Job, key: Hashable = None, roughly: int | None = None) -> Member:
        tasks = tuple(job.tasks.values())
        return member_of((job.created, job.uid, job, tasks, tasks[0].number if tasks else 0, key, roughly))


member_of: Callable[[tuple[Any, ...]], Member] = partial(tuple.__new__, Member)  #: makes one in a third of the usual time


class JobClass:
    """A group of jobs that are alike and have had the same outcome so far, the oldest first.

    `passed_over`: whether an action did not look at it, so that not all is noted of it. `wakes`: if it is at rest, whether it has its turn.
    """

    __slots__ = ("members", "passed_over", "wakes")

    def __init__(self, members: list[Member], *, passed_over: bool = False, wakes: Callable[[JobClass], bool] | None = None) -> None:
        self.members = members
        self.passed_over = passed_over
        self.wakes = wakes

    @classmethod
    def alone(cls, job: Job) -> JobClass:
        return cls([Member.of(job)])

    @property
    def first(self) -> Job:
        return self.members[0].job


def age(job: Job) -> tuple[float, str]:
    return job.created, job.uid


def by_age(jobs: list[Job]) -> list[Job]:
    """The jobs, the oldest first."""
    return sorted(jobs, key=age) if len(jobs) > 1 else jobs


class JobClasses:
    """All waiting jobs by class, for the sessions of one policy. A job that is like no other has a class of its own.

    Most jobs that are like no other differ from all others already in what is cheap to compare (`_roughly`). Their class is found out only
    when another job comes that is roughly like them.
    """

    def __init__(self, session: Session) -> None:
        self._basis = _basis(session)
        self._needs = Needs(session.cluster.dimensions.width)
        self._of: dict[str, Member] = {}  #: by uid
        self._lone: dict[int | None, Job] = {}  #: jobs like which nobody is, even roughly
        self._rough: Counter[int] = Counter()  #: how many of the other jobs are roughly the same
        self.at_rest: AtRest  #: in the present session
        self._keys: dict[Hashable, Hashable] = {}  #: classes: one object for all who have it
        self._own: set[int] = set()  #: slots of classes whose lists of members were replaced just now
        self._in_loops: set[str] = set()  #: the uids of jobs in loops of evictions, in the last session: each is looked at, alone
        self._nominated: list[Job] = []  #: jobs whose tasks were given other nominations with the last decisions

    @classmethod
    def of(cls, session: Session) -> JobClasses:
        """The classes that the session before has left, brought up to date, or new ones."""
        memory, cluster = session.cluster.memory, session.cluster
        kept: JobClasses | None = memory.get(MEMORY)
        if kept is None or kept._basis != _basis(session):
            kept = memory[MEMORY] = JobClasses(session)
            kept._in_loops = session.past_evictions.in_loops
            kept._look_at(session, {**cluster.waiting, **cluster.not_enqueued}.values())
            changed = {members[0].uid: members[0].job for members in kept._needs.members if members}
        else:
            before, kept._in_loops = kept._in_loops, session.past_evictions.in_loops
            looping = (cluster.jobs[uid] for uid in sorted(before | kept._in_loops) if uid in cluster.jobs)
            changed = {job.uid: job for job in (*cluster.changed.values(), *kept._nominated, *looping)}
            kept._look_at(session, changed.values())
        kept.at_rest = AtRest(session, kept._needs, (kept._slot(uid) for uid in changed if uid in kept._of))
        return kept

    def _slot(self, uid: str) -> int:
        return self._needs.slots[self._of[uid].key]

    def close(self, session: Session) -> None:
        """Examine the jobs again that the session has changed."""
        moved = {task.job: None for task in session.moves if task.job is not None}
        refused = (session.cluster.jobs[uid] for uid in session.not_admitted if uid in self._of and self._of[uid].key == uid)
        self._look_at(session, [*moved, *(job for job, before in session.phases.items() if job.phase != before), *refused])
        self._needs.read(session)
        nominations = session.decisions.nominations.items()
        self._nominated = list({task.job: None for task, node in nominations if task.job is not None and task.nominated != node})

    def __contains__(self, job: Job) -> bool:
        return job.uid in self._of

    def lone(self, members: Iterable[Member]) -> dict[str, list[Member]]:
        """By uid: the classes of those of these jobs that are like no other."""
        classes = {member.uid: self._needs.members[self._slot(member.uid)] for member in members if member.uid in self._of}
        return {uid: group for uid, group in classes.items() if len(group) == 1}

    def awake(self) -> list[JobClass]:
        """The groups that are looked at from the beginning of the session."""
        found = (JobClass(members.copy()) for members in self.at_rest.awake())
        return [alike for alike in found if alike.first.queue is not None and alike.first.queue.exists]

    def wake_all(self) -> list[JobClass]:
        """The groups that were at rest until now."""
        return self._woken(self.at_rest.wake_all())

    def wake_job(self, job: Job) -> list[JobClass]:
        """The group of a job, if it was at rest until now."""
        return self._woken(self.at_rest.wake_class(self._of[job.uid].key))

    def _woken(self, groups: list[list[Member]]) -> list[JobClass]:
        """The groups that were at rest until now. Whoever is still outside was passed over by enqueue."""
        passes_over = self.at_rest.passes_over
        return [JobClass(members.copy(), passed_over=passes_over or members[0].job.is_pending) for members in groups]

    def _look_at(self, session: Session, jobs: Iterable[Job]) -> None:
        self._own.clear()
        no_longer_lone: list[Job] = []
        for job in jobs:
            self._forget(job.uid)
            if job.queue is None or not (job.pending or (job.is_pending and not job.tasks)):
                continue
            if not _is_plain(job) or job.uid in self._in_loops or session.orders.queues_need_comparing:  # there each job has its own turn
                self._take_in(job, job.uid, None)
                continue
            roughly = _roughly(job)
            if roughly in self._lone:
                no_longer_lone.append(self._lone.pop(roughly))
                self._rough[roughly] = 1
            elif roughly not in self._rough:
                self._lone[roughly] = job
                self._take_in(job, job.uid, roughly)
                continue
            self._rough[roughly] += 1
            key = _class_key(session, job)
            self._take_in(job, self._keys.setdefault(key, key), roughly)
        if no_longer_lone:
            self._look_at(session, no_longer_lone)

    def _take_in(self, job: Job, key: Hashable, roughly: int | None) -> None:
        member = self._of[job.uid] = Member.of(job, key, roughly)
        slot = self._needs.slot(key)
        if self._needs.members[slot]:
            insort(self._own_members(slot), member)
        else:
            self._needs.members[slot] = [member]
            self._own.add(slot)

    def _own_members(self, slot: int) -> list[Member]:
        """The list of a class's members, which may be changed: it is copied once while jobs are looked at."""
        if slot not in self._own:
            self._own.add(slot)
            self._needs.members[slot] = self._needs.members[slot].copy()
        return self._needs.members[slot]

    def _forget(self, uid: str) -> None:
        member = self._of.pop(uid, None)
        if member is None:
            return
        roughly = member.roughly
        if self._lone.get(roughly) is member.job:
            del self._lone[roughly]
        elif roughly is not None:
            self._rough[roughly] -= 1
            if not self._rough[roughly]:
                del self._rough[roughly]
        members = self._own_members(self._needs.slots[member.key])
        del members[bisect_left(members, member)]
        if not members:
            self._keys.pop(member.key, None)
            self._needs.drop(member.key)


def _basis(session: Session) -> tuple[Any, ...]:
    """What the classes depend on besides the jobs. If it changes, they are made anew."""
    cluster = session.cluster
    return session.policy, len(cluster.with_pod_affinity), cluster.versions.copy(), cluster.dimensions.width


def _roughly(job: Job) -> int:
    """What jobs that are alike have in common, as far as it is cheap to know: the hash of it, which takes less memory."""
    assert job.queue is not None
    first = next((task.template for task in job.tasks.values()), job.least)
    return hash((job.queue.name, job.namespace, job.priority, job.min_member, len(job.tasks), job.phase, first))


def _class_key(session: Session, job: Job) -> Hashable:
    """The class of a plain job: equal for jobs that are alike."""
    assert job.queue is not None
    tasks = list(job.tasks.values())
    order = sorted(range(len(tasks)), key=lambda number: session.orders.task_key(tasks[number]))
    return (
        *(job.queue.name, job.namespace, job.priority, job.min_member, *job.role_minimum.items()),
        *(job.preemptable, job.never_preempted, job.zone, job.beyond, job.phase == INQUEUE or _least(job)),
        *(tell(job) for tell in session.job_tellers),
        *order,
        *((task.role, task.priority, task.preemptable, task.zone, *session.task_kind(task)) for task in tasks),
    )


def _least(job: Job) -> Hashable:
    """The job's minResources, which its queue must have room for before the job is let in."""
    least = job.group.spec.min_resources if job.group is not None else None
    return None if least is None else tuple((name, amount.text) for name, amount in least.items())


def _is_plain(job: Job) -> bool:
    """Whether the job was let in or was refused admission, and nothing else has happened to it yet."""
    if job.phase != INQUEUE and (not job.is_pending or job.waiting_since is None):
        return False
    if len(job.pending) != len(job.tasks) or job.allocated_hypernode or job.nominated_hypernodes or job.held_places:
        return False
    if job.asks_for_topology or not job.has_one_part:
        return False
    return not any(task.nominated or task.gated or QUEUE_GATE in task.annotations for task in job.tasks.values())


BLANK = "\0"  #: is written before and after the number of a task in its job


def blanks(alike: JobClass) -> dict[str, str]:
    """By uid of the first job's tasks: the blanks that texts have in place of their names."""
    return {uid: f"{BLANK}{number}{BLANK}" for number, uid in enumerate(alike.first.tasks)}


def filled(text: str, tasks: Sequence[Task]) -> str:
    """The text with the names of these tasks in its blanks."""
    if BLANK not in text:
        return text
    parts = text.split(BLANK)
    parts[1::2] = [tasks[int(number)].name for number in parts[1::2]]
    return "".join(parts)
