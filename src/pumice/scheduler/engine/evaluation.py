"""The answers of all rules for one kind of task, kept up to date.

Equal tasks share an evaluation. Between two uses only rows named in the cluster's log are asked again (`Reach.NODE`); rules that
look further (`Reach.CLUSTER`) are asked whole, the others never. The result equals asking everything anew, placement by placement.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pumice.scheduler.engine.rules import PLAINLY, Asking, Filter, Reach, Reason, Refused, Rejected, Rule, Scorer, Unscored, weighted
from pumice.scheduler.engine.view import Scores, SharedScores, SharingView, View, touched
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import EPSILON, Mask, Rows
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template

NOTHING = -np.inf
FIT = "NodeResourcesFit"  #: who refuses, in kube-scheduler's words, what asks for too much

T = TypeVar("T")


class Evaluation:
    """Masks and scores of all nodes for one kind of task. `rejected` tells that no node will do, whatever its row says."""

    def __init__(
        self,
        task: Task,
        cluster: Cluster,
        filters: Sequence[Filter],
        scorers: Sequence[Scorer],
        asking: Asking = PLAINLY,
        kept: SharedScores | None = None,
    ) -> None:
        self._asking = asking
        self._kept = kept or SharedScores(cluster)
        self.template = task.template
        self.cluster = cluster
        self.table = cluster.nodes
        self.rejected: Reason | None = None
        self.rejected_by = ""  #: the filter that did
        if task.template.beyond:
            self.rejected, self.rejected_by = Reason(f"it asks for {task.template.beyond}, more than a node can ever have", final=True), FIT
        self.filters: list[tuple[Filter, Any]] = []
        for rule in filters:
            state = rule.prepare(task)
            if isinstance(state, Rejected):
                if self.rejected is None:
                    self.rejected, self.rejected_by = state.reason, rule.name
            elif state is not None:
                self.filters.append((rule, state))
        self.scorers: list[tuple[Scorer, Any]] = []
        for scorer in scorers:
            try:
                state = scorer.prepare(task)
            except Unscored as failed:
                self._fail(failed)
                continue
            if state is not None:
                self.scorers.append((scorer, state))
        self._wide_filters = [pair for pair in self.filters if pair[0].reach is Reach.CLUSTER]
        self._node_filters = [pair for pair in self.filters if pair[0].reach is Reach.NODE]
        self._node_scorers = [pair for pair in self.scorers if pair[0].reach is Reach.NODE and not pair[0].normalizes]
        self._other_scorers = [pair for pair in self.scorers if pair[0].reach is not Reach.NODE or pair[0].normalizes]
        self._static_scores: dict[int, Scores] = {}
        self._levels: dict[int, float | None] = {}
        self._position = self._scored = self._measured = -1
        self._explained: tuple[int, Any] = (-1, None)

    # -- upkeep

    def refresh(self) -> None:
        """Take the log's changes in."""
        if self._position < 0:
            self._start()
        elif self._position == self.cluster.log.position:
            return
        else:
            self._recompute(touched(self.cluster, self._position))
        self._position = self.cluster.log.position

    def _start(self) -> None:
        static = [pair for pair in self.filters if pair[0].reach is Reach.STATIC]
        self._static_bad, self._static_final, _ = self._verdict(static, View(self.table))
        gone = ~self.table.alive
        self._static_bad |= gone
        self._static_final |= gone
        n = len(self.table)
        self._wide_bad, self._wide_final = np.zeros(n, bool), np.zeros(n, bool)
        self._recompute(None)

    def _recompute(self, rows: Rows | None) -> None:
        verdict = self._verdict(self._node_filters, View(self.table, rows))
        if rows is None:
            self._node_bad, self._node_final, self.failing = verdict  #: the last: rows of which some filter could say nothing
        else:
            self._node_bad[rows], self._node_final[rows], self.failing[rows] = verdict
        if self._wide_filters:
            self._wide_bad, self._wide_final, failing = self._verdict(self._wide_filters, View(self.table))
            self.failing |= failing
        self.admitted = ~(self._static_bad | self._node_bad | self._wide_bad)  #: rows that no filter refuses

    def _verdict(self, filters: Sequence[tuple[Filter, Any]], view: View) -> tuple[Mask, Mask, Mask]:
        """Rows refused by any, rows refused for good, and rows of which nothing could be said."""
        bad, final, failing = view.nothing(), view.nothing(), view.nothing()
        for rule, state in filters:
            for refused in self._asking.refuse(rule, state, view):
                bad |= refused.where
                if refused.reason.final:
                    final |= refused.where
                if refused.reason.fails:
                    failing |= refused.where
        return bad, final, failing

    def room(self, view: View) -> tuple[Mask, Mask]:
        """Where the request fits into what is idle, and into what will be."""
        template = self.template
        now, later = np.ones(len(view), bool), np.ones(len(view), bool)
        moving = self.table.moving
        for column, amount in template.needs:
            idle, limit = view.idle[column], amount - EPSILON
            now &= idle > limit
            if moving:
                later &= idle + view.releasing[column] - view.pipelined[column] > limit
        return now, later if moving else now.copy()

    @property
    def fits_idle(self) -> Mask:
        """Rows with room for the request now."""
        self._measure()
        return self._fits_idle

    @property
    def fits_future(self) -> Mask:
        """Rows with room for it once all leave who leave, and all came who are promised."""
        self._measure()
        return self._fits_future

    def _measure(self) -> None:
        """As refresh(), for room by resources, which evictions ask of one row at a time elsewhere."""
        if self._measured != self.cluster.log.position:
            rows = None if self._measured < 0 else touched(self.cluster, self._measured)
            room = self.room(View(self.table, rows))
            if rows is None:
                self._fits_idle, self._fits_future = room
            else:
                self._fits_idle[rows], self._fits_future[rows] = room
            self._measured = self.cluster.log.position

    def _refresh_scores(self) -> None:
        """As refresh(), for what only choosing among candidates needs."""
        if self._scored != self.cluster.log.position:
            rows = None if self._scored < 0 else touched(self.cluster, self._scored)
            scores = self._node_score(SharingView(self._kept, self.table, rows))
            if rows is None:
                self._node_scores = scores
            else:
                self._node_scores[rows] = scores
            self._scored = self.cluster.log.position

    def _node_score(self, view: View) -> Scores:
        total = np.zeros(len(view))
        for rule, state in self._node_scorers:
            total += weighted(self._asking.score(rule, state, view), rule.weight)
        return total

    def remember(self, explain: Callable[[Evaluation], T]) -> T:
        """The explanation of the present state, made once for all equal tasks that meet it."""
        position = self._position
        if self._explained[0] != position:
            self._explained = (position, explain(self))
        found: T = self._explained[1]
        return found

    # -- answers; call refresh() first

    @property
    def resolvable(self) -> Mask:
        """Rows that evictions might open: refused for no reason that is final."""
        return ~(self._static_final | self._node_final | self._wide_final)

    def totals(self, candidates: Mask) -> Scores:
        """The score of every row; rows that are no candidates get NOTHING, as all do if a scorer fails, which rejects the task."""
        try:
            return self._totals(candidates)
        except Unscored as failed:
            self._fail(failed)
            return np.full(len(self.table), NOTHING)

    def _fail(self, failed: Unscored) -> None:
        self.rejected, self.rejected_by = failed.reason, ""

    def _totals(self, candidates: Mask) -> Scores:
        self._refresh_scores()
        total = np.where(candidates, self._node_scores, NOTHING)
        for number, (rule, state) in enumerate(self._other_scorers):
            level = self._level(number, rule, state)
            if level is not None:
                total += level
            else:
                total[candidates] += self._brought_to_scale(rule, self._raw_among(candidates, number, rule, state))
        return total

    def _brought_to_scale(self, rule: Scorer, raw: Scores) -> Scores:
        return (rule.normalize(raw) if rule.normalizes else raw) * rule.weight

    def _level(self, number: int, rule: Scorer, state: Any) -> float | None:
        """What a scorer adds to each node, if it is the same for all and stays so."""
        if rule.reach is not Reach.STATIC or rule.relative:
            return None
        if number not in self._levels:
            raw = self._raw(number, rule, state)
            self._levels[number] = None if (raw != raw[0]).any() else float(self._brought_to_scale(rule, raw[:1])[0])
        return self._levels[number]

    def _raw_among(self, candidates: Mask, number: int, rule: Scorer, state: Any) -> Scores:
        """A scorer's word on the candidates alone."""
        if rule.relative:
            return self._asking.score(rule, state, View(self.table, np.flatnonzero(candidates)))
        return self._raw(number, rule, state)[candidates]

    def _raw(self, number: int, rule: Scorer, state: Any) -> Scores:
        if rule.reach is not Reach.STATIC:
            return self._asking.score(rule, state, View(self.table))
        if number not in self._static_scores:
            self._static_scores[number] = self._asking.score(rule, state, View(self.table))
        return self._static_scores[number]

    def best(self, candidates: Mask) -> int:
        """The row of the highest total, the first of equals; -1 if there is no candidate."""
        if not candidates.any():
            return -1
        row = int(self.totals(candidates).argmax())
        return row if self.rejected is None else -1

    @property
    def lasts(self) -> bool:
        """Whether all that was found for the task before its nodes were asked holds as long as nodes and other objects are as they are."""
        if self.rejected is not None or self._wide_filters or not self.template.needs_only_room:
            return False
        at_nodes, others = (*self._node_filters, *self._node_scorers), self._other_scorers
        return all(rule.plannable for rule, _ in at_nodes) and all(rule.reach is Reach.STATIC for rule, _ in others)

    @property
    def steady(self) -> bool:
        """Whether placing a copy changes nothing but its own row, foreseeably, so that a run of copies can be planned ahead."""
        return self.steady_among(self.table.alive)

    def steady_among(self, candidates: Mask) -> bool:
        """The same, if only these rows are candidates."""
        if self._wide_filters or not all(rule.plannable for rule, _ in (*self._node_filters, *self._node_scorers)):
            return False
        return not any(self._varies(*pair, candidates) for pair in enumerate(self._other_scorers))

    def _varies(self, number: int, pair: tuple[Scorer, Any], candidates: Mask) -> bool:
        """Whether a scorer tells candidates apart by more than a constant."""
        rule, state = pair
        if rule.reach is not Reach.STATIC:
            return not rule.is_constant(state, candidates)
        raw = self._raw(number, rule, state)
        return bool(len(raw)) and bool((raw != raw[0]).any())

    def extras(self, candidates: Mask) -> list[float]:
        """What each scorer that cannot tell the candidates apart adds to all of them. Needs `steady`."""
        first = np.zeros(len(self.table), bool)
        first[int(candidates.argmax())] = True
        found = []
        for number, (rule, state) in enumerate(self._other_scorers):
            raw = self._raw_among(first, number, rule, state)
            found.append(float(self._brought_to_scale(rule, raw)[0]))
        return found

    def look_ahead(self, view: View, extras: Sequence[float]) -> tuple[Scores, Mask]:
        """Scores of rows with copies in thought, and whether one more copy may go there. Needs `steady`."""
        bad, _, _ = self._verdict(self._node_filters, view)
        now, later = self.room(view)
        scores = self._node_score(view)
        for extra in extras:
            scores += extra
        return scores, now & later & ~bad

    def refusals(self, rows: Rows | None = None) -> list[Refused]:
        """Every refusal on the given rows (None: all), in the order of the filters; for explaining."""
        view = View(self.table, rows)
        return [refused for rule, state in self.filters for refused in rule.refuse(state, view) if refused.where.any()]


# One evaluation for all tasks that the rules cannot tell apart. The last used are kept, so that ten thousand different jobs need no more
# memory than some hundred.

KEPT_CELLS = 1_000_000  #: evaluations times nodes
KEPT_AT_LEAST = 64
LASTING_CELLS = 100_000  #: of those that are left for later sessions


class Evaluations:
    """The evaluations used last, by kind of task. For as long as its rules live."""

    def __init__(self, cluster: Cluster, filters: Sequence[Filter], scorers: Sequence[Scorer], asking: Asking = PLAINLY) -> None:
        self._cluster = cluster
        self._filters = filters
        self._scorers = scorers
        self._asking = asking
        self._shared = SharedScores(cluster)
        self._tellers = list(dict.fromkeys(rule.key for rule in (*filters, *scorers) if type(rule).key is not Rule.key))
        self._kept: dict[Hashable, Evaluation] = {}  #: in the order of their last use
        self._room = max(KEPT_AT_LEAST, KEPT_CELLS // max(len(cluster.nodes), 1))

    def key(self, task: Task) -> tuple[Hashable, ...]:
        """Equal for tasks that the rules cannot tell apart."""
        return (task.template, *[tell(task) for tell in self._tellers])

    def of(self, task: Task) -> Evaluation:
        """The evaluation for a task, as it was when last refreshed."""
        key = self.key(task)
        found = self._kept.pop(key, None) or Evaluation(task, self._cluster, self._filters, self._scorers, self._asking, self._shared)
        self._kept[key] = found
        if len(self._kept) > self._room:
            del self._kept[next(iter(self._kept))]
        return found

    def keep_lasting(self) -> None:
        """The session is over. Only what later ones may use is kept."""
        lasting = [(key, evaluation) for key, evaluation in self._kept.items() if evaluation.lasts]
        self._kept = dict(lasting[-LASTING_CELLS // max(len(self._cluster.nodes), 1) :])


# How full nodes would be in what a pod asks for, each resource by its weight.


class ScorePart(NamedTuple):
    """One requested resource in a score: how it weighs, and whether room left counts instead of room used."""

    column: int
    amount: float
    weight: float
    least: bool = False


def parts_of(template: Template, weigh: Callable[[int], tuple[float, bool] | None]) -> list[ScorePart]:
    """The parts of a request that count, by a function from column to weight and kind."""
    amounts = zip(template.columns.tolist(), template.amounts.tolist(), strict=True)
    return [ScorePart(column, amount, *found) for column, amount in amounts if (found := weigh(column)) is not None]


def weighted_mean(parts: Sequence[ScorePart], nodes: View) -> Scores:
    """0..1: how full (or empty) a node would be in what is asked for, by weight; 0 if it would overflow in any of it."""
    total, overflow, weights = np.zeros(len(nodes)), nodes.nothing(), 0.0
    for column, amount, weight, least in parts:
        weights += weight
        room = nodes.allocatable[column]
        full = nodes.used[column] + amount
        if weight:
            overflow |= (full > room) & (room > 0)
            total += np.divide((room - full if least else full) * weight, room, out=np.zeros(len(nodes)), where=room > 0)
    return np.where(overflow, 0.0, total / weights) if weights else total
