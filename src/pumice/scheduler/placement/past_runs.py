"""How long pods ran that have ended, by kind: similar pods are expected to run as long.

The narrowest kind are pods of one owner (pumice.io/user of the PodGroup, else its namespace and queue) with equal requests whose jobs have
the same name except for numbers; then pods of such jobs with any requests; then all pods of the owner. Only those pods are known that have
ended since `PastRuns` was first asked for.
"""

import re
from collections import deque
from statistics import median
from typing import TypeAlias

from pumice.api.annotations import USER
from pumice.scheduler.model import Index, Job, Task

ENOUGH = 5  #: runs of a kind that are needed to know the usual run
LATEST = 300  #: runs of a kind that are kept, the latest ones
MOST_KINDS = 3000  #: kinds that are remembered; those that were seen first are forgotten first
MOST_GONE = 1000  #: pods that have left a node, before it is checked which of them have ended

_CHANGING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+")

RunKind: TypeAlias = tuple[object, ...]


def without_numbers(name: str) -> str:
    """The name without numbers and UUIDs: jobs of a sweep, and runs of one job, have it in common."""
    return _CHANGING.sub("", name)


class PastRuns(Index):
    def begin(self) -> None:
        self._gone: dict[str, tuple[Task, list[RunKind]]] = {}
        self._runs: dict[RunKind, deque[float]] = {}

    def change(self, row: int, task: Task, sign: int) -> None:
        if sign > 0:
            self._gone.pop(task.uid, None)
        elif task.job is not None:
            if len(self._gone) >= MOST_GONE:
                self.refresh()
            self._gone[task.uid] = task, _kinds(task, task.job)

    def refresh(self) -> None:
        for task, kinds in self._gone.values():
            last = self.cluster.tasks.get(task.key, task)  # a pod whose object was updated is another task
            if last.uid == task.uid and last.started is not None and last.ended is not None:
                for kind in kinds:
                    self._runs.setdefault(kind, deque(maxlen=LATEST)).append(last.ended - last.started)
        self._gone.clear()
        while len(self._runs) > MOST_KINDS:
            del self._runs[next(iter(self._runs))]

    def usual(self, task: Task) -> float | None:
        """The median run, in seconds, of the narrowest kind with enough runs; None if there is none."""
        if task.job is None:
            return None
        found = (self._runs.get(kind, ()) for kind in _kinds(task, task.job))
        return next((median(runs) for runs in found if len(runs) >= ENOUGH), None)


def owner_of(job: Job) -> str:
    return job.annotations.get(USER) or f"{job.namespace}/{job.queue.name if job.queue is not None else ''}"


def _kinds(task: Task, job: Job) -> list[RunKind]:
    owner, name = owner_of(job), without_numbers(job.name)
    return [(owner, name, *task.template.needs), (owner, name), (owner,)]
