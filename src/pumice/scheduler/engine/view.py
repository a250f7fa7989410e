"""Views: the nodes as filters and scorers see them. All rows, some rows, or rows as they would be with more copies of a task."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar
from weakref import proxy

import numpy as np

from pumice.scheduler.model import Cluster, Codes, Mask, NDArray, Nodes, Rows, Table, Template

Scores = NDArray[np.float64]
Numbers = TypeVar("Numbers", NDArray[np.float64], NDArray[np.float32])


class CachedColumn:
    """A property of a view that is computed when it is first read: `cached_property` without the lock that it takes before Python 3.12."""

    def __init__(self, make: Callable[[Any], Table]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, view: View, owner: type) -> Table:
        made: Table = self._make(view)
        view.__dict__[self._name] = made
        return made


class View:
    """The columns of the node table `table` for `rows` (None: all)."""

    def __init__(self, table: Nodes, rows: Rows | slice | None = None) -> None:
        self.table = table
        self.rows = rows
        if rows is None:
            vars(self).update(table.columns)

    def __len__(self) -> int:
        rows = self.rows
        return len(self.table) if rows is None else rows.stop - rows.start if isinstance(rows, slice) else len(rows)

    def of(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """The part of a per-node array that this view shows."""
        return column if self.rows is None else column[self.rows]

    @property
    def row_numbers(self) -> Rows:
        rows = slice(len(self.table)) if self.rows is None else self.rows
        return np.arange(len(self.table))[rows] if isinstance(rows, slice) else rows

    def _show(self, name: str) -> Table:
        assert self.rows is not None
        return self.table.part(name, self.rows)

    @CachedColumn
    def allocatable(self) -> Table:
        """[r, n] what the nodes have allocatable."""
        return self._show("allocatable")

    @CachedColumn
    def used(self) -> Table:
        """[r, n] requests of the tasks that hold a place; in a planned view with the planned copies."""
        return self._show("used")

    @CachedColumn
    def idle(self) -> Table:
        """[r, n] allocatable less used."""
        return self._show("idle")

    @CachedColumn
    def nonzero_used(self) -> Table:
        """[cpu and memory, n] `used_for_filters`, with a default for containers that request nothing, as kube-scheduler's scores count."""
        return self._show("nonzero_used")

    @CachedColumn
    def releasing(self) -> Table:
        return self._show("releasing")

    @CachedColumn
    def pipelined(self) -> Table:
        return self._show("pipelined")

    @CachedColumn
    def used_for_filters(self) -> Table:
        """[r, n] what kube-scheduler's filters and scores see: with Pipelined tasks, without tasks that the session evicted."""
        return self._show("used_for_filters")

    @property
    def future_idle(self) -> Table:
        return self.idle + self.releasing - self.pipelined

    @property
    def names(self) -> list[str]:
        return [self.table.names[row] for row in self.row_numbers]

    def column(self, resource: str) -> int | None:
        """The row of the resource arrays that holds this resource; None if no object names it."""
        return self.table.dimensions.columns.get(resource)

    def have_all(self, column: int) -> bool:
        """Whether every node of the view has some of a resource."""
        return self.table.least(column) > 0 or bool(self.allocatable[column].all())

    def codes(self, key: str) -> tuple[Codes, list[str]]:
        """For each node the code of its value of a label, -1 without the label; and the values by code."""
        codes, values = self.table.codes(key)
        return self.of(codes), values  # type: ignore[return-value]

    def nothing(self) -> Mask:
        return np.zeros(len(self), bool)

    def whatever_task(self, key: Hashable, ask: Callable[[View], Scores]) -> Scores:
        """The answer of `ask` about these rows, which must not depend on the task. Do not change it: it may be kept for other tasks
        (`SharedScores`), and is kept up to date by calling `ask` with `NodeColumns`."""
        return ask(self)


class PlannedView(View):
    """Rows of another view as they would be with more copies of a task on them. The same row may occur several times."""

    def __init__(self, base: View, positions: Rows, template: Template, copies: Scores) -> None:
        super().__init__(base.table, base.row_numbers[positions])
        self._base, self._positions = base, positions
        self._template, self._copies = template, copies

    def _show(self, name: str) -> Table:
        shown: Table = getattr(self._base, name).take(self._positions, axis=1)
        return shown

    @CachedColumn
    def used(self) -> Table:
        return self._show("used") + self._template.request[:, None] * self._copies

    @CachedColumn
    def used_for_filters(self) -> Table:
        return self._show("used_for_filters") + self._template.request[:, None] * self._copies

    @CachedColumn
    def idle(self) -> Table:
        return self._show("idle") - self._template.request[:, None] * self._copies

    @CachedColumn
    def nonzero_used(self) -> Table:
        more = np.array([[self._template.scoring_cpu], [self._template.scoring_memory]])
        return self._show("nonzero_used") + more * self._copies


class NodeColumns(View):
    """A view of a single row, in which each resource of a column is one number instead of an array."""

    def __init__(self, table: Nodes, row: int) -> None:
        super().__init__(table, slice(row, row + 1))
        self._row = row

    def _show(self, name: str) -> Table:
        shown: Table = self.table.columns[name][:, self._row]
        return shown


def any_of(mask: Mask) -> bool:
    """mask.any(), but several times quicker."""
    return bool(len(mask)) and bool(mask[mask.argmax()])


def all_of(mask: Mask) -> bool:
    """mask.all(), but several times quicker."""
    return not len(mask) or bool(mask[mask.argmin()])


def at_least(numbers: Numbers, least: float) -> Numbers:
    """The same array, with lower numbers raised to `least`. To check whether any number is lower is three times quicker than to compare
    all."""
    if len(numbers) and numbers[numbers.argmin()] < least:
        np.maximum(numbers, least, out=numbers)
    return numbers


def at_most(numbers: Numbers, most: float) -> Numbers:
    """The same array or single number, with higher numbers lowered to `most`."""
    if isinstance(numbers, float):
        return min(numbers, most)
    if len(numbers) and numbers[numbers.argmax()] > most:
        np.minimum(numbers, most, out=numbers)
    return numbers


class SharedScores:
    """The answers of rules about all nodes that do not depend on the task, kept up to date from the cluster's log; and the rows that have
    changed, as views."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: dict[Hashable, tuple[int, Scores]] = {}
        self._changed: dict[int, SharingView | None] = {}  #: by the position since when; as of `_position`
        self._position = -1

    def of(self, key: Hashable, ask: Callable[[View], Scores]) -> Scores:
        table, now = self._cluster.nodes, self._cluster.log.position
        since, found = self._found.get(key) or (now, ask(View(table)))
        if since < now:
            changed = self.changed(since)
            if changed is None:
                found[:] = ask(View(table))
            elif isinstance(changed.rows, slice):  # the most frequent case: single numbers are quicker than arrays of one
                found[changed.rows] = ask(NodeColumns(table, changed.rows.start))
            else:
                found[changed.rows] = ask(changed)
        self._found[key] = now, found
        return found

    def changed(self, since: int) -> SharingView | None:
        """A view of the rows that changed since a position of the log, a single row as a slice; None if they are too many to be worth it.
        All who ask before the next change have one view, so that what one of them reads is read for all."""
        log = self._cluster.log
        if self._position != log.position:
            self._position = log.position
            self._changed.clear()
        elif since in self._changed:
            return self._changed[since]
        found = log.rows_since(since)
        rows: Rows | slice | None = None
        if found is not None and len(found) == 1:
            (row,) = found
            rows = slice(row, row + 1)
        elif found is not None and len(found) * 4 < len(self._cluster.nodes):
            rows = np.fromiter(found, np.intp, len(found))
        view = self._changed[since] = None if rows is None else SharingView(self, self._cluster.nodes, rows)
        return view


class SharingView(View):
    """A view whose answers of `whatever_task` are kept in SharedScores."""

    def __init__(self, kept: SharedScores, table: Nodes, rows: Rows | slice | None = None) -> None:
        super().__init__(table, rows)
        self._kept = proxy(kept)  #: which keeps this view: with a cycle, arrays of all nodes would wait for the collector of garbage

    def whatever_task(self, key: Hashable, ask: Callable[[View], Scores]) -> Scores:
        found: Scores = self._kept.of(key, ask)
        return found if self.rows is None else found[self.rows]


def snapshot(table: Nodes, rows: Rows) -> View:
    """A view that stays as it is even if the table changes."""
    view = View(table, rows)
    for name in ("allocatable", "used", "idle", "nonzero_used", "used_for_filters", "releasing", "pipelined"):
        getattr(view, name)
    return view
