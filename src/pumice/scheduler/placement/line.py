"""A line of jobs: the first of them does not fit, and the others stand behind it.

With backfill, jobs behind the first may start where that delays no promise. Only the first is promised room (EASY), or all are
(conservative). How jobs are placed, and what is said of them, is up to subclasses.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pumice.api.times import rfc3339
from pumice.scheduler.engine import Evaluation
from pumice.scheduler.model import EPSILON, Cluster, Job, Mask, Table, Task, Template
from pumice.scheduler.placement.growing_room import GrowingRoom
from pumice.scheduler.placement.planned_ends import FIRST_STEP_S, PlannedEnds
from pumice.scheduler.placement.timetable import KeptPromises, PodSet, Promise, Timetable

PROMISES = "promises"  #: their key in the cluster's memory
MOST_NAMED = 8  #: nodes that an event names


class Line:
    """The jobs that wait, in their order, at one instant."""

    def __init__(self, cluster: Cluster, now: float, ends: type[PlannedEnds], unknown: float) -> None:
        """`unknown`: the seconds that a pod without an estimate is expected to run."""
        self.cluster = cluster
        self.now = now
        self.moves: Mapping[Task, Any] = {}  #: the tasks that have been moved in this cycle
        self.shortcuts = True
        self.settled = False  #: whether there is nowhere more room than when each kept promise was found to be the earliest
        self._memory: dict[str, Any] = cluster.memory.setdefault(PROMISES, {})
        self._kind_of_ends = ends
        self._unknown = unknown
        self._most_idle: tuple[int, list[float]] = -1, []  #: the position in the log, and by resource the most that a node has idle then
        self._known_nodes: dict[Evaluation, tuple[int, Mask]] = {}  #: by evaluation: the position in the log, and `resolvable` then
        self._no_room: dict[Hashable, float] = {}  #: by queue and kind of pod: the shortest run for which no room was found

    def backfill(self, first: Job) -> None:
        """Start later jobs before the first where that does not delay it (EASY): only the first job gets a promise."""
        timetable = self._room_to_come()
        promise = timetable.earliest(self.pod_sets(first), self._length(first))
        if promise is not None:
            self._report(first, promise)
        if not any(map(self._may_fit, self._templates_behind())):
            return
        if promise is not None:
            timetable.change(promise, self._length(first), -1)
        for job in self._turns_behind():
            if self._may_fit(next(iter(job.pending.values())).template) and not self._has_no_room(job):
                self._start_beside(job, timetable)

    def promise_all(self, jobs: Sequence[Job]) -> None:
        """Start jobs or promise them room (conservative). Earlier promises are kept, or improved in the order of the jobs."""
        kept, lengths = self._kept(jobs), list(map(self._length, jobs))
        timetable = self._timetable([(kept[job.uid], length) for job, length in zip(jobs, lengths, strict=True) if job.uid in kept])
        sure, self.settled = SurePromises(self, timetable, jobs, kept), True
        for number, (job, length) in enumerate(zip(jobs, lengths, strict=True)):
            own = kept.get(job.uid)
            if own is not None and self.shortcuts and sure.holds(number):
                continue
            pod_sets = self.pod_sets(job)
            promise = timetable.earliest(pod_sets, length) if own is None else timetable.better(own, pod_sets, length)
            if promise == own:
                continue
            if own is not None:
                del kept[job.uid]
                sure.outdated, self.settled = True, False
            if promise is None or (promise.start <= self.now and not self._has_quota(job, next(iter(job.pending.values())))):
                continue
            if promise.start <= self.now and self._start_beside(job, timetable):
                sure.outdated = True  # beside it rules may admit pods elsewhere
            else:
                timetable.change(promise, length, -1)
                kept[job.uid] = promise

    # -- for subclasses

    def _templates_behind(self) -> Iterable[Template]:
        """The templates of the first pods of the jobs behind the first."""
        raise NotImplementedError

    def _turns_behind(self) -> Iterator[Job]:
        """The jobs behind the first, in order, without those for which nothing has changed since one that is alike had its turn."""
        raise NotImplementedError

    def _start_beside(self, job: Job, timetable: Timetable | GrowingRoom) -> bool:
        """Start the job if it takes no promised room for as long as it is expected to run. Return whether it starts."""
        raise NotImplementedError

    def pod_sets(self, job: Job) -> list[PodSet]:
        """The pods that the job still needs to start, grouped by template."""
        raise NotImplementedError

    def _has_quota(self, job: Job, task: Task) -> bool:
        raise NotImplementedError

    def _kind(self, job: Job, task: Task) -> Hashable:
        """What decides, besides its length, where a pod of the job finds room."""
        raise NotImplementedError

    def _event(self, job: Job, message: str) -> None:
        """Report what the job is promised."""
        raise NotImplementedError

    # -- what they share

    @cached_property
    def _ends(self) -> PlannedEnds:
        return self.cluster.index(self._kind_of_ends)

    def _room_to_come(self) -> Timetable | GrowingRoom:
        """The room from now on, of which nothing is promised yet."""
        return self._timetable()

    def _timetable(self, promised: Sequence[tuple[Promise, float]] = ()) -> Timetable:
        self._ends.refresh()
        return Timetable(self, self._ends, self._unknown, promised)

    def _length(self, job: Job) -> float:
        return self._ends.run(next(iter(job.pending.values())), self._unknown)

    def _may_fit(self, template: Template) -> bool:
        """Whether, resource by resource, some node has enough idle for such a pod. For most jobs of a long line none has."""
        if self._most_idle[0] != self.cluster.log.position:
            self._most_idle = self.cluster.log.position, self.cluster.nodes.idle.max(axis=1).tolist()
        most = self._most_idle[1]
        return all(most[column] + EPSILON > amount for column, amount in template.needs)

    def _resolvable(self, evaluation: Evaluation) -> Mask:
        """The nodes that may take a task, if there is room. Most jobs of a long line ask for the same nodes."""
        position = self.cluster.log.position
        known = self._known_nodes.get(evaluation)
        if known is None or known[0] != position:
            known = self._known_nodes[evaluation] = position, evaluation.resolvable
        return known[1]

    def _has_no_room(self, job: Job) -> bool:
        """Whether no room was found for equal pods with a run no longer than this job's, and no job has started since."""
        task = next(iter(job.pending.values()))
        shortest = self._no_room.get(self._kind(job, task))
        if shortest is None or self._length(job) < shortest or not self.shortcuts:
            return False
        return all(other.template is task.template for other in job.pending.values())

    def _kept(self, jobs: Sequence[Job]) -> dict[str, Promise]:
        """The promises made to these jobs in earlier cycles, except those whose time has come; none if the nodes have changed."""
        memory, nodes = self._memory, self.cluster.nodes
        version = (nodes.static_version, nodes.idle.shape, nodes.allocatable.sum())
        promises: dict[str, Promise] = memory["promises"] if memory.get("version") == version else {}
        waiting = {job.uid for job in jobs}
        kept = {uid: promise for uid, promise in promises.items() if uid in waiting and promise.start > self.now}
        self.settled &= len(kept) == len(promises)
        memory["version"], memory["promises"] = version, kept
        return kept

    def _report(self, job: Job, promise: Promise) -> None:
        """Report a promise: once, and again when its job or nodes change, or its start by FIRST_STEP_S or more."""
        nodes = ", ".join(self.cluster.nodes.names[row] for row in sorted({row for _, row, _ in promise.usage})[:MOST_NAMED])
        who, start = self._memory.get("told", (("", ""), 0.0))
        if who != (job.uid, nodes) or abs(start - promise.start) >= FIRST_STEP_S:
            self._memory["told"] = (job.uid, nodes), promise.start
            self._event(job, f"It is promised room on {nodes} from {rfc3339(promise.start)} on")


def candidates(evaluation: Evaluation, free: Table) -> Mask:
    """The nodes that take a task now and have this room free for it."""
    columns, amounts = evaluation.template.columns, evaluation.template.amounts
    has_room: Mask = np.all(free[columns] + EPSILON > amounts[:, None], axis=0)
    return evaluation.admitted & evaluation.fits_idle & has_room


class SurePromises:
    """Which jobs are surely promised the same again: where there is no more room than before, and where a comparison of all shows it."""

    def __init__(self, line: Line, timetable: Timetable, jobs: Sequence[Job], promises: Mapping[str, Promise]) -> None:
        self._line, self._timetable, self._jobs, self._promises = line, timetable, jobs, promises
        self.outdated = not (line.settled and timetable.has_room)  #: whether there may be more room than when they were sure
        self._sure: Mask = np.ones(len(jobs), bool)
        self._position = -1  #: in the log, when promises were read
        self._kept: KeptPromises

    def holds(self, number: int) -> bool:
        """Whether the job of this number, which is asked for in order, is promised the same again."""
        if self.outdated:
            self._compare(number)
        return bool(self._sure[number])

    def _compare(self, number: int) -> None:
        position = self._line.cluster.log.position
        if self._position != position:
            self._position = position
            single = [self._single(job) if each >= number else None for each, job in enumerate(self._jobs)]
            self._kept = KeptPromises(single, len(self._line.cluster.dimensions.names))
        self._sure, self.outdated = self._timetable.surely_earliest(self._kept), False

    def _single(self, job: Job) -> Promise | None:
        promise = self._promises.get(job.uid)
        return promise if promise is not None and promise.is_of_one(self._line.pod_sets(job)) else None
