"""Why a pod would go to which node: per node the filters' reasons, each scorer's raw and normalized score and its weight, and the total.

The table is made during a cycle, at the pod's turn, so that it shows what the scheduler sees then, whichever action tries the pod.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.engine import Evaluation, Scorer, Scores, View
from pumice.scheduler.framework.cycle import RehearsalObserver, cycle
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.plugin_guard import Failure
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.kube.diagnosis import NodeStatuses, run_filters
from pumice.scheduler.kube.extenders import AttemptFailed
from pumice.scheduler.model import Cluster, Mask, Task, status


@dataclass
class ScoreTable:
    pod: str
    feasible: list[str] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)
    raw: dict[str, dict[str, float]] = field(default_factory=dict)
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)
    note: str = ""  #: what is unusual about the table, in words
    failures: list[Failure] = field(default_factory=list)  #: failures of plugins in the cycle

    def as_json(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "feasible": self.feasible,
            "rejected": self.rejected,
            "raw": self.raw,
            "scores": self.scores,
            "weights": self.weights,
        }


class Watcher(RehearsalObserver):
    """Makes the table at the task's turn, or at the end of the cycle if the task has no turn."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self.table = ScoreTable(task.key)

    def begins(self, stage: Stage, subject: Any) -> None:
        super().begins(stage, subject)
        if stage is Stage.SESSION:
            self._loop: ScheduleLoop | None = None
            self._has_looked = False
        elif stage is Stage.ATTEMPTS:
            self._loop = subject

    def turn(self, task: Task) -> None:
        if task is self._task and not self._has_looked:
            self._has_looked = True
            self.table = _by_plugins(self.session, task)

    def attempt(self, task: Task) -> None:
        if task is self._task and not self._has_looked:
            self._has_looked = True
            assert self._loop is not None
            self.table = _by_profile(self._loop, task)

    def ends(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.SESSION and not self._has_looked:
            self._has_looked = True
            self.table = _without_turn(subject, self._loop, self._task)


def score(cluster: Cluster, policy: Policy, now: float, task: Task, world: World = NOWHERE) -> ScoreTable:
    """The table at the task's turn, or at the end of the cycle if it has none. The cycle's decisions are carried out in the cluster."""
    watcher = Watcher(task)
    decisions = cycle(cluster, policy, now, world, observer=watcher)
    watcher.table.failures = list(decisions.failures)
    return watcher.table


def _without_turn(session: Session, loop: ScheduleLoop | None, task: Task) -> ScoreTable:
    """The table of a task that no action tried, at the end of the cycle; with the reason as far as it is known."""
    if loop is not None and task.template.scheduler_name in loop.searches:
        table = _by_profile(loop, task)
    else:
        table = _by_plugins(session, task)
    table.note = f"{task.key} had no turn in this cycle ({_why(session, task)}); this is how things stood at its end"
    return table


def _why(session: Session, task: Task) -> str:
    if task.status != status.PENDING:
        return f"it is {status.NAMES[task.status]}"
    if task.gated:
        return "scheduling gates hold it back"
    if task.template.scheduler_name not in session.cluster.schedulers:
        return f"its schedulerName is {task.template.scheduler_name}"
    if task.job is None:
        return "no PodGroup has it"
    refusal = session.job_valid(task.job)
    return refusal.message if refusal is not None else f"its PodGroup is {task.job.phase}"


def _by_profile(loop: ScheduleLoop, task: Task) -> ScoreTable:
    search = loop.searches[task.template.scheduler_name]
    names = search.table.names
    evaluation = search.evaluation(task)
    table = ScoreTable(task.key)
    if evaluation.rejected is not None:
        table.rejected = {names[row]: evaluation.rejected.text for row in search.table}
        return table
    try:
        feasible, extended = search.feasible(task, evaluation)
    except AttemptFailed as error:
        table.note = str(error)
        return table
    statuses = search.statuses(task, evaluation)
    _reject(table, evaluation, statuses)
    table.rejected |= {names[row]: text for row, (text, _) in extended.items()}
    _fill(table, evaluation, feasible)
    for extender, scores in search.extra_scores(task, feasible):
        _enter(table, extender.spec.name, scores[feasible], scores[feasible], extender.spec.weight)
    return table


def _by_plugins(session: Session, task: Task) -> ScoreTable:
    table = ScoreTable(task.key)
    evaluation = session.evaluation(task)
    names = session.nodes.names
    if evaluation.rejected is not None:
        table.rejected = {names[row]: evaluation.rejected.text for row in session.nodes}
        return table
    alive = session.nodes.alive
    room = evaluation.fits_future
    _reject(table, evaluation, run_filters(evaluation.filters, View(session.nodes), alive & room))
    for row in np.flatnonzero(alive & ~room).tolist():
        table.rejected[names[row]] = _shortage(evaluation, row, session.nodes.row_future_idle(row))
    feasible = evaluation.admitted & room
    idle = feasible & evaluation.fits_idle
    _fill(table, evaluation, idle if idle.any() else feasible)
    return table


def _reject(table: ScoreTable, evaluation: Evaluation, statuses: NodeStatuses) -> None:
    names = evaluation.table.names
    for row in np.flatnonzero(statuses.refused).tolist():
        text = ", ".join(statuses.of(row))
        short = _shortage(evaluation, row, evaluation.table.row_idle(row)) if "Insufficient" in text else ""
        table.rejected[names[row]] = short or text


def _shortage(evaluation: Evaluation, row: int, room: Scores) -> str:
    """All resources that are short on a node, in words such as `Insufficient cpu (needs 2, free 500m)`."""
    template, dimensions = evaluation.template, evaluation.table.dimensions
    parts = []
    for column, amount in zip(template.columns.tolist(), template.amounts.tolist(), strict=True):
        if amount > room[column]:
            need, free = dimensions.format(column, amount), dimensions.format(column, max(room[column], 0.0))
            parts.append(f"Insufficient {dimensions.names[column]} (needs {need}, free {free})")
    return ", ".join(parts)


def _fill(table: ScoreTable, evaluation: Evaluation, feasible: Mask) -> None:
    rows = np.flatnonzero(feasible)
    table.feasible = [evaluation.table.names[row] for row in rows.tolist()]
    table.scores["total"] = dict.fromkeys(table.feasible, 0)
    for rule, state in evaluation.scorers:
        view = View(evaluation.table, rows) if rule.relative else View(evaluation.table)
        raw = rule.score(state, view) if rule.relative else rule.score(state, view)[feasible]
        _enter(table, _name(table, rule), raw, rule.normalize(raw) if rule.normalizes else raw, rule.weight)


def _name(table: ScoreTable, rule: Scorer) -> str:
    """The scorer's name in the table. A second scorer of one plugin also shows its class."""
    return rule.name if rule.name not in table.scores else f"{rule.name}/{type(rule).__name__}"


def _enter(table: ScoreTable, name: str, raw: Scores, scores: Scores, weight: float) -> None:
    table.raw[name] = {node: _number(value) for node, value in zip(table.feasible, raw.tolist(), strict=True)}
    table.scores[name] = {node: _number(value) for node, value in zip(table.feasible, scores.tolist(), strict=True)}
    table.weights[name] = _number(weight)
    total = table.scores["total"]
    for node, value in zip(table.feasible, (scores * weight).tolist(), strict=True):
        total[node] = _number(total[node] + value)


def _number(value: float) -> float:
    """The value as an int if it is whole; 0 if it is NaN."""
    if value != value:
        return 0
    return int(value) if value == int(value) else value
