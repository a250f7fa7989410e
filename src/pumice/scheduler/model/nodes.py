"""All nodes as columns; row n is one node, resources are rows of [resource, node] arrays.

A removed node leaves a dead row (nothing allocatable, `alive` False), which a new node may take later, so the rows of other nodes never
change. Labels are interned to integer codes per key: a selector becomes a mask.
"""

from collections.abc import Iterable, Iterator
from typing import cast

import numpy as np

from pumice.api.core import Node, Taint
from pumice.api.selectors import Requirement, Selector, holds_for
from pumice.api.structs import encode
from pumice.scheduler.model import status
from pumice.scheduler.model.exact_sums import EXACT, Sums, Tally
from pumice.scheduler.model.oversubscription import oversubscription
from pumice.scheduler.model.resources import EPSILON, MOST_OF_ONE, Dimensions, Mask, NDArray, Rows, Vector
from pumice.scheduler.model.task import Task

Codes = NDArray[np.int32]
Table = NDArray[np.float64]
Cells = list["memoryview[float]"]  #: the columns of a table, for access to single numbers, at which arrays are slow

GREAT = MOST_OF_ONE // 2  #: pods that could have started never exceed a node's resources by so much
COLUMNS = ("allocatable", "used", "idle", "releasing", "pipelined", "used_for_filters", "nonzero_used")
ABSENT = -1  #: code of a node without the label
NAME = "metadata.name"  #: a key, too, which every node has
MOST_CELLS = 1 << 26  #: of masks that are kept: pods may state very many requirements


class Nodes:
    def __init__(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        self.numeric_taints = False  #: tolerations may compare the values of taints as numbers (gate TaintTolerationComparisonOperators)
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.wire: list[Node] = []
        self.tasks: list[dict[str, Task]] = []  #: per row, its tasks by uid
        self._great: dict[int, Tally] = {}  #: exact sums of the rows whose bulk is above EXACT
        self._bulk: list[int] = []  #: per row, an upper bound of all its sums
        self._dead: list[int] = []  #: rows of nodes that were removed
        self._moving = 0  #: number of tasks that are Releasing or Pipelined
        self._capacity = 0
        self._alive: Mask = np.zeros(0, bool)
        self._cordoned: Mask = np.zeros(0, bool)
        self._least: dict[int, float] = {}
        self._reserve(64)
        self.version = 0  #: changes when any node is put or removed
        self.static_version = 0  #: changes when any node's labels, taints or set changes
        self._labels: dict[str, tuple[Codes, list[str], dict[str, int]]] = {}
        self._keys: set[str] | None = None  #: of the labels of all nodes, once they are known
        self._masks: dict[Requirement, Mask] = {}
        self._taints: tuple[Codes, list[list[Taint]]] | None = None

    # -- columns

    def _reserve(self, rows: int) -> None:
        """Make the arrays anew with room for this number of rows and for all dimensions."""
        width, old = self.dimensions.width, self._capacity

        def grown(name: str, depth: int) -> Table:
            table = np.zeros((depth, rows))
            if old:
                before: Table = getattr(self, name)
                table[: before.shape[0], :old] = before[:, :old]
            return table

        self._allocatable, self._used = grown("_allocatable", width), grown("_used", width)
        self._idle = grown("_idle", width)
        self._releasing, self._pipelined = grown("_releasing", width), grown("_pipelined", width)
        self._used_for_filters, self._nonzero_used = grown("_used_for_filters", width), grown("_nonzero_used", 2)
        alive, cordoned = np.zeros(rows, bool), np.zeros(rows, bool)
        if old:
            alive[:old], cordoned[:old] = self._alive[:old], self._cordoned[:old]
        self._alive, self._cordoned = alive, cordoned
        self._capacity = rows
        self.allocatable_cells, self.used_cells, self.idle_cells = cells(self._allocatable), cells(self._used), cells(self._idle)
        self.releasing_cells, self.pipelined_cells = cells(self._releasing), cells(self._pipelined)
        self.used_for_filters_cells, self.nonzero_cells = cells(self._used_for_filters), cells(self._nonzero_used)
        self._view()

    def _view(self) -> None:
        n = len(self.names)
        self.allocatable: Table = self._allocatable[:, :n]  #: [r, n]
        self.used: Table = self._used[:, :n]  #: [r, n] requests of the tasks that hold a place, tasks being deleted included
        self.idle: Table = self._idle[:, :n]  #: [r, n] allocatable less used
        self.releasing: Table = self._releasing[:, :n]  #: [r, n] the part of `used` that is being released
        self.pipelined: Table = self._pipelined[:, :n]  #: [r, n] promised to tasks that wait for `releasing`
        #: [r, n] what kube-scheduler's filters and scores see: pipelined tasks included, tasks that the session evicted left out
        self.used_for_filters: Table = self._used_for_filters[:, :n]
        #: [cpu and memory, n] the same, with a default for containers that request nothing, as kube-scheduler's scores count
        self.nonzero_used: Table = self._nonzero_used[:, :n]
        self.columns: dict[str, Table] = {name: getattr(self, name) for name in COLUMNS}  #: these tables by name
        self.alive: Mask = self._alive[:n]
        self.cordoned: Mask = self._cordoned[:n]

    def part(self, name: str, rows: Rows | slice) -> Table:
        """Some rows of the table with this name."""
        if isinstance(rows, slice):
            shown: Table = self.columns[name][:, rows]
            return shown
        reserved: Table = getattr(self, f"_{name}")  # the whole array, which is contiguous: else take() would first copy it
        return reserved.take(rows, axis=1)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[int]:
        """The rows of existing nodes, in order of arrival, except that a new node takes the row of a removed one."""
        return iter(np.flatnonzero(self.alive).tolist())

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def moving(self) -> bool:
        """Whether any task is Releasing or Pipelined on any node, so that `future_idle` differs from `idle`."""
        return bool(self._moving)

    @property
    def future_idle(self) -> Table:
        """What will be idle when all Releasing tasks are gone and all Pipelined tasks are placed."""
        return self.idle + self.releasing - self.pipelined

    def future_idle_in(self, column: int) -> Vector:
        """One resource of `future_idle`."""
        future: Vector = self.idle[column] + self.releasing[column] - self.pipelined[column]
        return future

    def row_idle(self, row: int) -> Vector:
        vector: Vector = self.idle[:, row].copy()
        return vector

    def row_future_idle(self, row: int) -> Vector:
        vector: Vector = self.idle[:, row] + self.releasing[:, row] - self.pipelined[:, row]
        return vector

    def room_in_sums(self, room: Table) -> Table:
        """Room as it counts in sums over nodes: a node that holds more than any node can have counts as full, with room 0, so that it
        takes nothing from the others."""
        return room if room.min(initial=0.0) > -GREAT else np.where(room > -GREAT, room, 0.0)

    def total(self) -> Vector:
        """The sum of what all nodes have allocatable."""
        total: Vector = self.allocatable.sum(axis=1)
        return total

    def least(self, column: int) -> float:
        """The least allocatable amount of a resource among all rows."""
        known = self._least.get(column)
        if known is None:
            known = self._least[column] = float(self.allocatable[column].min(initial=np.inf))
        return known

    def widen(self) -> None:
        for tally in self._great.values():
            tally.widen(self.dimensions)
        self._reserve(self._capacity)

    # -- nodes

    def put(self, node: Node) -> int:
        """Add or update a node, and return its row."""
        self.version += 1
        name = node.metadata.name
        row = self.rows.get(name)
        if row is None:
            row = self.rows[name] = self._dead.pop() if self._dead else self._new_row(node)
            self.names[row] = name
        if not self.alive[row] or _static(self.wire[row]) != _static(node):
            self._forget_static()
        self.wire[row] = node
        self.alive[row] = True
        self.cordoned[row] = bool(node.spec.unschedulable)
        for resource in node.status.allocatable or ():
            self.dimensions.column(resource, offered=True)
        offered = self.dimensions.vector(node.status.allocatable, most=MOST_OF_ONE) + oversubscription(node, self.dimensions)
        allocatable = np.minimum(offered, MOST_OF_ONE)
        self.allocatable[:, row] = allocatable
        self._least.clear()
        self.idle[:, row] = allocatable - self.used[:, row]
        return row

    def _new_row(self, node: Node) -> int:
        row = len(self.names)
        if row >= self._capacity:
            self._reserve(2 * self._capacity)
        self.names.append("")
        self.wire.append(node)
        self.tasks.append({})
        self._bulk.append(0)
        self._view()
        return row

    def remove(self, name: str) -> int | None:
        """Remove a node and return its row, or None if there is no such node. The row is left dead for a new node; the caller takes the
        tasks off it."""
        row = self.rows.pop(name, None)
        if row is not None:
            self.version += 1
            self._dead.append(row)
            self.alive[row] = False
            self.allocatable[:, row] = 0
            self._least.clear()
            self.idle[:, row] = -self.used[:, row]
            self.names[row] = ""
            self._forget_static()
        return row

    def _forget_static(self) -> None:
        self.static_version += 1
        self._labels.clear()
        self._keys = None
        self._masks.clear()
        self._taints = None

    # -- tasks: what a status takes from a node

    def add(self, task: Task, row: int) -> None:
        self.tasks[row][task.uid] = task
        self._count(task, row, 1.0)

    def take(self, task: Task, row: int) -> None:
        """Undo add(); the task must have the status it was added with."""
        del self.tasks[row][task.uid]
        self._count(task, row, -1.0)

    def _count(self, task: Task, row: int, sign: float) -> None:
        bulk = task.template.bulk
        before = self._bulk[row]
        after = self._bulk[row] = before + bulk if sign > 0 else before - bulk
        if before > EXACT or after > EXACT:
            self._moving += int(sign) if task.status & (status.PIPELINED | status.RELEASING) else 0
            self._count_great(task, row, int(sign))
            return
        if not task.evicted:
            self._show(task, row, sign)
        needs = task.template.needs
        if task.status == status.PIPELINED:
            self._moving += int(sign)
            for column, amount in needs:
                self.pipelined_cells[column][row] += amount * sign
            return
        used, idle = self.used_cells, self.idle_cells
        for column, amount in needs:
            change = amount * sign
            used[column][row] += change
            idle[column][row] -= change
        if task.status == status.RELEASING:
            self._moving += int(sign)
            for column, amount in needs:
                self.releasing_cells[column][row] += amount * sign

    def show(self, task: Task, row: int, sign: float) -> None:
        """Count a task (sign 1), or no longer count it (-1), in the sums that filters and scores see."""
        if self._bulk[row] > EXACT:
            self._great[row].show(task, int(sign))
            self._write(row, self._great[row].sums())
        else:
            self._show(task, row, sign)

    def _show(self, task: Task, row: int, sign: float) -> None:
        template, cells, (cpu, memory) = task.template, self.used_for_filters_cells, self.nonzero_cells
        for column, amount in template.needs:
            cells[column][row] += amount * sign
        cpu[row] += template.scoring_cpu * sign
        memory[row] += template.scoring_memory * sign

    def _count_great(self, task: Task, row: int, sign: int) -> None:
        """Count a task on a row whose sums may be too great for float64."""
        tally = self._great.get(row)
        if tally is None:
            tally = self._great[row] = self._tally(row)
        else:
            tally.count(task, sign)
        self._write(row, tally.sums())
        if self._bulk[row] <= EXACT:
            del self._great[row]

    def _write(self, row: int, sums: Sums) -> None:
        self.used[:, row], self.releasing[:, row], self.pipelined[:, row] = sums.used, sums.releasing, sums.pipelined
        self.used_for_filters[:, row], self.nonzero_used[:, row] = sums.used_for_filters, sums.nonzero_used
        self.idle[:, row] = self.allocatable[:, row] - sums.used

    def _tally(self, row: int) -> Tally:
        tally = Tally(self.dimensions)
        for task in self.tasks[row].values():
            tally.count(task, 1)
        return tally

    # -- labels and taints

    def labels(self, row: int) -> dict[str, str]:
        return self.wire[row].metadata.labels or {}

    def taints(self, row: int) -> list[Taint]:
        return self.wire[row].spec.taints or []

    def codes(self, key: str) -> tuple[Codes, list[str]]:
        """For each row the code of its value of a label, ABSENT without it; and the values by code."""
        return self._coded(key)[:2]

    def _coded(self, key: str) -> tuple[Codes, list[str], dict[str, int]]:
        """The codes per row and the values by code, as `codes` returns them, and the codes by value. Of keys that no node has nothing is
        kept: pods may name any number of them."""
        known = self._labels.get(key)
        if known is None:
            if self._keys is None:
                self._keys = {NAME}.union(*(self.labels(row) for row in self))
            if key not in self._keys:
                return np.full(len(self.names), ABSENT, np.int32), [], {}
            values: dict[str, int] = {}
            codes = np.full(len(self.names), ABSENT, np.int32)
            for row in self:
                value = self.names[row] if key == NAME else self.labels(row).get(key)
                if value is not None:
                    codes[row] = values.setdefault(value, len(values))
            known = self._labels[key] = codes, list(values), values
        return known

    def taint_codes(self) -> tuple[Codes, list[list[Taint]]]:
        """For each row the code of its list of taints, and the different lists by code."""
        if self._taints is None:
            lists: dict[bytes, int] = {}
            codes = np.zeros(len(self.names), np.int32)
            different: list[list[Taint]] = []
            for row in range(len(self.names)):
                taints = self.taints(row)
                code = lists.setdefault(encode(taints) if taints else b"", len(different))
                if code == len(different):
                    different.append(taints)
                codes[row] = code
            self._taints = codes, different
        return self._taints

    def satisfying(self, requirement: Requirement) -> Mask:
        """A mask of the rows whose label satisfies one requirement."""
        mask = self._masks.get(requirement)
        if mask is None:
            codes, values, by_value = self._coded(requirement.key)
            if requirement.operator in ("In", "NotIn"):  # one lookup per value: a key such as a node's name has thousands of values
                verdicts = np.full(len(values) + 1, requirement.operator == "NotIn")
                verdicts[[by_value[value] for value in requirement.values if value in by_value]] = requirement.operator == "In"
            else:
                verdicts = np.array([holds_for(requirement, value) for value in (*values, None)], bool)
            if (len(self._masks) + 1) * len(self.names) > MOST_CELLS:
                self._masks.clear()
            mask = self._masks[requirement] = verdicts[codes]
        return mask

    def matching(self, selector: Selector) -> Mask:
        """A mask of the rows whose labels satisfy all requirements."""
        mask = np.ones(len(self.names), bool)
        for requirement in selector:
            mask &= self.satisfying(requirement)
        return mask

    # -- invariants

    def check(self) -> None:
        """Assert that every sum is that of its tasks. For tests."""
        for row in range(len(self.names)):
            for task in self.tasks[row].values():
                assert task.node == row, f"{task} does not know that it is on row {row}"
                assert task.status & (status.ON_NODE | status.PIPELINED), f"{task} cannot stand on a node"
            sums = self._tally(row).sums()
            assert self._bulk[row] == sum(task.template.bulk for task in self.tasks[row].values()), f"bulk of {self.names[row]}"
            assert (self.used[:, row] == sums.used).all(), f"used of {self.names[row]}"
            assert (self.idle[:, row] == self.allocatable[:, row] - sums.used).all(), f"idle of {self.names[row]}"
            assert (self.releasing[:, row] == sums.releasing).all(), f"releasing of {self.names[row]}"
            assert (self.pipelined[:, row] == sums.pipelined).all(), f"pipelined of {self.names[row]}"
            assert (self.used_for_filters[:, row] == sums.used_for_filters).all(), f"used_for_filters of {self.names[row]}"
            assert (self.nonzero_used[:, row] == sums.nonzero_used).all(), f"nonzero_used of {self.names[row]}"


def copies(needs: Iterable[tuple[int, float]], room: Table) -> Vector:
    """Per node, how many tasks with these needs fit into the room."""
    found: Vector = np.full(room.shape[1], np.inf)
    for column, amount in needs:
        found = np.minimum(found, np.floor((room[column] + EPSILON) / amount))
    most: Vector = np.maximum(found, 0)
    return most


def cells(table: Table) -> Cells:
    return [cast("memoryview[float]", memoryview(column)) for column in table]


def _static(node: Node) -> tuple[object, ...]:
    meta, spec, status = node.metadata, node.spec, node.status
    return meta.labels, meta.annotations, spec.taints, spec.unschedulable, status.images, status.declared_features
