"""Why filters refuse each node, as kube-scheduler reports it: the first filter that refuses a node gives the reason.

The counts of reasons make the message. Whether a reason is final decides if evictions could help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pumice.scheduler.engine import Evaluation, Filter, Reach, Reason, View
from pumice.scheduler.model import Mask, Nodes, Rows, Table

PreparedFilters = Sequence[tuple[Filter, Any]]


class WithNominated(View):
    """A view of nodes with more resources in use than there are in fact. `extra`: [r, row], what is added."""

    def __init__(self, table: Nodes, rows: Rows, extra: Table) -> None:
        super().__init__(table, rows)
        self._extra = extra

    def _show(self, name: str) -> Table:
        shown = super()._show(name)
        if name == "idle":
            return shown - self._extra
        return shown + self._extra if name in ("used", "used_for_filters") else shown


class NodeStatuses(NamedTuple):
    """What filters said of the rows of a view."""

    refused: Mask
    final: Mask
    reasons: list[tuple[str, Mask]]  #: text, and the rows of which it is a reason
    by: frozenset[str] = frozenset()  #: the filters that refused any row
    failure: str = ""  #: why a filter could not judge a row; empty if none failed

    @property
    def counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for text, where in self.reasons:
            counts[text] += int(where.sum())
        return counts

    def joined(self, others: NodeStatuses, rows: Rows) -> NodeStatuses:
        """These statuses, with others added on some of the rows."""
        refused, final, reasons = self.refused.copy(), self.final.copy(), list(self.reasons)
        refused[rows] |= others.refused
        final[rows] |= others.final
        for text, where in others.reasons:
            mask = np.zeros_like(refused)
            mask[rows] = where
            reasons.append((text, mask))
        return NodeStatuses(refused, final, reasons, self.by | others.by)

    def of(self, position: int) -> tuple[str, ...]:
        """All reasons of one row of the view."""
        return tuple(dict.fromkeys(text for text, where in self.reasons if where[position]))

    def without(self, row: int) -> NodeStatuses:
        others = np.ones(len(self.refused), bool)
        others[row] = False
        return self._replace(refused=self.refused & others, final=self.final & others, reasons=[(t, w & others) for t, w in self.reasons])


def speaking(evaluation: Evaluation) -> PreparedFilters:
    """The filters that are asked in trials: those that are not silent. To be called outside of any trial."""
    return [(rule, state) for rule, state in evaluation.filters if not rule.is_silent(state)]


def run_filters(filters: PreparedFilters, view: View, among: Mask, *, narrowed: bool = True) -> NodeStatuses:
    """The statuses of some rows of a view. `narrowed`: PreFilter refusals come first, and take rows out before any filter is asked."""
    answers = [(rule, list(rule.refuse(state, view))) for rule, state in filters]
    refused, final = view.nothing(), view.nothing()
    reasons: list[tuple[str, Mask]] = []
    by: set[str] = set()
    failures: list[str] = []

    def take(rule: Filter, where: Mask, reason: Reason) -> None:
        if where.any():
            if reason.fails:
                failures.append(f'running "{rule.name}" filter plugin: {reason.text}')
            reasons.append((reason.text, where))
            by.add(rule.name)
            refused[where] = True
            if reason.final:
                final[where] = True

    for rule, refusals in answers:
        for where, reason in refusals:
            if reason.from_prefilter and narrowed:
                take(rule, where & among & ~refused, reason)
    plugin, before = "", refused
    for rule, refusals in answers:
        if rule.name != plugin:  # filters of one plugin count as one
            plugin, before = rule.name, refused.copy()
        for where, reason in refusals:
            if reason.from_prefilter:
                continue
            take(rule, where & among & ~(before if rule.reports_all else refused), reason)
    return NodeStatuses(refused, final, reasons, frozenset(by), failures[0] if failures else "")


def sees_columns_only(evaluation: Evaluation) -> bool:
    """Whether its filters, except those that are static, look at a node's resources alone."""
    return all(rule.reach is Reach.STATIC or rule.plannable for rule, _ in evaluation.filters)
