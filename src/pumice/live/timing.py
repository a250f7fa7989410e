"""Measures actions and plugins from outside: the cycle stays free of clocks, and of metrics."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, TypeVar

from pumice.engine.rules import Filter, Rule, Scorer
from pumice.engine.view import View
from pumice.framework.plugin import Plugin
from pumice.framework.policy import Action, Choice, Policy
from pumice.framework.profile import FilterMaker, Profile, ScorerMaker
from pumice.framework.session import Session
from pumice.live.metrics import LiveMetrics

R = TypeVar("R", bound=Rule)


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
    """The same plugin, but timed, and so are its rules; one that shares out the cluster tells what queues deserve."""

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

        if "filters" in kind.hooks():

            def filters(self) -> list[Filter]:
                rules: list[Filter] = super().filters()
                return [timed_rule(rule, "refuse", metrics, "Predicate") for rule in rules]

        if "scorers" in kind.hooks():

            def scorers(self) -> list[Scorer]:
                rules: list[Scorer] = super().scorers()
                return [timed_rule(rule, "score", metrics, "Scoring") for rule in rules]

    return Measured


def timed_rule(rule: R, method: str, metrics: LiveMetrics, stage: str) -> R:
    """The same rule; the time that its answers take counts for a stage of the cycle."""
    answer = getattr(type(rule), method)

    def measured(state: Any, nodes: View) -> Any:
        started = time.perf_counter()
        try:
            return answer(rule, state, nodes)
        finally:
            metrics.spent[stage] += time.perf_counter() - started

    setattr(rule, method, measured)
    return rule


def timed_profile(profile: Profile, metrics: LiveMetrics) -> Profile:
    def filters(make: FilterMaker) -> FilterMaker:
        return lambda session: [timed_rule(rule, "refuse", metrics, "Predicate") for rule in make(session)]

    def scorers(make: ScorerMaker) -> ScorerMaker:
        return lambda session: [timed_rule(rule, "score", metrics, "Scoring") for rule in make(session)]

    return replace(profile, filters=tuple(map(filters, profile.filters)), scorers=tuple(map(scorers, profile.scorers)))


def _millis_since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def timed(policy: Policy, metrics: LiveMetrics) -> Policy:
    def measured(choice: Choice) -> Choice:
        return replace(choice, plugin=timed_plugin(choice.plugin, metrics))

    tiers = tuple(tuple(measured(choice) for choice in tier) for tier in policy.tiers)
    policy = replace(policy, actions=tuple(Timed(action, metrics) for action in policy.actions), tiers=tiers)
    if policy.profiles is None:
        return policy
    by_name = {name: timed_profile(profile, metrics) for name, profile in policy.profiles.by_name.items()}
    return replace(policy, profiles=replace(policy.profiles, by_name=by_name))
