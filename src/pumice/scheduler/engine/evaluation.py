"""The answers of all rules for one kind of task, kept up to date.

Equal tasks share an evaluation. Between two uses, rules that read single nodes (`Reach.NODE`) are asked again about the rows in the
cluster's log, rules that look further (`Reach.CLUSTER`) about all rows, and the others about none. The result is the same as if all rules
were asked about all rows for each placement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from pumice.scheduler.engine.best_by_bounds import BestByBounds
from pumice.scheduler.engine.normalize_score import weighted
from pumice.scheduler.engine.rules import PLAINLY, Filter, Reach, Reason, Refused, Rejected, Scorer, Unscored
from pumice.scheduler.engine.shared_answers import (
    UNKNOWN,
    Common,
    FeasibleRows,
    Prepared,
    StaticScores,
    brought_to_scale,
    prepared,
    refusal_bits,
)
from pumice.scheduler.engine.view import Scores, View, all_of, any_of
from pumice.scheduler.model import EPSILON, Mask, Rows, Task

NOTHING = -np.inf
FEW_ROWS = 8  #: so few rows are quicker to score one by one
FEW_RANKS = 32  #: so few are quicker to ask about one by one than all, if filters are asked, too
FIT = "NodeResourcesFit"  #: kube-scheduler's name of the filter that refuses tasks that request too much

T = TypeVar("T")


class Evaluation:
    """The masks and scores of all nodes for one kind of task. `rejected`: why no node fits, whatever the masks say; None if one may."""

    def __init__(self, task: Task, common: Common) -> None:
        self._common = common
        self._asking = common.asking
        self.template = task.template
        self.cluster = common.cluster
        self.table = common.cluster.nodes
        self.rejected: Reason | None = None
        self.rejected_by = ""  #: name of the filter that rejected the task
        if task.template.beyond:
            self.rejected, self.rejected_by = Reason(f"it asks for {task.template.beyond}, more than a node can ever have", final=True), FIT
        self.filters: list[tuple[Filter, Any]] = []
        for rule, known in common.filters:
            state = rule.prepare(task) if known is UNKNOWN else known
            if isinstance(state, Rejected):
                if self.rejected is None:
                    self.rejected, self.rejected_by = state.reason, rule.name
            elif state is not None:
                self.filters.append((rule, state))
        self.scorers: list[tuple[Scorer, Any]] = []
        self._node_scorers: list[tuple[Scorer, Any]] = []
        self._other_scorers: list[tuple[Scorer, Any]] = []
        for scorer, known in common.scorers:
            state = prepared(scorer, task) if known is UNKNOWN else known
            if isinstance(state, Unscored):
                self._fail(state)
            elif state is not None:
                self.scorers.append((scorer, state))
                (self._node_scorers if scorer in common.at_each_node else self._other_scorers).append((scorer, state))
        self._feasible = [common.feasible]  #: answers of the filters; those that read amounts are a part of their own
        if by_amounts := [pair for pair in self.filters if pair[0].reads_amounts]:
            self._feasible.append(FeasibleRows(self.cluster, by_amounts, self._asking, common.kept))
        self._position = self._scored = self._measured = self._ranked = -1
        self._was_scored = False
        self._explained: tuple[int, Any] = (-1, None)

    # -- upkeep

    def refresh(self) -> None:
        """Take in the changes that are in the log."""
        position = self.cluster.log.position
        if self._position != position:
            for part in self._feasible:
                part.refresh()
            self.admitted: Mask = reduce(np.logical_and, [part.admitted for part in self._feasible])  #: rows that no filter refuses
            self._position = position

    def room(self, view: View) -> tuple[Mask, Mask]:
        """Masks of the nodes where the request fits into what is idle, and into what will be idle."""
        moving, idle = self.table.moving, view.idle
        now, later = [], []
        for column, amount in self.template.needs:
            now.append(idle[column] > amount - EPSILON)
            if moving:
                later.append(idle[column] + view.releasing[column] - view.pipelined[column] > amount - EPSILON)
        fits = reduce(np.logical_and, now)
        return fits, reduce(np.logical_and, later) if moving else fits.copy()

    def _has_room(self, row: int) -> bool:
        """Whether the request fits into what is idle, and into what will be idle, on one row."""
        return self._fits_now(row) and (not self.table.moving or self._fits_later(row))

    def _fits_now(self, row: int) -> bool:
        idle = self.table.idle_cells
        for column, amount in self.template.needs:  # noqa: SIM110 - a loop is twice as fast as all() over a generator
            if idle[column][row] <= amount - EPSILON:
                return False
        return True

    def _fits_later(self, row: int) -> bool:
        room = self.table.row_future_idle(row).tolist()
        return all(room[column] > amount - EPSILON for column, amount in self.template.needs)

    @property
    def fits_idle(self) -> Mask:
        """A mask of the rows that have room for the request now."""
        self._measure()
        return self._fits_idle

    @property
    def fits_future(self) -> Mask:
        """A mask of the rows that have room for the request once Releasing tasks are gone and Pipelined tasks are placed."""
        self._measure()
        return self._fits_future

    def _measure(self) -> None:
        """Bring the masks of room up to date. Not part of refresh(): eviction computes room itself, one row at a time."""
        if self._measured != self.cluster.log.position:
            changed = None if self._measured < 0 else self._common.kept.changed(self._measured)
            if changed is None:
                self._fits_idle, self._fits_future = self.room(View(self.table))
            elif isinstance(changed.rows, slice):
                row = changed.rows.start
                self._fits_idle[row] = now = self._fits_now(row)
                self._fits_future[row] = self._fits_later(row) if self.table.moving else now
            else:
                self._fits_idle[changed.rows], self._fits_future[changed.rows] = self.room(changed)
            self._measured = self.cluster.log.position

    def _scores_now(self) -> Scores:
        """All rows' scores by scorers that look at each node by itself. Kept from the second call on: most tasks occur once."""
        if not self._was_scored:
            self._was_scored = True
            return self._node_score(self._common.all_rows)
        if self._scored != self.cluster.log.position:
            changed = None if self._scored < 0 else self._common.kept.changed(self._scored)
            if changed is None:
                self._node_scores = self._node_score(self._common.all_rows)
            elif isinstance(changed.rows, slice):
                self._node_scores[changed.rows] = self._score_of(changed.rows.start)
            elif len(changed) <= FEW_ROWS:
                self._node_scores[changed.rows] = [self._score_of(row) for row in changed.row_numbers.tolist()]
            else:
                self._node_scores[changed.rows] = self._node_score(changed)
            self._scored = self.cluster.log.position
        return self._node_scores

    def _node_score(self, view: View) -> Scores:
        scores = [weighted(self._asking.score(rule, state, view), rule.weight) for rule, state in self._node_scorers]
        return reduce(np.add, scores) if len(scores) > 1 else scores[0] + 0.0 if scores else np.zeros(len(view))

    def _score_of(self, row: int) -> float:
        """The score of one row by the scorers that look at each node by itself."""
        ask, table, total = self._asking.score_one, self.table, 0.0
        for rule, state in self._node_scorers:
            total += ask(rule, state, table, row) * rule.weight
        return float(total)

    def remember(self, explain: Callable[[Evaluation], T]) -> T:
        """The explanation of the present state, made once for all equal tasks that need it in this state."""
        position = self._position
        if self._explained[0] != position:
            self._explained = (position, explain(self))
        found: T = self._explained[1]
        return found

    # -- answers; call refresh() first

    @property
    def resolvable(self) -> Mask:
        """A mask of the rows where evictions might help: they are not refused for a final reason."""
        return ~reduce(np.logical_or, [part.final for part in self._feasible])

    @property
    def failing(self) -> Rows:
        """The rows about which some filter could say nothing."""
        failing = [part.failing for part in self._feasible if part.failed]
        return np.flatnonzero(reduce(np.logical_or, failing)) if failing else np.zeros(0, np.intp)

    def totals(self, candidates: Mask) -> Scores:
        """The total score of every row, NOTHING for rows that are no candidates. If a scorer fails, the task is rejected and all rows get
        NOTHING."""
        try:
            return self._totals(candidates)
        except Unscored as failed:
            self._fail(failed)
            return np.full(len(self.table), NOTHING)

    def _fail(self, failed: Unscored) -> None:
        self.rejected, self.rejected_by = failed.reason, ""

    def _totals(self, candidates: Mask) -> Scores:
        scores, everywhere = self._scores_now(), all_of(candidates)
        total = scores.copy() if everywhere else np.where(candidates, scores, NOTHING)
        for rule, state in self._other_scorers:
            level = self._static(rule).level(rule, state) if rule.reach is Reach.STATIC and not rule.relative else None
            if level is not None:
                total += level
                continue
            more = brought_to_scale(rule, self._raw_among(candidates, rule, state))
            if everywhere:
                total += more
            else:
                total[candidates] += more
        return total

    def _raw_among(self, candidates: Mask, rule: Scorer, state: Any) -> Scores:
        """A scorer's scores of the candidates alone, before they are brought to scale."""
        if rule.relative:
            return self._asking.score(rule, state, View(self.table, np.flatnonzero(candidates)))
        raw = self._raw(rule, state)
        return raw.copy() if all_of(candidates) else raw[candidates]

    def _raw(self, rule: Scorer, state: Any) -> Scores:
        if rule.reach is Reach.STATIC:
            return self._static(rule).raw(rule, state)
        return self._asking.score(rule, state, View(self.table))

    @cached_property
    def _static_scores(self) -> StaticScores:
        return StaticScores(self.table, self._asking)

    def _static(self, rule: Scorer) -> StaticScores:
        return self._static_scores if rule.reads_amounts else self._common.static_scores

    def best(self, candidates: Mask) -> int:
        """The row with the highest total score, the first of equal ones; -1 if there is no candidate or the task is rejected."""
        if not any_of(candidates):
            return -1
        row = -1
        if bounds := self._bounds():
            row = bounds.find(self.template, self._score_of, candidates)
            if row >= 0:
                self._was_scored, self._common.best_of_all_served = True, bool(candidates[bounds.foremost])
        if row < 0:
            row = int((self.totals(candidates) if self.scorers else candidates).argmax())
        return row if self.rejected is None else -1

    def best_with_room(self) -> int:
        """The best of the rows that have room now and that no filter refuses; -1 if there is none. The totals of all rows are kept from
        call to call, so that only rows that have changed are asked about. Needs `lasts`."""
        log, levels = self.cluster.log, self._levels
        rows = log.rows_since(self._ranked) if levels is not None and self._ranked >= 0 else None
        if rows is None or len(rows) > FEW_RANKS:
            self.refresh()
            self._ranks = self.totals(self.admitted & self.fits_idle)
        else:
            for row in rows:
                self._ranks[row] = self._rank(row, levels or ())
        self._ranked = log.position
        best = int(self._ranks.argmax())
        return best if self._ranks[best] > NOTHING else -1

    def _rank(self, row: int, levels: Sequence[float]) -> float:
        """The total score of one row; NOTHING if it is no candidate."""
        if not self._fits_now(row):
            return NOTHING
        for part in self._feasible:
            if not part.admits_now(row):
                return NOTHING
        return reduce(add, levels, self._score_of(row))

    @cached_property
    def _levels(self) -> list[float] | None:
        """What each scorer adds that scores all nodes alike; None if there are others that do not look at each node by itself."""
        statics = [(rule, state) for rule, state in self._other_scorers if rule.reach is Reach.STATIC and not rule.relative]
        levels = [level for rule, state in statics if (level := self._static(rule).level(rule, state)) is not None]
        return levels if len(levels) == len(self._other_scorers) else None

    def best_of_all(self) -> int:
        """The best row of all nodes if bounds find it without scores, it has room now and no filter refuses it: then the candidates need
        not be computed. Else -1."""
        bounds = self._bounds() if self._common.best_of_all_served else None
        if bounds is None:
            return -1
        row = bounds.find(self.template, self._score_of)
        served = row >= 0 and self._has_room(row) and all(part.admits(row) for part in self._feasible)
        self._common.best_of_all_served = self._was_scored = served
        return row if served else -1

    def _bounds(self) -> BestByBounds | None:
        """The bounds that may find the best node for a task that occurs for the first time; None if there are none for its scorers."""
        if self._was_scored or self._asking is not PLAINLY or self._common.bounds is None:
            return None
        for rule, _ in self._other_scorers:
            if not self._common.static_scores.is_level(rule):
                return None
        return self._common.bounds(tuple([rule for rule, _ in self._node_scorers]))

    @property
    def lasts(self) -> bool:
        """Whether later sessions may use this evaluation: what its rules prepared for the task holds until a node object or another object
        changes."""
        if self.rejected is not None or self._looks_further or not self.template.needs_only_room:
            return False
        at_nodes, others = (*self._node_filters, *self._node_scorers), self._other_scorers
        return all(rule.plannable for rule, _ in at_nodes) and all(rule.reach is Reach.STATIC for rule, _ in others)

    @property
    def steady(self) -> bool:
        """Whether placing a copy changes the answers for its own row only, and predictably, so that a run of copies can be planned."""
        return self.steady_among(self.table.alive)

    def steady_among(self, candidates: Mask) -> bool:
        """The same as `steady`, if only these rows are candidates."""
        if self._looks_further:
            return False
        if not all(rule.plannable for rule, _ in (*self._node_filters, *self._node_scorers)):
            return False
        return not any(self._varies(rule, state, candidates) for rule, state in self._other_scorers)

    @property
    def _looks_further(self) -> bool:
        return any(rule.reach is Reach.CLUSTER for rule, _ in self.filters)

    @property
    def _node_filters(self) -> Prepared:
        return [pair for pair in self.filters if pair[0].reach is Reach.NODE]

    def _varies(self, rule: Scorer, state: Any, candidates: Mask) -> bool:
        """Whether a scorer may give the candidates different scores."""
        if rule.reach is not Reach.STATIC:
            return not rule.is_constant(state, candidates)
        raw = self._raw(rule, state)
        return bool(len(raw)) and bool((raw != raw[0]).any())

    def extras(self, candidates: Mask) -> list[float]:
        """What each scorer that scores all candidates alike adds to them. Needs `steady`."""
        first = np.zeros(len(self.table), bool)
        first[int(candidates.argmax())] = True
        return [float(brought_to_scale(rule, self._raw_among(first, rule, state))[0]) for rule, state in self._other_scorers]

    def look_ahead(self, view: View, extras: Sequence[float]) -> tuple[Scores, Mask]:
        """The scores of rows with planned copies on them, and a mask of the rows where one more copy fits. Needs `steady`."""
        bits = refusal_bits(self._node_filters, view, self._asking)
        now, later = self.room(view)
        scores = self._node_score(view)
        for extra in extras:
            scores += extra
        return scores, now & later & (bits == 0)

    def refusals(self, rows: Rows | None = None) -> list[Refused]:
        """Every refusal on the given rows (None: all), in the order of the filters; for explaining."""
        view = View(self.table, rows)
        return [refused for rule, state in self.filters for refused in rule.refuse(state, view) if any_of(refused.where)]
