"""The turns of groups of alike jobs: a group is split if something changes before the others' turn."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import Any

from pumice.scheduler.framework.job_classes import ClassKey, JobClass
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job

Noted = tuple[list[list[Any]], set[str]]


class ByKey:
    """Groups of jobs, in the order of keys. Most are there from the start and are sorted once, which costs less than a heap."""

    def __init__(self, entries: Iterable[tuple[ClassKey, JobClass]]) -> None:
        self._first = sorted(entries, key=itemgetter(0), reverse=True)  #: the next group is the last element
        self._late: list[tuple[ClassKey, JobClass]] = []  #: a heap of the groups that were added later

    def __bool__(self) -> bool:
        return bool(self._first or self._late)

    def __iter__(self) -> Iterator[tuple[ClassKey, JobClass]]:
        return chain(self._first, self._late)

    def push(self, entry: tuple[ClassKey, JobClass]) -> None:
        heappush(self._late, entry)

    def pop(self) -> tuple[ClassKey, JobClass]:
        if self._late and (not self._first or self._late[0] < self._first[-1]):
            return heappop(self._late)
        return self._first.pop()


class Turns:
    """Jobs in the order of their turns. Only the first job of a group has a turn, as long as nothing has changed since that turn."""

    def __init__(self, session: Session, groups: Iterable[JobClass], key: Callable[[Job], ClassKey]) -> None:
        self._session = session
        self._key = key
        self.groups = list(groups)
        self._waiting = ByKey([(key(alike.first), alike) for alike in self.groups])
        self._tried: list[tuple[JobClass, Noted]] = []  #: groups that had a turn, and what was noted of the first job before
        self._last: ClassKey = ()
        self._changes = session.changes

    def __bool__(self) -> bool:
        """Whether any job may still have a turn."""
        return bool(self._waiting or self._tried)

    def join(self, groups: Iterable[JobClass]) -> None:
        for alike in groups:
            self.groups.append(alike)
            self._waiting.push((self._key(alike.first), alike))

    def push(self, job: Job) -> None:
        self._waiting.push((self._key(job), JobClass.alone(job)))

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

    def rest(self) -> list[JobClass]:
        """All groups that would come after the last turn, in order. There are no turns after this call."""
        self._part()
        return [alike for _, alike in sorted(self._waiting, key=itemgetter(0))]

    def _part(self) -> None:
        session = self._session
        for alike, noted in self._tried:
            members, last = alike.members, self._last
            if last < self._key(members[1].job):  # so it is for most
                behind = 1
            else:
                behind = bisect_right(members, last, 2, key=lambda member: self._key(member.job))
            if behind < len(members):
                rest = JobClass(members[behind:], passed_over=alike.passed_over)
                del members[behind:]
                _note(session, rest.first, noted)
                session.alike.append(rest)
                self.groups.append(rest)
                self._waiting.push((self._key(rest.first), rest))
        self._tried.clear()


def apart(session: Session, alike: JobClass) -> list[Job]:
    """The jobs of a group. From now on each of them is in a group of its own."""
    members = alike.members.copy()
    if len(members) == 1:
        return [alike.first]
    noted = _noted(session, alike.first)
    for member in members[1:]:
        _note(session, member.job, noted)
        session.alike.append(JobClass([member], passed_over=alike.passed_over))
    del alike.members[1:]
    return [member.job for member in members]


def _noted(session: Session, job: Job) -> Noted:
    """What the session has noted of each of the job's tasks, and the roles of the job that found no node."""
    tables = session.fit_errors, session.refused_by_queue, session.last_try
    return [[notes.get(task.uid) for task in job.tasks.values()] for notes in tables], set(session.failed_roles.get(job.uid, ()))


def _note(session: Session, job: Job, noted: Noted) -> None:
    tables: tuple[dict[str, Any], ...] = (session.fit_errors, session.refused_by_queue, session.last_try)
    for notes, values in zip(tables, noted[0], strict=True):
        for uid, value in zip(job.tasks, values, strict=True):
            if value is not None:
                notes[uid] = value
    if noted[1]:
        session.failed_roles[job.uid] = noted[1]
