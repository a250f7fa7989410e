"""A job in a simulation: which of its pods run since when, how much work is left, how much was lost, and why the job waits.

Why jobs wait, by the last cycle that gave a reason for them.

Cycles give one reason for all jobs that wait alike. The reason of a single job is looked up when the job starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pumice.scheduler.framework.decisions import Conclusion, Decisions, Waiting
from pumice.scheduler.model import Job
from pumice.simulate.work import Amounts, Work, amounts_of, object_name, total_of

P = TypeVar("P")


class Run(Generic[P]):
    """Pods of a job that began together and would end together."""

    __slots__ = ("began", "length", "life", "tasks")

    def __init__(self, life: Life, tasks: dict[str, P], began: float, length: float) -> None:
        self.life = life
        self.tasks = tasks  #: by uid; evicted pods are removed
        self.began = began
        self.length = length


class Life:
    """One job from its submission to its end."""

    __slots__ = (
        "end",
        "evictions",
        "left",
        "lost",
        "number",
        "pods",
        "reason",
        "runs",
        "start",
        "state",
        "total",
        "uid",
        "unfinished",
        "work",
    )

    def __init__(self, number: int, work: Work) -> None:
        self.number = number  #: in order of arrival
        self.work = work
        self.uid = f"{work.namespace}/{object_name(work)}"
        self.total = total_of(work.roles)
        self.pods = self.unfinished = work.pods
        self.left: dict[str, float] = {}  #: by pod uid: seconds of work left, for pods that were evicted
        self.runs: list[Run[Any]] = []
        self.start: float | None = None
        self.end: float | None = None
        self.evictions = 0
        self.lost = 0.0  #: pod-seconds of work that evictions undid
        self.state = "waiting"
        self.reason = ""

    def length(self, uid: str, name: str) -> float:
        """Seconds of work that a pod has left."""
        left = self.left.get(uid)
        if left is None:
            left = self.work.run
            if self.work.slow:
                left *= self.work.slow.get(int(name.rpartition("-")[2]), 1.0)
        return left

    def amount(self, index: int) -> Amounts:
        """The resources that the job's pod of this number holds."""
        for role in self.work.roles:
            if index < role.count:
                return amounts_of(role)
            index -= role.count
        raise IndexError(index)

    def kept(self, run: Run[Any], now: float) -> float:
        """Seconds of the run's work that an eviction now does not undo."""
        every = self.work.checkpoint
        return (now - run.began) // every * every if every else 0.0


class Reasons:
    """The reasons why jobs waited. `lives` holds the life of each existing pod's job, by pod uid."""

    def __init__(self, lives: Mapping[str, Life]) -> None:
        self._lives = lives
        self._last: Conclusion | None = None

    def take(self, decisions: Decisions) -> None:
        """Take in the reasons that a cycle gives."""
        assert decisions.conclusion is not None
        before, self._last = self._last, decisions.conclusion
        if self._last is before:
            return
        for waiting in self._last.refused:
            self._write(waiting)
        for outcome in self._last.outcomes:
            if not outcome.pods:
                for member in outcome.members:
                    self._keep(member.job, before)
            elif len(outcome.members) == 1:
                self._write(outcome.last_word(outcome.members[0]))
        for waiting in self._last.stranded:
            self._write(waiting)

    def settle(self, job: Job | None) -> None:
        """Keep the reason of a job that no longer waits, or whose simulation ends."""
        if job is not None:
            self._keep(job, self._last)

    def _keep(self, job: Job, conclusion: Conclusion | None) -> None:
        self._write(conclusion.last_word(job) if conclusion is not None else None)

    def _write(self, word: Waiting | None) -> None:
        life = self._lives.get(word.task.uid) if word is not None else None
        if word is not None and life is not None and life.start is None:
            life.reason = word.message
