"""Which rules refuse which nodes: the rules for one kind of pod over all nodes at once, as masks.

Rules about room are kept apart from the other rules, since a full node is another matter than a closed node. A node is "large" if it could
take the pod when it is empty.
"""

from functools import cached_property

import numpy as np
from msgspec import Struct

from pumice.answers.changes import UNSCHEDULABLE
from pumice.scheduler.engine import Evaluation, Filter, Reach, View
from pumice.scheduler.engine.evaluation import FIT
from pumice.scheduler.model import EPSILON, PODS, Mask, Table, Vector, copies
from pumice.scheduler.plugins.kube.taint_toleration import HARD, tolerated

TAINTS = "TaintToleration"
ROOM = frozenset([FIT, "PodLimit", "PromisedRoom"])  #: rules that are about room


class Closed(Struct, frozen=True):
    """Nodes that one rule refuses for one reason."""

    rule: str
    text: str
    where: Mask
    lasting: bool  #: whatever pods run


class NodesFor:
    """The nodes as one kind of pod meets them. `among`: only these nodes count. `lasting`: only rules that do not depend on other pods."""

    def __init__(self, evaluation: Evaluation, among: Mask | None = None, *, lasting: bool = False) -> None:
        self.table = evaluation.table
        self.template = evaluation.template
        self.alive: Mask = self.table.alive if among is None else self.table.alive & among
        view, by_taint = View(self.table), self.alive & ~self._only_cordoned()
        self.closed = [
            Closed(rule.name, refused.reason.text, where, rule.reach is Reach.STATIC)
            for rule, state in evaluation.filters
            if rule.name not in ROOM and (rule.reach is Reach.STATIC or not lasting)
            for refused in rule.refuse(state, view)
            if (where := refused.where & (by_taint if rule.name == TAINTS else self.alive)).any()
        ]
        self._is_kubes = any(rule.name == FIT for rule, _ in evaluation.filters)  #: a leaving pod keeps its room until it is gone
        self._free = self.table.idle if self._is_kubes else self.table.future_idle
        self._full = np.zeros(len(self.table), bool)
        for rule, state in evaluation.filters:
            if rule.name in ROOM:
                self._refuse_full(rule, state, view)

    def _only_cordoned(self) -> Mask:
        """Cordoned nodes without a taint that the pod does not tolerate but the one that says that they are cordoned: the cordon is what
        closes them, and with it the taint goes."""
        found = np.zeros(len(self.table), bool)
        given = self.template.spec.tolerations or ()
        for row in np.flatnonzero(self.alive & self.table.cordoned).tolist():
            taints = [each for each in self.table.taints(row) if each.effect in HARD and not tolerated(each, given, self.table)]
            found[row] = all(taint.key == UNSCHEDULABLE for taint in taints)
        return found

    def _refuse_full(self, rule: Filter, state: object, view: View) -> None:
        for refused in rule.refuse(state, view):
            self._full |= refused.where

    def shut(self, but: str = "", *, lasting: bool = False) -> Mask:
        """Nodes that any rule closes, except the rule named `but`. `lasting`: whatever pods run."""
        mask = np.zeros(len(self.table), bool)
        for each in self.closed:
            if each.rule != but and (each.lasting or not lasting):
                mask |= each.where
        return mask

    @cached_property
    def open(self) -> Mask:
        """Nodes that no rule closes, whatever room they have."""
        return self.alive & ~self.shut()

    @cached_property
    def roomy(self) -> Mask:
        return self.alive & (self.short <= 0).all(axis=0)

    @cached_property
    def large(self) -> Mask:
        """Nodes that could take the pod if they were empty."""
        fits = self.alive.copy()
        for column, amount in self.template.needs:
            fits &= self.table.allocatable[column] > amount - EPSILON
        return fits

    @cached_property
    def columns(self) -> list[int]:
        return [column for column, _ in self.template.needs]

    @cached_property
    def free(self) -> Table:
        """The free room, [column of `columns`, n]."""
        free: Table = self._free[self.columns]
        return free

    @cached_property
    def short(self) -> Table:
        """The room that is missing for one more pod, [column of `columns`, n]; 0 where none is."""
        short: Table = self._needs - self.free
        short[short < EPSILON] = 0.0
        if self._is_kubes:
            short[:, ~self._full] = 0.0  # the rule may be configured to ignore some resources
        short[self.columns.index(PODS), self._full & (short <= 0).all(axis=0)] = 1.0
        return short

    @property
    def _needs(self) -> Table:
        return self.template.amounts[:, None]

    def all_free(self, row: int) -> Vector:
        """The free room of one node, in all dimensions."""
        free: Vector = self._free[:, row].copy()
        return free

    def free_everywhere(self) -> Table:
        """The free room of all nodes, [r, n]; a copy that the caller may change."""
        free: Table = self._free.copy()
        return free

    def distance(self, among: Mask) -> Vector:
        """Per node, the missing parts of the request, summed up over its resources; infinite for nodes not in `among`."""
        return np.where(among, (self.short / self._needs).sum(axis=0), np.inf)

    def copies(self, among: Mask, *, empty: bool = False) -> int:
        """How many pods of this kind find room together on the nodes `among`; `empty`: if nothing else ran."""
        room = self.table.allocatable if empty else self._free
        return int(copies(self.template.needs, room)[among].sum()) if among.any() else 0

    def lacks(self, row: int) -> tuple[str, ...]:
        """All that one node lacks for the pod, in words."""
        names, dimensions = self.table.dimensions.names, self.table.dimensions
        closed = [each.text for each in self.closed if each.where[row]]
        shown = dimensions.format_amount
        short = [
            f"{shown(column, self.short[place, row])} {names[column]} (needs {shown(column, amount)}, "
            f"free {shown(column, max(self.free[place, row], 0.0))})"
            for place, (column, amount) in enumerate(self.template.needs)
            if self.short[place, row] > 0
        ]
        return (*closed, *short)

    def nearest(self, count: int = 3) -> list[int]:
        """The rows of nodes that lack least: first by the fewest rules in the way, then by the smallest missing part of the request."""
        in_the_way = np.zeros(len(self.table))
        for rule in dict.fromkeys(each.rule for each in self.closed):
            in_the_way += self.by(rule)
        rank = np.where(self.alive, in_the_way * 1000.0 + self.distance(self.alive), np.inf)
        rows = np.argsort(rank, kind="stable")[:count]
        return [int(row) for row in rows if np.isfinite(rank[row])]

    def by(self, rule: str) -> Mask:
        """Nodes that one rule closes."""
        mask = np.zeros(len(self.table), bool)
        for each in self.closed:
            if each.rule == rule:
                mask |= each.where
        return mask
