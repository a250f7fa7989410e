"""nodeorder: kube-scheduler's scorers, each with a weight of its own."""

from typing import Annotated

from msgspec import Struct, field

from pumice.scheduler.engine import Scorer
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import Mask, Range
from pumice.scheduler.plugins.kube.image_locality import ImageLocality
from pumice.scheduler.plugins.kube.indexes.existing_affinity_terms import ExistingTerms
from pumice.scheduler.plugins.kube.inter_pod_affinity import InterPodAffinityScorer
from pumice.scheduler.plugins.kube.least_allocated import LeastAllocated
from pumice.scheduler.plugins.kube.most_allocated import MostAllocated
from pumice.scheduler.plugins.kube.node_affinity import NodeAffinityScorer
from pumice.scheduler.plugins.kube.node_resources_balanced_allocation import BalancedAllocation
from pumice.scheduler.plugins.kube.pod_topology_spread import PodTopologySpreadScorer
from pumice.scheduler.plugins.kube.spread_constraints import SpreadConstraints
from pumice.scheduler.plugins.kube.taint_toleration import TaintScorer


class NodeOrderArgs(Struct):
    least_requested: Annotated[int, Range(0, 10)] = field(name="leastrequested.weight", default=1)
    most_requested: Annotated[int, Range(0, 10)] = field(name="mostrequested.weight", default=0)
    node_affinity: int = field(name="nodeaffinity.weight", default=2)
    pod_affinity: int = field(name="podaffinity.weight", default=2)
    balanced_resource: Annotated[int, Range(0, 10)] = field(name="balancedresource.weight", default=1)
    taint_toleration: int = field(name="tainttoleration.weight", default=3)
    image_locality: int = field(name="imagelocality.weight", default=1)
    topology_spread: int = field(name="podtopologyspread.weight", default=2)


class NodeOrder(Plugin):
    name = "nodeorder"
    reads_only_state = True
    rules_last = True
    Args = NodeOrderArgs

    def scorers(self) -> list[Scorer]:
        args, cluster = self.args, self.session.cluster
        chosen: list[tuple[int, Scorer]] = [
            (args.least_requested, LeastAllocated()),
            (args.most_requested, MostAllocated()),
            (args.balanced_resource, BalancedAllocation(("cpu", "memory", "nvidia.com/gpu"))),
            (args.node_affinity, NodeAffinityScorer()),
            (args.taint_toleration, TaintScorer()),
            (args.pod_affinity, InterPodAffinityScorer(cluster, hard_weight=0, counted_rows=self._counted_rows())),
            (args.image_locality, ImageLocality(cluster)),
            (args.topology_spread, PodTopologySpreadScorer(SpreadConstraints(cluster))),
        ]
        for weight, rule in chosen:
            rule.weight = weight
        return [rule for weight, rule in chosen if weight]

    def _counted_rows(self) -> Mask | None:
        """The nodes with pods that had affinity terms when the session opened; None if no pod has any. As in Volcano, only the terms of
        pods on these nodes count."""
        cluster = self.session.cluster
        return cluster.index(ExistingTerms).holders.present(len(cluster.nodes)) if cluster.with_pod_affinity else None
