"""Measures a cycle from outside: its opening, actions, plugins and rules. The cycle stays free of clocks, and of metrics."""

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pumice.live.scheduler.metrics import LiveMetrics
from pumice.scheduler.engine import Filter, Refused, Scorer, Scores, View
from pumice.scheduler.engine.rules import Asking
from pumice.scheduler.framework.observer import Observer, Stage
from pumice.scheduler.model import Nodes

T = TypeVar("T")

PLUGIN_STAGES = {Stage.OPEN: "OnSessionOpen", Stage.CLOSE: "OnSessionClose"}


class CycleTiming(Observer):
    """Measures the stages of cycles. What queues deserve is read from the plugin that shares out the cluster, after its opening."""

    def __init__(self, metrics: LiveMetrics) -> None:
        self._metrics = metrics
        self._began = 0.0  #: when the current stage began
        self._group_stages: dict[Stage, float] = {}  #: when stages of kube-scheduler's loop began
        self.asking = TimedAsking(metrics.spent)
        self.needs_full_cycles = False  # a cycle whose outcome is known takes no time

    def begins(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.ACTION:
            self._metrics.session_is_open()
        if stage in PLUGIN_STAGES or stage is Stage.ACTION:
            self._began = time.perf_counter()
        else:
            self._group_stages[stage] = time.perf_counter()

    def ends(self, stage: Stage, subject: Any) -> None:
        if stage in self._group_stages:
            self._metrics.kube.took(stage, subject, time.perf_counter() - self._group_stages.pop(stage))
        took_ms = (time.perf_counter() - self._began) * 1000
        if stage is Stage.ACTION:
            self._metrics.actions.observe(took_ms, subject.name)
        elif stage in PLUGIN_STAGES:
            self._metrics.plugins.observe(took_ms, subject.name, PLUGIN_STAGES[stage])
        if stage is Stage.OPEN and hasattr(subject, "entitlements"):
            self._metrics.queues.entitlements = subject.entitlements()


class TimedAsking(Asking):
    """Adds up the seconds that the answers of filters and scorers take."""

    def __init__(self, spent: dict[str, float]) -> None:
        self._spent = spent

    def refuse(self, rule: Filter, state: Any, nodes: View) -> Sequence[Refused]:
        return self._timed("Predicate", rule.refuse, state, nodes)

    def refuses(self, rule: Filter, state: Any, table: Nodes, row: int) -> bool:
        return self._timed("Predicate", rule.refuses, state, table, row)

    def score(self, rule: Scorer, state: Any, nodes: View) -> Scores:
        return self._timed("Scoring", rule.score, state, nodes)

    def score_one(self, rule: Scorer, state: Any, table: Nodes, row: int) -> float:
        return self._timed("Scoring", rule.score_one, state, table, row)

    def _timed(self, part: str, ask: Callable[..., T], *given: Any) -> T:
        started = time.perf_counter()
        try:
            return ask(*given)
        finally:
            self._spent[part] += time.perf_counter() - started
