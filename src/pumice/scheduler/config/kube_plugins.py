"""Which of kube-scheduler's plugins run at which extension point, and in which order.

A profile lists plugins by point, or for all points at once (`multiPoint`). What is listed at a point counts more than what
`multiPoint` lists, and that more than the defaults. Order: first those that override multiPoint, then multiPoint's, then the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pumice.api.errors import did_you_mean
from pumice.api.problems import Path, Problems
from pumice.scheduler.config.kube_document import PluginRef, PluginSet, PluginSets
from pumice.scheduler.engine.rules import Scorer
from pumice.scheduler.framework.open_plugins import GIVEN_FILTERS, GIVEN_SCORERS
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import DefaultPreemptionArgs, FilterMaker, ScorerMaker
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.catalogue import PLUGINS

#: Plugins that neither filter nor score here: part of the loop, or of feature gates that are off.
_OTHERS = (
    KubePlugin("SchedulingGates", "preEnqueue"),
    KubePlugin("PrioritySort", "queueSort"),
    KubePlugin("DefaultPreemption", "preEnqueue postFilter podGroupPostFilter", args=DefaultPreemptionArgs),
    KubePlugin("DefaultBinder", "bind"),
    KubePlugin("NodeDeclaredFeatures", "preFilter filter"),
    KubePlugin("GangScheduling", "preEnqueue permit"),
)
_ALL = {each.name: each for each in (*PLUGINS, *_OTHERS)}
ARGS = {each.name: each.args for each in _ALL.values() if each.args is not None}
_ORDER = (
    *("SchedulingGates", "PrioritySort", *(each.name for each in PLUGINS[:-2])),
    *("DefaultPreemption", *(each.name for each in PLUGINS[-2:]), "DefaultBinder", "NodeDeclaredFeatures"),
)
DEFAULTS: tuple[tuple[str, int], ...] = tuple((name, _ALL[name].weight) for name in _ORDER)

POINTS = (
    *("preEnqueue", "queueSort", "preFilter", "filter", "postFilter", "preScore", "score", "reserve", "permit", "preBind", "bind"),
    *("postBind", "placementGenerate", "placementScore", "podGroupPostFilter"),
)
#: Extension point (as the configuration writes it) to the plugins that have it.
EXTENDS = {point: frozenset(each.name for each in _ALL.values() if point in each.points.split()) for point in POINTS}
KNOWN = frozenset(name for names in EXTENDS.values() for name in names)

Chosen = dict[str, int]  #: plugin to weight, in order


class PluginChoice:
    """Resolves one profile's lists. `own` are plugins of ours, which may filter and score."""

    def __init__(self, sets: PluginSets, path: Path, problems: Problems, own: Collection[str] = ()) -> None:
        self.path, self.problems, self.own = path, problems, own
        self.multi = self._merged_defaults(sets.multi_point)
        self.sets = sets

    def _merged_defaults(self, multi: PluginSet) -> Chosen:
        """The default list as multiPoint changes it."""
        here = (*self.path, "multiPoint", "enabled")
        custom = self._listed(multi.enabled, here, "MultiPoint")
        off = {ref.name for ref in multi.disabled or ()}
        merged = {name: custom.get(name, weight) for name, weight in DEFAULTS if "*" not in off and name not in off}
        return merged | custom

    def _listed(self, refs: list[PluginRef] | None, path: Path, point: str) -> Chosen:
        chosen: Chosen = {}
        for index, ref in enumerate(refs or ()):
            at = (*path, index, "name")
            if ref.name in chosen:
                self.problems.add(at, f'plugin "{ref.name}" already registered as "{point}"')
            if ref.name not in KNOWN and ref.name not in self.own:
                self.problems.add(at, f'{point} "{ref.name}" does not exist{did_you_mean(ref.name, KNOWN | set(self.own))}')
            elif ref.weight < 0:
                self.problems.invalid((*path, index, "weight"), ref.weight, "must not be negative")
            chosen[ref.name] = ref.weight
        return chosen

    def at(self, point: str, chosen: PluginSet) -> Chosen:
        """The plugins of an extension point, in the order of their calls."""
        title = f"{point[0].upper()}{point[1:]}Plugin"
        here = (*self.path, point, "enabled")
        listed = self._listed(chosen.enabled, here, title)
        for index, name in enumerate(listed):
            if name in KNOWN and name not in EXTENDS[point]:
                self.problems.add((*here, index, "name"), f'plugin "{name}" does not extend {title} plugin')
        off = {ref.name for ref in chosen.disabled or ()}
        common = {} if "*" in off else {n: w for n, w in self.multi.items() if self._extends(n, point) and n not in off}
        override = {name: weight or 1 for name, weight in listed.items() if name in common}
        rest = {name: weight or 1 for name, weight in listed.items() if name not in common}
        return override | {name: weight or 1 for name, weight in common.items() if name not in override} | rest

    def _extends(self, name: str, point: str) -> bool:
        return name in EXTENDS[point] or (name in self.own and point in ("filter", "score"))


# Plugins as rules of the engine. Plugins of ours (`pumice.plugins`) may be named in a profile too; they give it their filters and scorers.

Configured = dict[str, Any]  #: plugin name to its arguments, as given


def args_of(configured: Configured, name: str) -> Any:
    """The arguments of a plugin, by default its defaults; None if it has none."""
    return configured.get(name) or (ARGS[name]() if name in ARGS else None)


def filter_maker(name: str, configured: Configured, own: Mapping[str, type[Plugin]]) -> FilterMaker | None:
    """Makes the plugin's filters for a session; None if it filters nothing that we know of."""
    filters = _ALL[name].filters if name in _ALL else None
    if filters is not None:
        return lambda session: filters(args_of(configured, name), session.cluster)
    if name in own:
        return lambda session: session.plugins.rules_for(own[name], GIVEN_FILTERS)
    return None


def scorer_maker(name: str, weight: int, configured: Configured, own: Mapping[str, type[Plugin]]) -> ScorerMaker | None:
    def weighted(scorers: list[Scorer]) -> list[Scorer]:
        for scorer in scorers:
            scorer.weight = weight
        return scorers

    made = _ALL[name].scorer if name in _ALL else None
    if made is not None:
        return lambda session: weighted([made(args_of(configured, name), session.cluster)])
    if name in own:
        return lambda session: weighted(session.plugins.rules_for(own[name], GIVEN_SCORERS))
    return None
