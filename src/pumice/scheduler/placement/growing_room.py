"""The room on nodes from now on where nobody is promised any yet: it only grows, as pods end.

For a promise to a single pod, and for what may start beside it, this is what a `Timetable` is for many, with the same answers. Most such
promises begin after a few ends, so these are looked at one by one, and nothing is made of the others.
"""

from itertools import groupby
from operator import itemgetter

from pumice.scheduler.model import EPSILON, Table, Vector
from pumice.scheduler.placement.planned_ends import PlannedEnds, PlanningCycle
from pumice.scheduler.placement.timetable import PodSet, Promise

_time = itemgetter(0)


class GrowingRoom:
    def __init__(self, cycle: PlanningCycle, ends: PlannedEnds, unknown: float) -> None:
        """`unknown`: the seconds that a pod without an estimate is expected to run."""
        self._cycle, self._ends, self._unknown = cycle, ends, unknown
        self._nodes = cycle.cluster.nodes
        self._room: dict[int, list[float]] = {}  #: by row: of each resource that the pod needs, what is idle at the instant looked at last
        self._promise: Promise | None = None  #: the promise to the pod
        self._beside: dict[tuple[int, int], float] = {}  #: by resource and row: what is left beside it when it begins, once it was taken

    def earliest(self, pod_sets: list[PodSet], length: float) -> Promise | None:
        """A promise from the first instant at which there is room for the pod; None if there never is."""
        (pods,) = pod_sets
        fits = pods.where.copy()
        for column, amount in pods.needs:
            fits &= self._nodes.idle[column] + EPSILON >= amount
        if fits.any():
            row = int(fits.argmax())
            self._room[row] = self._idle(pods, row)
            return self._from(self._cycle.now, pods, row)
        for time, ending in groupby(self._ends.one_by_one(self._cycle, self._unknown), _time):
            for row in sorted({self._grow(pods, task.node, task.template.taken) for _, task in ending}):
                if all(free + EPSILON >= amount for free, (_, amount) in zip(self._room[row], pods.needs, strict=True)) and pods.where[row]:
                    return self._from(time, pods, row)
        return None

    def _from(self, start: float, pods: PodSet, row: int) -> Promise:
        self._promise = Promise(start, tuple([(column, row, amount) for column, amount in pods.needs]))
        return self._promise

    def _idle(self, pods: PodSet, row: int) -> list[float]:
        return [self._nodes.idle_cells[column][row] for column, _ in pods.needs]

    def _grow(self, pods: PodSet, row: int, amounts: Vector) -> int:
        """Add what a pod gives back to the room of its row."""
        room = self._room.get(row) or self._idle(pods, row)
        self._room[row] = [free + float(amounts[column]) for free, (column, _) in zip(room, pods.needs, strict=True)]
        return row

    def change(self, promise: Promise, length: float, sign: int) -> None:
        """Take the promised room: first that of the pod, then that of pods which start now."""
        if not length:
            return  # it takes nothing at any time
        if promise is self._promise:
            row = promise.usage[0][1]
            self._beside = {(column, row): free - amount for free, (column, _, amount) in zip(self._room[row], promise.usage, strict=True)}
        elif self._reaches(length):
            for column, row, amount in promise.usage:
                if (column, row) in self._beside:
                    self._beside[column, row] -= amount

    def _reaches(self, length: float) -> bool:
        """Whether a run of this length that begins now reaches the promise."""
        now, promise = self._cycle.now, self._promise
        return promise is not None and (now + length > promise.start or promise.start <= now)

    def free_now(self, length: float) -> Table:
        """The room that is free from now on for the whole length of time."""
        free: Table = self._nodes.idle.copy()
        if self._reaches(length):
            for (column, row), left in self._beside.items():
                free[column, row] = min(free[column, row], left)
        return free
