"""A job in a simulation: which of its pods run since when, how much work is left, and how much was lost."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pumice.scheduler.model import Task
from pumice.simulate.workload import Amounts, Work, amounts_of, object_name, total_of

P = TypeVar("P")


def job_of(task: Task) -> str:
    """The uid of the job whose pod this is, whether or not it has a PodGroup."""
    return task.key.rpartition("-")[0]


class Run(Generic[P]):
    """Pods of a job that began together and would end together."""

    __slots__ = ("began", "length", "life", "tasks")

    def __init__(self, life: Life, tasks: dict[str, P], began: float, length: float) -> None:
        self.life = life
        self.tasks = tasks  #: by uid; evicted pods are removed
        self.began = began
        self.length = length

    def take_out(self, uid: str) -> None:
        """Take a pod out; without pods it is no run of the job any more."""
        del self.tasks[uid]
        if not self.tasks:
            self.life.runs.remove(self)


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

    def run_of(self, uid: str) -> Run[Any] | None:
        """The run of a pod; None if it does not run."""
        return next((run for run in self.runs if uid in run.tasks), None)

    def amount(self, index: int) -> Amounts:
        """The resources that the job's pod of this number holds."""
        for role in self.work.roles:
            if index < role.count:
                return amounts_of(role)
            index -= role.count
        raise IndexError(index)

    def interrupt(self, run: Run[Any], uid: str, now: float) -> tuple[float, float]:
        """End a pod's run by an eviction, which undoes the work since the last checkpoint. Returns for how many seconds it has run, and how
        many of these are not lost."""
        run.take_out(uid)
        done, every = now - run.began, self.work.checkpoint
        kept = done // every * every if every else 0.0
        self.left[uid] = run.length - kept
        self.lost += done - kept
        self.evictions += 1
        return done, kept
