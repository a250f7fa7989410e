"""Plugins as rules of the engine. A profile may name Pumice's own plugins (`pumice.plugins`), too, for their filters and scorers."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from pumice.scheduler.engine import Filter, Refused, Scorer, View
from pumice.scheduler.framework.open_plugins import GIVEN_FILTERS, GIVEN_SCORERS
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.profiles import FilterMaker, ScorerMaker
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.kube.catalogue import ALL, ARGS

Configured = dict[str, Any]  #: plugin name to its arguments, as given


def args_of(configured: Configured, name: str) -> Any:
    """The arguments of a plugin: those configured, else its defaults; None if the plugin has no arguments."""
    return configured.get(name) or (ARGS[name]() if name in ARGS else None)


def filter_maker(name: str, configured: Configured, own: Mapping[str, type[Plugin]]) -> FilterMaker:
    """A function that makes the filters of a plugin that has this point, for a session."""
    filters = ALL[name].filters if name in ALL else None
    if filters is not None:
        return lambda session: filters(args_of(configured, name), session.cluster)
    return lambda session: session.plugins.rules_for(own[name], GIVEN_FILTERS)


class PreFilterOnly(Filter):
    """What is left of a filter whose plugin is at `preFilter` and not at `filter`: it rejects pods, and leaves nodes out beforehand."""

    def __init__(self, rule: Filter) -> None:
        self._rule = rule
        self.name, self.reach, self.reads_amounts = rule.name, rule.reach, rule.reads_amounts

    def prepare(self, task: Task) -> Any:
        return self._rule.prepare(task)

    def key(self, task: Task) -> Hashable:
        return self._rule.key(task)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        return [refused for refused in self._rule.refuse(state, nodes) if refused.reason.from_prefilter]


def prefilter_maker(name: str, configured: Configured) -> FilterMaker:
    """A function that makes the filters of a plugin that has only the point `preFilter`."""
    filters = ALL[name].filters
    return lambda session: [PreFilterOnly(rule) for rule in filters(args_of(configured, name), session.cluster)] if filters else []


def scorer_maker(name: str, weight: int, configured: Configured, own: Mapping[str, type[Plugin]]) -> ScorerMaker | None:
    def weighted(scorers: list[Scorer]) -> list[Scorer]:
        for scorer in scorers:
            scorer.weight = weight
        return scorers

    made = ALL[name].scorer if name in ALL else None
    if made is not None:
        return lambda session: weighted([made(args_of(configured, name), session.cluster)])
    if name in own:
        return lambda session: weighted(session.plugins.rules_for(own[name], GIVEN_SCORERS))
    return None
