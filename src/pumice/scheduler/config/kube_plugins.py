"""Which of kube-scheduler's plugins run at which extension point, and in which order.

A profile lists plugins by point, or for all points at once (`multiPoint`). What is listed at a point counts more than what
`multiPoint` lists, and that more than the defaults. Order: first those that override multiPoint, then multiPoint's, then the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pumice.api.errors import did_you_mean
from pumice.api.pod import TopologySpreadConstraint
from pumice.scheduler.config.kube_args import BalancedArgs, DefaultConstraint, FitArgs, InterPodAffinityArgs, SpreadArgs, args_of
from pumice.scheduler.config.kube_document import PluginRef, PluginSet, PluginSets
from pumice.scheduler.config.problems import Path, Problems
from pumice.scheduler.engine.rules import Filter, Scorer
from pumice.scheduler.framework.open_plugins import GIVEN_FILTERS, GIVEN_SCORERS
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.profile import FilterMaker, ScorerMaker
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.kube.devices.extended_resources import classes_by_resource
from pumice.scheduler.plugins.kube.dynamic_resources import EarlierAlternatives, dynamic_resources
from pumice.scheduler.plugins.kube.image_locality import ImageLocality
from pumice.scheduler.plugins.kube.inter_pod_affinity import InterPodAffinityFilter, InterPodAffinityScorer
from pumice.scheduler.plugins.kube.node_affinity import NodeAffinityFilter, NodeAffinityScorer
from pumice.scheduler.plugins.kube.node_name import NodeName
from pumice.scheduler.plugins.kube.node_ports import NodePorts
from pumice.scheduler.plugins.kube.node_resources_balanced_allocation import BalancedAllocation
from pumice.scheduler.plugins.kube.node_resources_fit import (
    FitFilter,
    LeastAllocated,
    MostAllocated,
    RequestedToCapacityRatio,
    ResourceScorer,
)
from pumice.scheduler.plugins.kube.node_unschedulable import NodeUnschedulable
from pumice.scheduler.plugins.kube.node_volume_limits import NodeVolumeLimits
from pumice.scheduler.plugins.kube.pod_topology_spread import (
    SYSTEM_DEFAULTS,
    PodTopologySpreadFilter,
    PodTopologySpreadScorer,
    SpreadConstraints,
)
from pumice.scheduler.plugins.kube.taint_toleration import TaintFilter, TaintScorer
from pumice.scheduler.plugins.kube.volume_binding import BoundVolumes, WaitingVolumes
from pumice.scheduler.plugins.kube.volume_restrictions import VolumeRestrictions
from pumice.scheduler.plugins.kube.volume_zone import VolumeZone

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


# kube-scheduler's plugins as rules of the engine: plugin name and arguments to filters and scorers.
#
# Plugins of ours (`pumice.plugins`) may be named in a profile too; they give it their filters and scorers.

Configured = dict[str, Any]  #: plugin name to its arguments, as given


def _fit_filter(configured: Configured, cluster: Cluster) -> Filter:
    args: FitArgs = args_of(configured, "NodeResourcesFit")
    ignored = frozenset(args.ignored_resources or ()), frozenset(args.ignored_resource_groups or ())
    return FitFilter(*ignored, classes_by_resource(cluster))


def _fit_scorer(configured: Configured) -> ResourceScorer:
    args: FitArgs = args_of(configured, "NodeResourcesFit")
    strategy = args.scoring_strategy
    if strategy.requested_to_capacity_ratio is not None:
        points = [(point.utilization, point.score * 10) for point in strategy.requested_to_capacity_ratio.shape or ()]
        return RequestedToCapacityRatio(points, strategy.weights)
    return (MostAllocated if strategy.type == "MostAllocated" else LeastAllocated)(strategy.weights)


def _balanced(configured: Configured) -> Scorer:
    args: BalancedArgs = args_of(configured, "NodeResourcesBalancedAllocation")
    return BalancedAllocation(args.names)


def _node_affinity_filter(configured: Configured) -> Filter:
    added = args_of(configured, "NodeAffinity").added_affinity
    return NodeAffinityFilter(added.required if added else None)


def _node_affinity_scorer(configured: Configured) -> Scorer:
    added = args_of(configured, "NodeAffinity").added_affinity
    return NodeAffinityScorer((added.preferred if added else None) or ())


def _constraints(configured: Configured, cluster: Cluster) -> SpreadConstraints:
    args: SpreadArgs = args_of(configured, "PodTopologySpread")
    if args.system:
        return SpreadConstraints(cluster, SYSTEM_DEFAULTS, system=True)
    return SpreadConstraints(cluster, [_constraint(c) for c in args.default_constraints or ()], system=False)


def _constraint(text: DefaultConstraint) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        max_skew=text.max_skew,
        topology_key=text.topology_key,
        when_unsatisfiable=text.when_unsatisfiable,  # type: ignore[arg-type]
        min_domains=text.min_domains,
        node_affinity_policy=text.node_affinity_policy,  # type: ignore[arg-type]
        node_taints_policy=text.node_taints_policy,  # type: ignore[arg-type]
        match_label_keys=text.match_label_keys,
    )


def _inter_pod_affinity_scorer(configured: Configured, cluster: Cluster) -> Scorer:
    args: InterPodAffinityArgs = args_of(configured, "InterPodAffinity")
    return InterPodAffinityScorer(
        cluster, hard_weight=args.hard_pod_affinity_weight, ignore_existing=args.ignore_preferred_terms_of_existing_pods
    )


FILTERS: dict[str, Callable[[Configured, Cluster], list[Filter]]] = {
    "NodeUnschedulable": lambda args, cluster: [NodeUnschedulable()],
    "NodeName": lambda args, cluster: [NodeName()],
    "TaintToleration": lambda args, cluster: [TaintFilter()],
    "NodeAffinity": lambda args, cluster: [_node_affinity_filter(args)],
    "NodePorts": lambda args, cluster: [NodePorts(cluster)],
    "NodeResourcesFit": lambda args, cluster: [_fit_filter(args, cluster)],
    "VolumeRestrictions": lambda args, cluster: [VolumeRestrictions(cluster)],
    "NodeVolumeLimits": lambda args, cluster: [NodeVolumeLimits(cluster)],
    "VolumeBinding": lambda args, cluster: [BoundVolumes(cluster), WaitingVolumes(cluster)],
    "VolumeZone": lambda args, cluster: [VolumeZone(cluster)],
    "PodTopologySpread": lambda args, cluster: [PodTopologySpreadFilter(_constraints(args, cluster))],
    "InterPodAffinity": lambda args, cluster: [InterPodAffinityFilter(cluster)],
    "DynamicResources": lambda args, cluster: dynamic_resources(cluster),
}

SCORERS: dict[str, Callable[[Configured, Cluster], Scorer]] = {
    "TaintToleration": lambda args, cluster: TaintScorer(),
    "NodeAffinity": lambda args, cluster: _node_affinity_scorer(args),
    "NodeResourcesFit": lambda args, cluster: _fit_scorer(args),
    "PodTopologySpread": lambda args, cluster: PodTopologySpreadScorer(_constraints(args, cluster)),
    "InterPodAffinity": _inter_pod_affinity_scorer,
    "DynamicResources": lambda args, cluster: EarlierAlternatives(cluster),
    "NodeResourcesBalancedAllocation": lambda args, cluster: _balanced(args),
    "ImageLocality": lambda args, cluster: ImageLocality(cluster),
}


def filter_maker(name: str, configured: Configured, own: Mapping[str, type[Plugin]]) -> FilterMaker | None:
    """Makes the plugin's filters for a session; None if it filters nothing that we know of."""
    if name in FILTERS:
        return lambda session: FILTERS[name](configured, session.cluster)
    if name in own:
        return lambda session: session.plugins.rules_for(own[name], GIVEN_FILTERS)
    return None


def scorer_maker(name: str, weight: int, configured: Configured, own: Mapping[str, type[Plugin]]) -> ScorerMaker | None:
    def weighted(scorers: list[Scorer]) -> list[Scorer]:
        for scorer in scorers:
            scorer.weight = weight
        return scorers

    if name in SCORERS:
        return lambda session: weighted([SCORERS[name](configured, session.cluster)])
    if name in own:
        return lambda session: weighted(session.plugins.rules_for(own[name], GIVEN_SCORERS))
    return None
