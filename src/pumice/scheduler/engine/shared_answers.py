"""The answers of rules that do not depend on how much a task requests: shared by all kinds of task that differ only in amounts.

They are kept up to date from the cluster's log, as far as they depend on the tasks on nodes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pumice.scheduler.engine.best_by_bounds import BestByBounds
from pumice.scheduler.engine.rules import Asking, Filter, Reach, Rejected, Scorer, Unscored
from pumice.scheduler.engine.view import Scores, SharedScores, SharingView, View
from pumice.scheduler.model import Cluster, Mask, NDArray, Nodes, Task

Prepared = Sequence[tuple[Filter, Any]]  #: filters, each with its state for a task

#: The answers of filters about a row, as bits: 1 if it is refused; these if the refusal is final, or if a filter could say nothing.
FINAL, FAILING = np.uint8(2), np.uint8(4)

UNKNOWN = object()  #: the state of a rule that reads amounts, and so is not prepared yet

FEW = 32  #: if so few rows have changed, the filters are not asked about them at once


def refusal_bits(filters: Prepared, view: View, asking: Asking) -> NDArray[np.uint8]:
    """The answers of filters about the rows of a view, as bits."""
    bits = np.zeros(len(view), np.uint8)
    for rule, state in filters:
        for where, reason in asking.refuse(rule, state, view):
            bits |= where
            if reason.final or reason.fails:
                bits |= where * (reason.final * FINAL | reason.fails * FAILING)
    return bits


class FeasibleRows:
    """The answers of some filters about all rows. Between two uses the filters are asked again only about rows that changed."""

    def __init__(self, cluster: Cluster, filters: Prepared, asking: Asking, kept: SharedScores) -> None:
        self._cluster = cluster
        self._asking = asking
        self._kept = kept
        self._filters: dict[Reach, list[tuple[Filter, Any]]] = {}
        for pair in filters:
            self._filters.setdefault(pair[0].reach, []).append(pair)
        self._lasts = self._filters.keys() <= {Reach.STATIC}  #: whether the answers do not depend on the tasks on nodes
        self._bits: dict[Reach, NDArray[np.uint8]] = {}
        self.failed = False  #: whether there was a row about which some filter could say nothing
        self._position = -1

    def refresh(self) -> None:
        """Take in the changes that are in the log."""
        since, position = self._position, self._cluster.log.position
        if since == position:
            return
        is_new = since < 0
        for reach, filters in self._filters.items():
            if since < 0 or reach is Reach.CLUSTER:
                is_new |= self._judge(reach, filters, None)
            elif reach is Reach.NODE:
                is_new |= self._judge(reach, filters, self._kept.changed(since))
        if is_new:
            admitted = self._cluster.nodes.alive
            for bits in self._bits.values():
                admitted = admitted & (bits == 0)
            self.admitted: Mask = admitted  #: rows that none of the filters refuses
        self._position = position

    def admits(self, row: int) -> bool:
        """Whether none of the filters refuses a row. If only a few other rows have changed, the filters are not asked about those."""
        if self._lasts and self._position >= 0:
            return bool(self.admitted[row])
        changed = self._cluster.log.rows_since(self._position) if self._position >= 0 else None
        if changed is None or len(changed) > FEW or Reach.CLUSTER in self._filters:
            self.refresh()
        elif row in changed:
            return self.admits_now(row)
        return bool(self.admitted[row])

    def admits_now(self, row: int) -> bool:
        """Whether a row is admitted, of which the filters that read what stands on it are asked, about this row alone. Needs that all rows
        were asked about before, and no filter that looks further."""
        if not self._cluster.nodes.alive[row] or (Reach.STATIC in self._bits and self._bits[Reach.STATIC][row]):
            return False
        return not self._any_refuses(self._filters.get(Reach.NODE, ()), row)

    def _any_refuses(self, filters: Prepared, row: int) -> bool:
        table, refuses = self._cluster.nodes, self._asking.refuses
        for rule, state in filters:  # noqa: SIM110 - a loop is twice as fast
            if refuses(rule, state, table, row):
                return True
        return False

    def _judge(self, reach: Reach, filters: Prepared, view: View | None) -> bool:
        """Ask filters about some rows (None: all), and return whether their answers have changed."""
        rows = None if view is None else view.rows
        if isinstance(rows, slice) and not self._bits[reach][rows.start] and not self._any_refuses(filters, rows.start):
            return False
        bits = refusal_bits(filters, View(self._cluster.nodes) if view is None else view, self._asking)
        if rows is None:
            self._bits[reach] = bits
        elif self._bits[reach][rows].tobytes() == bits.tobytes():
            return False
        else:
            self._bits[reach][rows] = bits
        self.failed = self.failed or bool(np.bitwise_or.reduce(bits) & FAILING)
        return True

    @property
    def final(self) -> Mask:
        """A mask of the rows whose node is gone, or that are refused for a final reason."""
        return ~self._cluster.nodes.alive | self._with(FINAL)

    @property
    def failing(self) -> Mask:
        """A mask of the rows about which some filter could say nothing."""
        return self._with(FAILING)

    def _with(self, bit: np.uint8) -> Mask:
        found = np.zeros(len(self._cluster.nodes), bool)
        for bits in self._bits.values():
            found |= (bits & bit) > 0
        return found


class StaticScores:
    """The scores of scorers that read only the node objects. Each scorer is asked once."""

    def __init__(self, table: Nodes, asking: Asking) -> None:
        self._table, self._asking = table, asking
        self._found: dict[Scorer, Scores] = {}
        self._levels: dict[Scorer, float | None] = {}

    def raw(self, rule: Scorer, state: Any) -> Scores:
        if rule not in self._found:
            self._found[rule] = self._asking.score(rule, state, View(self._table))
        return self._found[rule]

    def is_level(self, rule: Scorer) -> bool:
        """Whether `level` has found that the scorer gives all nodes the same score."""
        return self._levels.get(rule) is not None

    def level(self, rule: Scorer, state: Any) -> float | None:
        """What the scorer adds to the score of each node, if that is the same for all nodes; else None."""
        if rule not in self._levels:
            raw = self.raw(rule, state)
            self._levels[rule] = None if (raw != raw[0]).any() else float(brought_to_scale(rule, raw[:1])[0])
        return self._levels[rule]


class Common:
    """The answers of rules that do not read how much a task requests. One object for all kinds of task that differ only in that."""

    def __init__(
        self,
        task: Task,
        cluster: Cluster,
        filters: Sequence[Filter],
        scorers: Sequence[Scorer],
        asking: Asking,
        kept: SharedScores,
        bounds: Callable[[tuple[Scorer, ...]], BestByBounds] | None = None,
    ) -> None:
        """`kept`: scores that tasks of all kinds share; `bounds`: the upper bounds of the scores by these scorers."""
        self.cluster, self.asking, self.kept, self.bounds = cluster, asking, kept, bounds
        #: rules with their states; UNKNOWN for rules that read amounts
        self.filters = [(rule, UNKNOWN if rule.reads_amounts else rule.prepare(task)) for rule in filters]
        self.scorers = [(rule, UNKNOWN if rule.reads_amounts else prepared(rule, task)) for rule in scorers]
        self.filters = [pair for pair in self.filters if pair[1] is not None]
        self.scorers = [pair for pair in self.scorers if pair[1] is not None]
        #: scorers that look at each node by itself, and at the tasks on it
        self.at_each_node = {rule for rule, _ in self.scorers if rule.reach is Reach.NODE and not rule.normalizes}
        known = [pair for pair in self.filters if pair[1] is not UNKNOWN and not isinstance(pair[1], Rejected)]
        self.feasible = FeasibleRows(cluster, known, asking, kept)
        self.static_scores = StaticScores(cluster.nodes, asking)
        self.best_of_all_served = True  #: whether it found a node for the last of these tasks, so that the next one tries it first

    @property
    def all_rows(self) -> View:
        """A view for scorers, with the scores that tasks of all kinds share."""
        return SharingView(self.kept, self.cluster.nodes)


def prepared(rule: Scorer, task: Task) -> Any:
    """A scorer's state for a task; the exception Unscored if the scorer could not answer."""
    try:
        return rule.prepare(task)
    except Unscored as failed:
        return failed


def brought_to_scale(rule: Scorer, raw: Scores) -> Scores:
    return (rule.normalize(raw) if rule.normalizes else raw) * rule.weight
