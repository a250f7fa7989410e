"""The pods on each node, the most important first, as padded arrays: preemption walks over them, all nodes at a time.

Kept from cycle to cycle: a row is read anew once a pod moved on it. Importance: priority, then how long a pod runs, then arrival.
"""

from collections.abc import Sequence

import numpy as np

from pumice.api.kinds import COMPOSITE_POD_GROUP, NATIVE_POD_GROUP
from pumice.scheduler.eviction.pick_node import Numbers, start
from pumice.scheduler.kube.preemption_units import PreemptionUnit, Units, by_importance, with_pods
from pumice.scheduler.model import Cluster, Index, Rows, Table, Task

NOBODY = 2**62  #: the priority of an empty place: no pod has a higher one


def importance(task: Task) -> tuple[int, float, int]:
    """The sort key of a pod, the most important first. A pod without a start time counts as started just now."""
    return (-task.pod_priority, float("inf") if task.started is None else task.started, task.number)


class VictimsTable(Index):
    """The pods of each node, the most important first, with their requests.

    `stamp[n]` grows when a row is read anew. Arrays are [place, row], [place, r, row].
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._dirty: set[int] = set()  #: rows that changed
        self._shape = (0, 0, 0)

    def change(self, row: int, task: Task, sign: int) -> None:
        self._dirty.add(row)

    def refresh(self) -> None:
        nodes, width = len(self.cluster.nodes), self.cluster.dimensions.width
        if self._shape[1:] != (width, nodes):
            self._clear(max(8, *(len(tasks) for tasks in self.cluster.nodes.tasks)) if nodes else 8, width, nodes)
        if not self._dirty:
            return
        rows, self._dirty = self._dirty, set()
        for row in rows:
            self._read(row)

    def _clear(self, places: int, width: int, nodes: int) -> None:
        self._shape = (places, width, nodes)
        self.tasks: list[list[Task]] = [[] for _ in range(nodes)]
        self.priority: Numbers = np.full((places, nodes), NOBODY, np.int64)
        self.started: Table = np.full((places, nodes), np.inf)
        self.requests = np.zeros((places, width, nodes))
        self.numbers: Numbers = np.zeros(nodes, np.int64)
        self.stamp: Numbers = np.zeros(nodes, np.int64)
        self._dirty = set(range(nodes))

    def _read(self, row: int) -> None:
        tasks = self.tasks[row] = sorted(with_pods(self.cluster.nodes.tasks[row].values()), key=importance)
        if len(tasks) > self._shape[0]:
            self._deepen(2 * len(tasks))
        self.priority[:, row], self.started[:, row], self.requests[:, :, row] = NOBODY, np.inf, 0.0
        for place, task in enumerate(tasks):
            self.priority[place, row] = task.pod_priority
            self.requests[place, task.template.columns, row] = task.template.amounts
            if task.started is not None:
                self.started[place, row] = task.started
        self.numbers[row] = len(tasks)
        self.stamp[row] += 1

    def _deepen(self, places: int) -> None:
        before, width, nodes = self._shape
        more = places - before
        self.priority = np.concatenate([self.priority, np.full((more, nodes), NOBODY, np.int64)])
        self.started = np.concatenate([self.started, np.full((more, nodes), np.inf)])
        self.requests = np.concatenate([self.requests, np.zeros((more, width, nodes))])
        self._shape = (places, width, nodes)

    def depth(self, rows: Rows) -> int:
        """The greatest number of places in use on one of the rows."""
        return int(self.numbers[rows].max(initial=0))

    def sizes(self, depth: int, rows: Rows) -> Numbers:
        """How many pods go with each place."""
        return np.ones((1, 1), np.int64)

    def victims(self, row: int, places: Sequence[int]) -> list[Task]:
        return [self.tasks[row][place] for place in places]


class UnitsTable(VictimsTable):
    """The same where pods of groups run: a place is a unit of preemption that has pods on the node, with what those request.

    When a pod moves, all rows of the group that it is evicted with are read anew.
    """

    kinds = (NATIVE_POD_GROUP, COMPOSITE_POD_GROUP)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._moved: set[str] = set()  #: PodGroups of which pods moved
        self._versions: tuple[int, ...] = ()
        self._rules: dict[str, tuple[object, ...]] = {}  #: by group: all that units depend on
        self.uneven = 0  #: how many pods on nodes have another priority than their unit

    def change(self, row: int, task: Task, sign: int) -> None:
        super().change(row, task, sign)
        if task.group:
            self._moved.add(task.group)

    def refresh(self) -> None:
        """Nothing: rows are read when the units are known."""

    def read_by(self, units: Units) -> None:
        """Read rows anew by these units."""
        self._units = units
        moved, self._moved = self._moved, set()
        if self._versions != (versions := self.versions()):
            self._versions = versions
            if (rules := units.rules(self.cluster)) != self._rules:
                self._rules, self._shape = rules, (0, 0, 0)
        for leaf in moved if self._shape[0] else ():
            self._dirty.update(units.rows_with(leaf))
        self._made: dict[str, PreemptionUnit] = {}  #: of whole groups, by uid
        super().refresh()

    def _clear(self, places: int, width: int, nodes: int) -> None:
        super()._clear(places, width, nodes)
        self.units: list[list[PreemptionUnit]] = [[] for _ in range(nodes)]
        self._sizes: Numbers = np.zeros((places, nodes), np.int64)
        self._uneven: Numbers = np.zeros(nodes, np.int64)
        self.uneven = 0

    def _read(self, row: int) -> None:
        on_node = sorted(with_pods(self.cluster.nodes.tasks[row].values()), key=lambda task: task.number)
        local: dict[PreemptionUnit, list[Task]] = {}
        for task in on_node:
            local.setdefault(self._units.of_pod(task, self._made), []).append(task)
        units = self.units[row] = by_importance(local, np.inf)
        if len(units) > self._shape[0]:
            self._deepen(2 * len(units))
        self.priority[:, row], self.started[:, row], self.requests[:, :, row] = NOBODY, np.inf, 0.0
        for place, unit in enumerate(units):
            self.priority[place, row], self._sizes[place, row] = unit.priority, len(unit.tasks)
            self.started[place, row] = min(start(task, np.inf) for task in unit.tasks)
            for task in local[unit]:
                self.requests[place, task.template.columns, row] += task.template.amounts
        self.uneven -= int(self._uneven[row])
        self._uneven[row] = sum(task.pod_priority != unit.priority for unit in units for task in unit.tasks)
        self.uneven += int(self._uneven[row])
        self.numbers[row] = len(units)
        self.stamp[row] += 1

    def _deepen(self, places: int) -> None:
        more, nodes = places - self._shape[0], self._shape[2]
        super()._deepen(places)
        self._sizes = np.concatenate([self._sizes, np.zeros((more, nodes), np.int64)])

    def sizes(self, depth: int, rows: Rows) -> Numbers:
        found: Numbers = self._sizes[:depth, rows]
        return found

    def victims(self, row: int, places: Sequence[int]) -> list[Task]:
        return [task for place in places for task in self.units[row][place].tasks]
