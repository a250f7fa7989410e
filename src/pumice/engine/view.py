"""What filters and scorers see of the nodes: all rows, some rows, or rows as they would be with more copies of a task."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.api.selectors import Selector
from pumice.model.nodes import Codes, Nodes, Table
from pumice.model.resources import Mask, Rows
from pumice.model.template import Template

Scores = NDArray[np.float64]


class View:
    """Columns of `table` for `rows` (None: all). With `copies` of a template standing on each row in thought."""

    def __init__(self, table: Nodes, rows: Rows | None = None, template: Template | None = None, copies: Scores | None = None) -> None:
        self.table = table
        self.rows = rows
        self._template = template
        self._copies = copies

    def __len__(self) -> int:
        return len(self.table) if self.rows is None else len(self.rows)

    def of(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """The part of a per-node array that this view shows."""
        return column if self.rows is None else column[self.rows]

    @property
    def row_numbers(self) -> Rows:
        return np.arange(len(self.table)) if self.rows is None else self.rows

    def _pick(self, table: Table) -> Table:
        picked: Table = table if self.rows is None else table.take(self.rows, axis=1)
        return picked

    @cached_property
    def allocatable(self) -> Table:
        """[r, n]"""
        return self._pick(self.table.allocatable)

    @cached_property
    def used(self) -> Table:
        """[r, n], the copies in thought included."""
        used = self._pick(self.table.used)
        if self._template is not None and self._copies is not None:
            used = used + self._template.request[:, None] * self._copies
        return used

    @cached_property
    def scoring(self) -> Table:
        """[cpu and memory, n] used as kube's scores count it."""
        scoring = self._pick(self.table.scoring)
        if self._template is not None and self._copies is not None:
            scoring = scoring + np.array([[self._template.scoring_cpu], [self._template.scoring_memory]]) * self._copies
        return scoring

    @cached_property
    def releasing(self) -> Table:
        return self._pick(self.table.releasing)

    @cached_property
    def pipelined(self) -> Table:
        return self._pick(self.table.pipelined)

    @property
    def evicted(self) -> Scores:
        """[n] tasks that the present session evicted; they are in `used` but gone in the eyes of filters."""
        return self._pick(self.table.evicted)[0]

    @property
    def idle(self) -> Table:
        return self.allocatable - self.used

    @property
    def future_idle(self) -> Table:
        return self.allocatable - self.used + self.releasing - self.pipelined

    @property
    def names(self) -> list[str]:
        return [self.table.names[row] for row in self.row_numbers]

    def column(self, resource: str) -> int | None:
        """The row of the resource arrays that holds this resource; None if no object names it."""
        return self.table.dimensions.columns.get(resource)

    def matching(self, selector: Selector) -> Mask:
        mask: Mask = self.of(self.table.matching(selector))  # type: ignore[assignment]
        return mask

    def codes(self, key: str) -> tuple[Codes, list[str]]:
        """A code per node for the value of a label, and the values by code; -1 without the label."""
        codes, values = self.table.codes(key)
        return self.of(codes), values  # type: ignore[return-value]

    def nothing(self) -> Mask:
        return np.zeros(len(self), bool)
