"""Jobs that request the same. Only the first of them is tried; as long as nothing has changed since, the others are refused like it.

Jobs of a queue are alike if they differ only in names and age (`_kind`). Groups of alike jobs are kept from cycle to cycle: only jobs that
changed are examined again. Within a cycle a group is split if something changes before the others' turn (`Turns`). What a session notes
about the first job holds for all; where a text names a pod it has a blank, which is filled with the names of each job's pods (`filled`).

Jobs are grouped only in sessions without observers that watch, whose actions and plugins read only the kept state. Else each is alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api.annotations import QUEUE_GATE
from pumice.scheduler.framework.at_rest import AtRest, Needs
from pumice.scheduler.model import INQUEUE, Job, Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "alike"  #: its key in the cluster's memory
Key = tuple[Any, ...]


class Member(NamedTuple):
    """A job of a group, with its tasks. Members sort by age."""

    created: float
    uid: str
    job: Job
    tasks: list[Task]
    number: int  #: of the first task: the order of arrival, for jobs of equal creation time

    @classmethod
    def of(cls, job: Job) -> Member:
        tasks = list(job.tasks.values())
        return cls(job.created, job.uid, job, tasks, tasks[0].number if tasks else 0)


class Alike:
    """A group of jobs that are alike and have had the same outcome so far, the oldest first.

    `passed_over`: whether an action did not look at it, so that not all is noted of it. `wakes`: if it is at rest, whether it has its turn.
    """

    __slots__ = ("members", "passed_over", "wakes")

    def __init__(self, members: list[Member], *, passed_over: bool = False, wakes: Callable[[Alike], bool] | None = None) -> None:
        self.members = members
        self.passed_over = passed_over
        self.wakes = wakes

    @classmethod
    def alone(cls, job: Job) -> Alike:
        return cls([Member.of(job)])

    @property
    def first(self) -> Job:
        return self.members[0].job


def age(job: Job) -> tuple[float, str]:
    return job.created, job.uid


class Kinds:
    """All waiting jobs by kind, for the sessions of one policy. A job that is like no other has a kind of its own."""

    def __init__(self, session: Session) -> None:
        self._basis = _basis(session)
        self._needs = Needs(session.cluster.dimensions.width)
        self._members: dict[Hashable, list[Member]] = {}  #: the lists are replaced, not changed: decisions keep them
        self._of: dict[str, tuple[Hashable, Member]] = {}
        self.at_rest: AtRest  #: in the present session
        self._own: set[Hashable] = set()  #: kinds whose lists of members were replaced just now
        self._nominated: list[Job] = []  #: jobs whose tasks were given nominations with the last decisions

    @classmethod
    def of(cls, session: Session) -> Kinds:
        """The kinds that the session before has left, brought up to date, or new ones."""
        memory, cluster = session.cluster.memory, session.cluster
        kept: Kinds | None = memory.get(MEMORY)
        if kept is None or kept._basis != _basis(session):
            kept = memory[MEMORY] = Kinds(session)
            kept._look_at(session, cluster.waiting.values())
            changed = [members[0].uid for members in kept._members.values()]
        else:
            kept._look_at(session, [*cluster.changed.values(), *kept._nominated])
            changed = [*cluster.changed, *(job.uid for job in kept._nominated)]
        kept.at_rest = AtRest(session, kept._needs, (kept._slot(uid) for uid in changed if uid in kept._of))
        return kept

    def _slot(self, uid: str) -> int:
        return self._needs.slots[self._of[uid][0]]

    def close(self, session: Session) -> None:
        """Examine the jobs again that the session has changed."""
        moved = {task.job: None for task in session.moves if task.job is not None}
        refused = (session.cluster.jobs[uid] for uid in session.not_admitted if uid in self._of and self._of[uid][0] == uid)
        self._look_at(session, [*moved, *(job for job, before in session.phases.items() if job.phase != before), *refused])
        self._needs.read(session)
        self._nominated = list({task.job: None for task in session.decisions.nominations if task.job is not None})

    def __contains__(self, job: Job) -> bool:
        return job.uid in self._of

    def awake(self) -> list[Alike]:
        """The groups that are looked at from the beginning of the session."""
        found = (Alike(members.copy()) for members in self.at_rest.awake())
        return [alike for alike in found if alike.first.queue is not None and alike.first.queue.exists]

    def wake_all(self) -> list[Alike]:
        """The groups that were at rest until now."""
        return [Alike(members.copy(), passed_over=self.at_rest.passes_over) for members in self.at_rest.wake_all()]

    def wake_job(self, job: Job) -> list[Alike]:
        """The group of a job, if it was at rest until now."""
        found = self.at_rest.wake_kind(self._of[job.uid][0])
        return [Alike(members.copy(), passed_over=self.at_rest.passes_over) for members in found]

    def _look_at(self, session: Session, jobs: Iterable[Job]) -> None:
        tellers = session.job_tellers
        self._own.clear()
        for job in jobs:
            self._forget(job.uid)
            if job.pending and job.queue is not None:
                kind, member = _kind(session, job, tellers), Member.of(job)
                self._of[job.uid] = kind, member
                members = self._own_members(kind)
                insort(members, member)
                self._needs.put(session, kind, members)

    def _own_members(self, kind: Hashable) -> list[Member]:
        """The list of a kind's members, which may be changed: it is copied once while jobs are looked at."""
        if kind not in self._own:
            self._own.add(kind)
            self._members[kind] = [*self._members.get(kind, ())]
        return self._members.setdefault(kind, [])

    def _forget(self, uid: str) -> None:
        if uid in self._of:
            kind, member = self._of.pop(uid)
            members = self._own_members(kind)
            del members[bisect_left(members, member)]
            if members:
                self._needs.members[self._needs.slots[kind]] = members
            else:
                del self._members[kind]
                self._needs.drop(kind)


def _basis(session: Session) -> tuple[Any, ...]:
    """What the kinds depend on besides the jobs. If it changes, they are made anew."""
    cluster = session.cluster
    return session.policy, len(cluster.with_pod_affinity), cluster.versions.copy(), cluster.dimensions.width


def _kind(session: Session, job: Job, tellers: Sequence[Callable[[Job], Hashable]]) -> Hashable:
    """The kind of a job: equal for jobs that are alike; its uid for a job to which something has happened."""
    if not _is_plain(job) or session.queues_need_comparing:  # there each job has its own turn
        return job.uid
    assert job.queue is not None
    tasks = list(job.tasks.values())
    order = sorted(range(len(tasks)), key=lambda number: session.task_key(tasks[number]))
    return (
        *(job.queue.name, job.namespace, job.priority, job.min_member, *job.role_minimum.items()),
        *(job.preemptable, job.never_preempted, job.zone, job.beyond, job.phase == INQUEUE or _least(job)),
        *(tell(job) for tell in tellers),
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


Noted = tuple[list[list[Any]], set[str]]


class ByKey:
    """Groups of jobs, in the order of keys. Most are there from the start and are sorted once, which costs less than a heap."""

    def __init__(self, entries: Iterable[tuple[Key, Alike]]) -> None:
        self._first = sorted(entries, key=itemgetter(0), reverse=True)  #: the next group is the last element
        self._late: list[tuple[Key, Alike]] = []  #: a heap of the groups that were added later

    def __bool__(self) -> bool:
        return bool(self._first or self._late)

    def __iter__(self) -> Iterator[tuple[Key, Alike]]:
        return chain(self._first, self._late)

    def push(self, entry: tuple[Key, Alike]) -> None:
        heappush(self._late, entry)

    def pop(self) -> tuple[Key, Alike]:
        if self._late and (not self._first or self._late[0] < self._first[-1]):
            return heappop(self._late)
        return self._first.pop()


class Turns:
    """Jobs in the order of their turns. Only the first job of a group has a turn, as long as nothing has changed since that turn."""

    def __init__(self, session: Session, groups: Iterable[Alike], key: Callable[[Job], Key]) -> None:
        self._session = session
        self._key = key
        self.groups = list(groups)
        self._waiting = ByKey([(key(alike.first), alike) for alike in self.groups])
        self._tried: list[tuple[Alike, Noted]] = []  #: groups that had a turn, and what was noted of the first job before
        self._last: Key = ()
        self._changes = session.changes

    def __bool__(self) -> bool:
        """Whether any job may still have a turn."""
        return bool(self._waiting or self._tried)

    def join(self, groups: Iterable[Alike]) -> None:
        for alike in groups:
            self.groups.append(alike)
            self._waiting.push((self._key(alike.first), alike))

    def push(self, job: Job) -> None:
        self._waiting.push((self._key(job), Alike.alone(job)))

    def pop(self) -> Job | None:
        self.part()
        while self._waiting:
            if (job := self.take()) is not None:
                return job
        return None

    def take(self) -> Job | None:
        """The job of the next turn; None if it is at rest and stays so."""
        self._last, alike = self._waiting.pop()
        if alike.wakes is not None and not alike.wakes(alike):
            return None
        if len(alike.members) > 1:
            self._tried.append((alike, _noted(self._session, alike.first)))
        return alike.first

    def part(self) -> None:
        """If something has changed, let the jobs of the groups that come after the last turn have a turn, too."""
        session = self._session
        if session.changes == self._changes:
            return
        self._changes = session.changes
        self._part()

    def rest(self) -> list[Alike]:
        """All groups that would come after the last turn, in order. There are no turns after this call."""
        self._part()
        return [alike for _, alike in sorted(self._waiting, key=itemgetter(0))]

    def _part(self) -> None:
        session = self._session
        for alike, noted in self._tried:
            behind = bisect_right(alike.members, self._last, 1, key=lambda member: self._key(member.job))
            if behind < len(alike.members):
                rest = Alike(alike.members[behind:], passed_over=alike.passed_over)
                del alike.members[behind:]
                _note(session, rest.first, noted)
                session.alike.append(rest)
                self.groups.append(rest)
                self._waiting.push((self._key(rest.first), rest))
        self._tried.clear()


def apart(session: Session, alike: Alike) -> list[Job]:
    """The jobs of a group. From now on each of them is in a group of its own."""
    members, noted = alike.members.copy(), _noted(session, alike.first)
    for member in members[1:]:
        _note(session, member.job, noted)
        session.alike.append(Alike([member], passed_over=alike.passed_over))
    del alike.members[1:]
    return [member.job for member in members]


def _noted(session: Session, job: Job) -> Noted:
    """What the session has noted of each of the job's tasks, and the roles of the job that found no node."""
    kinds = session.fit_errors, session.refused_by_queue, session.last_try
    return [[notes.get(task.uid) for task in job.tasks.values()] for notes in kinds], set(session.failed_roles.get(job.uid, ()))


def _note(session: Session, job: Job, noted: Noted) -> None:
    kinds: tuple[dict[str, Any], ...] = (session.fit_errors, session.refused_by_queue, session.last_try)
    for notes, values in zip(kinds, noted[0], strict=True):
        notes.update({uid: value for uid, value in zip(job.tasks, values, strict=True) if value is not None})
    if noted[1]:
        session.failed_roles[job.uid] = noted[1]


BLANK = "\0"  #: is written before and after the number of a task in its job


def blanks(alike: Alike) -> dict[str, str]:
    """By uid of the first job's tasks: the blanks that texts have in place of their names."""
    return {uid: f"{BLANK}{number}{BLANK}" for number, uid in enumerate(alike.first.tasks)}


def filled(text: str, tasks: Sequence[Task]) -> str:
    """The text with the names of these tasks in its blanks."""
    if BLANK not in text:
        return text
    parts = text.split(BLANK)
    parts[1::2] = [tasks[int(number)].name for number in parts[1::2]]
    return "".join(parts)
