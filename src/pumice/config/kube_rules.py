"""kube-scheduler's plugins as rules of the engine: plugin name and arguments to filters and scorers.

Plugins of ours (`pumice.plugins`) may be named in a profile too; they give it their filters and scorers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pumice.config.kube_args import BalancedArgs, FitArgs, args_of
from pumice.engine.rules import Filter, Scorer
from pumice.framework.plugin import Plugin
from pumice.framework.profile import FilterMaker, ScorerMaker
from pumice.framework.rules import filters_of, scorers_of
from pumice.framework.session import Session
from pumice.plugins.kube.balanced_allocation import BalancedAllocation
from pumice.plugins.kube.node_affinity import NodeAffinityFilter, NodeAffinityScorer
from pumice.plugins.kube.node_unschedulable import NodeUnschedulable
from pumice.plugins.kube.resources_fit import FitFilter, LeastAllocated, MostAllocated, RequestedToCapacityRatio, ResourceScorer
from pumice.plugins.kube.taint_toleration import TaintFilter, TaintScorer

Configured = dict[str, Any]  #: plugin name to its arguments, as given


def _fit_filter(configured: Configured) -> Filter:
    args: FitArgs = args_of(configured, "NodeResourcesFit")
    return FitFilter(frozenset(args.ignored_resources or ()), frozenset(args.ignored_resource_groups or ()))


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


FILTERS: dict[str, Callable[[Configured], Filter]] = {
    "NodeUnschedulable": lambda _: NodeUnschedulable(),
    "TaintToleration": lambda _: TaintFilter(),
    "NodeAffinity": _node_affinity_filter,
    "NodeResourcesFit": _fit_filter,
}

SCORERS: dict[str, Callable[[Configured], Scorer]] = {
    "TaintToleration": lambda _: TaintScorer(),
    "NodeAffinity": _node_affinity_scorer,
    "NodeResourcesFit": _fit_scorer,
    "NodeResourcesBalancedAllocation": _balanced,
}


def filter_maker(name: str, configured: Configured, own: Mapping[str, type[Plugin]]) -> FilterMaker | None:
    """Makes the plugin's filters for a session; None if it filters nothing that we know of."""
    if name in FILTERS:
        return lambda session: [FILTERS[name](configured)]
    if name in own:
        return lambda session: filters_of(_opened(own[name], session), lambda hook: True)
    return None


def scorer_maker(name: str, weight: int, configured: Configured, own: Mapping[str, type[Plugin]]) -> ScorerMaker | None:
    def weighted(scorers: list[Scorer]) -> list[Scorer]:
        for scorer in scorers:
            scorer.weight = weight
        return scorers

    if name in SCORERS:
        return lambda session: weighted([SCORERS[name](configured)])
    if name in own:
        return lambda session: weighted(scorers_of(_opened(own[name], session), lambda hook: True))
    return None


def _opened(plugin: type[Plugin], session: Session) -> Plugin:
    opened = plugin()
    opened.open(session)
    return opened
