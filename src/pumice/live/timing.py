"""Measures actions and plugins from outside: the cycle stays free of clocks, and of metrics."""

from __future__ import annotations

import time
from dataclasses import replace

from pumice.framework.plugin import Plugin
from pumice.framework.policy import Action, Choice, Policy
from pumice.framework.session import Session
from pumice.live.metrics import LiveMetrics


class Timed(Action):
    """An action that is timed. The first of a cycle ends the opening of its session."""

    def __init__(self, action: Action, metrics: LiveMetrics) -> None:
        super().__init__(action.args)
        self._action = action
        self._metrics = metrics

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._action.name

    def run(self, session: Session) -> None:
        self._metrics.session_is_open()
        started = time.perf_counter()
        self._action.run(session)
        self._metrics.actions.observe(_millis_since(started), self.name)


def timed_plugin(kind: type[Plugin], metrics: LiveMetrics) -> type[Plugin]:
    """The same plugin, but timed; one that shares out the cluster tells what queues deserve."""

    class Measured(kind):  # type: ignore[valid-type, misc]
        def open(self, session: Session) -> None:
            started = time.perf_counter()
            super().open(session)
            metrics.plugins.observe(_millis_since(started), self.name, "OnSessionOpen")
            if hasattr(self, "entitlements"):
                metrics.queues.entitlements = self.entitlements()

        if "close" in kind.hooks():

            def close(self, session: Session) -> None:
                started = time.perf_counter()
                super().close(session)
                metrics.plugins.observe(_millis_since(started), self.name, "OnSessionClose")

    return Measured


def _millis_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def timed(policy: Policy, metrics: LiveMetrics) -> Policy:
    def measured(choice: Choice) -> Choice:
        return replace(choice, plugin=timed_plugin(choice.plugin, metrics))

    tiers = tuple(tuple(measured(choice) for choice in tier) for tier in policy.tiers)
    return replace(policy, actions=tuple(Timed(action, metrics) for action in policy.actions), tiers=tiers)
