"""kube-scheduler's plugins as rules of the engine: plugin name and arguments to filters and scorers.

Plugins of ours (`pumice.plugins`) may be named in a profile too; they give it their filters and scorers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pumice.api.pod import SpreadConstraint
from pumice.config.kube_args import BalancedArgs, DefaultConstraint, FitArgs, InterPodAffinityArgs, SpreadArgs, args_of
from pumice.engine.rules import Filter, Scorer
from pumice.framework.open_plugins import GIVEN_FILTERS, GIVEN_SCORERS
from pumice.framework.plugin import Plugin
from pumice.framework.profile import FilterMaker, ScorerMaker
from pumice.model.cluster import Cluster
from pumice.plugins.kube.balanced_allocation import BalancedAllocation
from pumice.plugins.kube.dynamic_resources import EarlierAlternatives, dynamic_resources
from pumice.plugins.kube.extended_resources import classes_by_resource
from pumice.plugins.kube.image_locality import ImageLocality
from pumice.plugins.kube.inter_pod_affinity import InterPodAffinityFilter, InterPodAffinityScorer
from pumice.plugins.kube.node_affinity import NodeAffinityFilter, NodeAffinityScorer
from pumice.plugins.kube.node_name import NodeName
from pumice.plugins.kube.node_ports import NodePorts
from pumice.plugins.kube.node_unschedulable import NodeUnschedulable
from pumice.plugins.kube.node_volume_limits import NodeVolumeLimits
from pumice.plugins.kube.pod_topology_spread import PodTopologySpreadFilter, PodTopologySpreadScorer
from pumice.plugins.kube.resources_fit import FitFilter, LeastAllocated, MostAllocated, RequestedToCapacityRatio, ResourceScorer
from pumice.plugins.kube.spread_constraints import SYSTEM_DEFAULTS, SpreadConstraints
from pumice.plugins.kube.taint_toleration import TaintFilter, TaintScorer
from pumice.plugins.kube.volume_binding import BoundVolumes, WaitingVolumes
from pumice.plugins.kube.volume_restrictions import VolumeRestrictions
from pumice.plugins.kube.volume_zone import VolumeZone

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


def _constraint(text: DefaultConstraint) -> SpreadConstraint:
    return SpreadConstraint(
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
