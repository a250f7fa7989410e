"""Jobs that wait for the same. Of them the first is tried; as long as nothing has changed since, the others are refused as it was.

Jobs of a queue are alike if their names and their age are all that tells them apart (`_kind`). Who is alike is kept from cycle to cycle:
only jobs that changed are looked at again. Within a cycle they part when something changes before their turn (`Turns`). What a session
notes of the first goes for all; where it names a pod there is a blank for the names of the others (`filled`).

That is for sessions in which nobody looks on, and whose actions and plugins read only the kept state. In others each job is by itself.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from pumice.api.annotations import QUEUE_GATE
from pumice.scheduler.model.job import INQUEUE, Job
from pumice.scheduler.model.task import Task

if TYPE_CHECKING:
    from pumice.scheduler.framework.session import Session

MEMORY = "alike"  #: its key in the cluster's memory
Key = tuple[Any, ...]


class Member(NamedTuple):
    """A job that stands among others, by age, and its tasks."""

    created: float
    uid: str
    job: Job
    tasks: list[Task]
    number: int  #: of the first task: which of two that came together came first

    @classmethod
    def of(cls, job: Job) -> Member:
        tasks = list(job.tasks.values())
        return cls(job.created, job.uid, job, tasks, tasks[0].number if tasks else 0)


class Alike:
    """Jobs that fared alike so far, by age."""

    __slots__ = ("members",)

    def __init__(self, members: list[Member]) -> None:
        self.members = members

    @classmethod
    def alone(cls, job: Job) -> Alike:
        return cls([Member.of(job)])

    @property
    def first(self) -> Job:
        return self.members[0].job


def age(job: Job) -> tuple[float, str]:
    return job.created, job.uid


# ---- from cycle to cycle


class Kinds:
    """All jobs that wait, by kind, as sessions of one policy see them. A job that is like no other is its own kind."""

    def __init__(self, session: Session) -> None:
        self._basis = _basis(session)
        self._members: dict[Hashable, list[Member]] = {}
        self._of: dict[str, tuple[Hashable, Member]] = {}
        self._nominated: list[Job] = []  #: jobs whose tasks were given nominations with the last decisions

    @classmethod
    def of(cls, session: Session) -> Kinds:
        """Up to date."""
        memory, cluster = session.cluster.memory, session.cluster
        kept: Kinds | None = memory.get(MEMORY)
        if kept is None or kept._basis != _basis(session):
            kept = memory[MEMORY] = Kinds(session)
            kept._look_at(session, cluster.waiting.values())
        else:
            kept._look_at(session, [*cluster.changed.values(), *kept._nominated])
        return kept

    def close(self, session: Session) -> None:
        """Take in what the session has changed."""
        moved = {task.job: None for task in session.origins if task.job is not None}
        refused = (session.cluster.jobs[uid] for uid in session.not_admitted if uid in self._of and self._of[uid][0] == uid)
        self._look_at(session, [*moved, *(job for job, before in session.phases.items() if job.phase != before), *refused])
        self._nominated = list({task.job: None for task in session.decisions.nominations if task.job is not None})

    def __contains__(self, job: Job) -> bool:
        return job.uid in self._of

    def groups(self) -> list[Alike]:
        found = (Alike(members.copy()) for members in self._members.values())
        return [alike for alike in found if alike.first.queue is not None and alike.first.queue.exists]

    def _look_at(self, session: Session, jobs: Iterable[Job]) -> None:
        tellers = session.job_tellers
        for job in jobs:
            self._forget(job.uid)
            if job.pending and job.queue is not None:
                kind, member = _kind(session, job, tellers), Member.of(job)
                self._of[job.uid] = kind, member
                insort(self._members.setdefault(kind, []), member)

    def _forget(self, uid: str) -> None:
        if uid in self._of:
            kind, member = self._of.pop(uid)
            members = self._members[kind]
            del members[bisect_left(members, member)]
            if not members:
                del self._members[kind]


def _basis(session: Session) -> tuple[Any, ...]:
    """What kinds depend on besides the jobs."""
    cluster = session.cluster
    return session.policy, len(cluster.with_pod_affinity), cluster.versions.copy()


def _kind(session: Session, job: Job, tellers: Sequence[Callable[[Job], Hashable]]) -> Hashable:
    """Equal for jobs that are alike."""
    if not _is_plain(job):
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
    """What the job must be promised before it is let in."""
    least = job.group.spec.min_resources if job.group is not None else None
    return None if least is None else tuple((name, amount.text) for name, amount in least.items())


def _is_plain(job: Job) -> bool:
    """Whether it was let in, or refused, and nothing has happened to it yet."""
    if job.phase != INQUEUE and (not job.is_pending or job.waiting_since is None):
        return False
    if len(job.pending) != len(job.tasks) or job.allocated_hypernode or job.nominated_hypernodes:
        return False
    if job.asks_for_topology or not job.has_one_part:
        return False
    return not any(task.nominated or task.gated or QUEUE_GATE in task.annotations for task in job.tasks.values())


# ---- within a cycle

Noted = tuple[list[list[Any]], set[str]]


class ByKey:
    """Jobs by key. Most are there from the start and sorted once: in a heap each that is taken moves many."""

    def __init__(self, entries: Iterable[tuple[Key, Alike]]) -> None:
        self._first = sorted(entries, key=itemgetter(0), reverse=True)  #: the next one last
        self._late: list[tuple[Key, Alike]] = []  #: a heap of those that came later

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
    """Jobs in order. Of those that are alike, the others have no turn while everything is as it was when the first had his."""

    def __init__(self, session: Session, groups: Iterable[Alike], key: Callable[[Job], Key]) -> None:
        self._session = session
        self._key = key
        self.groups = list(groups)
        self._waiting = ByKey([(key(alike.first), alike) for alike in self.groups])
        self._tried: list[tuple[Alike, Noted]] = []  #: and what was noted before
        self._last: Key = ()
        self._changes = session.changes

    def __bool__(self) -> bool:
        """Whether somebody's turn may come."""
        return bool(self._waiting or self._tried)

    def push(self, job: Job) -> None:
        self._waiting.push((self._key(job), Alike.alone(job)))

    def pop(self) -> Job | None:
        self.part()
        if not self._waiting:
            return None
        self._last, alike = self._waiting.pop()
        if len(alike.members) > 1:
            self._tried.append((alike, _noted(self._session, alike.first)))
        return alike.first

    def part(self) -> None:
        """If something has changed, those who would have come after it are to have turns of their own."""
        session = self._session
        if session.changes == self._changes:
            return
        self._changes = session.changes
        self._part()

    def rest(self) -> list[Alike]:
        """All who would have come after the last, in order. There are no more turns."""
        self._part()
        return [alike for _, alike in sorted(self._waiting, key=itemgetter(0))]

    def _part(self) -> None:
        session = self._session
        for alike, noted in self._tried:
            behind = bisect_right(alike.members, self._last, 1, key=lambda member: self._key(member.job))
            if behind < len(alike.members):
                rest = Alike(alike.members[behind:])
                del alike.members[behind:]
                _note(session, rest.first, noted)
                session.alike.append(rest)
                self.groups.append(rest)
                self._waiting.push((self._key(rest.first), rest))
        self._tried.clear()


def apart(session: Session, alike: Alike) -> list[Job]:
    """The jobs, each of which is by itself from now on."""
    members, noted = alike.members.copy(), _noted(session, alike.first)
    for member in members[1:]:
        _note(session, member.job, noted)
        session.alike.append(Alike([member]))
    del alike.members[1:]
    return [member.job for member in members]


def _noted(session: Session, job: Job) -> Noted:
    """What was noted of a job's tasks, one by one."""
    kinds = session.fit_errors, session.refused_by_queue, session.last_try
    return [[notes.get(task.uid) for task in job.tasks.values()] for notes in kinds], set(session.failed_roles.get(job.uid, ()))


def _note(session: Session, job: Job, noted: Noted) -> None:
    kinds: tuple[dict[str, Any], ...] = (session.fit_errors, session.refused_by_queue, session.last_try)
    for notes, values in zip(kinds, noted[0], strict=True):
        notes.update({uid: value for uid, value in zip(job.tasks, values, strict=True) if value is not None})
    if noted[1]:
        session.failed_roles[job.uid] = noted[1]


# ---- names

BLANK = "\0"  #: stands around the number of a task, in the order of its job


def blanks(alike: Alike) -> dict[str, str]:
    """By uid of the first job's tasks: what is written in place of their names."""
    return {uid: f"{BLANK}{number}{BLANK}" for number, uid in enumerate(alike.first.tasks)}


def filled(text: str, tasks: Sequence[Task]) -> str:
    """A text with names in its blanks."""
    if BLANK not in text:
        return text
    parts = text.split(BLANK)
    parts[1::2] = [tasks[int(number)].name for number in parts[1::2]]
    return "".join(parts)
