"""Plugins as rules of the engine. A profile may name Pumice's own plugins (`pumice.plugins`), too, for their filters and scorers."""

from collections.abc import Mapping
from typing import Any

from pumice.scheduler.engine import Scorer
from pumice.scheduler.framework.open_plugins import GIVEN_FILTERS, GIVEN_SCORERS
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.profiles import FilterMaker, ScorerMaker
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
