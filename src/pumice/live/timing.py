"""Measures actions from outside: the cycle stays free of clocks."""

from __future__ import annotations

import time
from dataclasses import replace

from pumice.framework.policy import Action, Policy
from pumice.framework.session import Session
from pumice.live.metrics import LiveMetrics


class Timed(Action):
    """An action that is timed."""

    def __init__(self, action: Action, metrics: LiveMetrics) -> None:
        super().__init__(action.args)
        self._action = action
        self._metrics = metrics

    @property
    def name(self) -> str:  # type: ignore[override]
        return self._action.name

    def run(self, session: Session) -> None:
        started = time.perf_counter()
        self._action.run(session)
        self._metrics.actions.observe((time.perf_counter() - started) * 1000, self.name)


def timed(policy: Policy, metrics: LiveMetrics) -> Policy:
    return replace(policy, actions=tuple(Timed(action, metrics) for action in policy.actions))
