"""What filters and scorers see of the nodes: all rows, some rows, or rows as they would be with more copies of a task."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.api.errors import Suggesting
from pumice.scheduler.model.nodes import Codes, Nodes, Table
from pumice.scheduler.model.resources import Mask, Rows
from pumice.scheduler.model.template import Template

Scores = NDArray[np.float64]

FEW = 64  #: up to so many rows, picking them one by one is the fastest


class View(Suggesting):
    """Columns of `table` for `rows` (None: all)."""

    def __init__(self, table: Nodes, rows: Rows | None = None) -> None:
        self.table = table
        self.rows = rows

    def __len__(self) -> int:
        return len(self.table) if self.rows is None else len(self.rows)

    def of(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """The part of a per-node array that this view shows."""
        return column if self.rows is None else column[self.rows]

    @property
    def row_numbers(self) -> Rows:
        return np.arange(len(self.table)) if self.rows is None else self.rows

    def _show(self, name: str) -> Table:
        table: Table = getattr(self.table, name)
        if self.rows is None:
            return table
        if len(self.rows) < FEW:
            return table[:, self.rows]  # take() would first make a whole copy, since rows are a part of what is reserved
        return table.take(self.rows, axis=1)

    @cached_property
    def allocatable(self) -> Table:
        """[r, n]"""
        return self._show("allocatable")

    @cached_property
    def used(self) -> Table:
        """[r, n], the copies in thought included."""
        return self._show("used")

    @cached_property
    def idle(self) -> Table:
        """[r, n] allocatable less used."""
        return self._show("idle")

    @cached_property
    def scoring(self) -> Table:
        """[cpu and memory, n] `seen` as kube's scores count it."""
        return self._show("scoring")

    @cached_property
    def releasing(self) -> Table:
        return self._show("releasing")

    @cached_property
    def pipelined(self) -> Table:
        return self._show("pipelined")

    @cached_property
    def seen(self) -> Table:
        """[r, n] as filters and scores of kube see the node: with promised tasks, without those that the session evicted."""
        return self._show("seen")

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
        """Whether every node here has some of a resource."""
        return self.table.have_all(column) or bool(self.allocatable[column].all())

    def codes(self, key: str) -> tuple[Codes, list[str]]:
        """A code per node for the value of a label, and the values by code; -1 without the label."""
        codes, values = self.table.codes(key)
        return self.of(codes), values  # type: ignore[return-value]

    def nothing(self) -> Mask:
        return np.zeros(len(self), bool)


class PlannedView(View):
    """Rows of another view as they would be with more copies of a task on them. The same row may stand there several times."""

    def __init__(self, base: View, positions: Rows, template: Template, copies: Scores) -> None:
        super().__init__(base.table, base.row_numbers[positions])
        self._base, self._positions = base, positions
        self._template, self._copies = template, copies

    def _show(self, name: str) -> Table:
        shown: Table = getattr(self._base, name).take(self._positions, axis=1)
        return shown

    @cached_property
    def used(self) -> Table:
        return self._show("used") + self._template.request[:, None] * self._copies

    @cached_property
    def seen(self) -> Table:
        return self._show("seen") + self._template.request[:, None] * self._copies

    @cached_property
    def idle(self) -> Table:
        return self._show("idle") - self._template.request[:, None] * self._copies

    @cached_property
    def scoring(self) -> Table:
        more = np.array([[self._template.scoring_cpu], [self._template.scoring_memory]])
        return self._show("scoring") + more * self._copies


def snapshot(table: Nodes, rows: Rows) -> View:
    """A view that stays as it is whatever happens to the table."""
    view = View(table, rows)
    for name in ("allocatable", "used", "idle", "scoring", "seen", "releasing", "pipelined"):
        getattr(view, name)
    return view
