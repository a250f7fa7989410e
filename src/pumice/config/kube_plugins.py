"""Which of kube-scheduler's plugins run at which extension point, and in which order.

A profile lists plugins by point, or for all points at once (`multiPoint`). What is listed at a point counts more than what
`multiPoint` lists, and that more than the defaults. Order: first those that override multiPoint, then multiPoint's, then the rest.
"""

from __future__ import annotations

from collections.abc import Collection

from pumice.api.errors import did_you_mean
from pumice.config.kube_document import PluginRef, PluginSet, PluginSets
from pumice.config.problems import Path, Problems

DEFAULTS: tuple[tuple[str, int], ...] = (
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DynamicResources", 2),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
)

NODE_AND_POD = (
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
)  #: those that look at a pod once before they look at nodes
PREPARED_SCORERS = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
)

#: Extension point (as the configuration writes it) to the plugins that have it. Those of feature gates that are off are known, too.
EXTENDS: dict[str, frozenset[str]] = {
    "preEnqueue": frozenset(["SchedulingGates", "DefaultPreemption", "DynamicResources", "GangScheduling"]),
    "queueSort": frozenset(["PrioritySort"]),
    "preFilter": frozenset(NODE_AND_POD),
    "filter": frozenset(["NodeUnschedulable", "NodeName", "TaintToleration", *NODE_AND_POD]),
    "postFilter": frozenset(["DynamicResources", "DefaultPreemption"]),
    "preScore": frozenset(PREPARED_SCORERS),
    "score": frozenset([*PREPARED_SCORERS, "DynamicResources", "ImageLocality"]),
    "reserve": frozenset(["VolumeBinding", "DynamicResources"]),
    "permit": frozenset(["GangScheduling"]),
    "preBind": frozenset(["VolumeBinding", "DynamicResources"]),
    "bind": frozenset(["DefaultBinder"]),
    "postBind": frozenset(),
    "placementGenerate": frozenset(),
    "placementScore": frozenset(["NodeResourcesFit"]),
    "podGroupPostFilter": frozenset(["DefaultPreemption"]),
}
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
