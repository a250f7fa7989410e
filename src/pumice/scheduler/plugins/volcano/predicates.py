"""predicates: kube-scheduler's filters, each of which can be switched off by an argument."""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field

from pumice.scheduler.engine import Filter, Reach, Reason, Refused, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.model import PODS, Nodes, Task
from pumice.scheduler.plugins.kube.dynamic_resources import dynamic_resources
from pumice.scheduler.plugins.kube.inter_pod_affinity import InterPodAffinityFilter
from pumice.scheduler.plugins.kube.node_affinity import NodeAffinityFilter
from pumice.scheduler.plugins.kube.node_ports import NodePorts
from pumice.scheduler.plugins.kube.node_unschedulable import NodeUnschedulable
from pumice.scheduler.plugins.kube.node_volume_limits import NodeVolumeLimits
from pumice.scheduler.plugins.kube.pod_topology_spread import PodTopologySpreadFilter
from pumice.scheduler.plugins.kube.spread_constraints import SpreadConstraints
from pumice.scheduler.plugins.kube.taint_toleration import TaintFilter
from pumice.scheduler.plugins.kube.volume_binding import BoundVolumes, WaitingVolumes
from pumice.scheduler.plugins.kube.volume_zone import VolumeZone


class PredicatesArgs(Struct):
    node_affinity: bool = field(name="predicate.NodeAffinityEnable", default=True)
    node_ports: bool = field(name="predicate.NodePortsEnable", default=True)
    taint_toleration: bool = field(name="predicate.TaintTolerationEnable", default=True)
    pod_affinity: bool = field(name="predicate.PodAffinityEnable", default=True)
    volume_limits: bool = field(name="predicate.NodeVolumeLimitsEnable", default=True)
    volume_zone: bool = field(name="predicate.VolumeZoneEnable", default=True)
    topology_spread: bool = field(name="predicate.PodTopologySpreadEnable", default=True)
    cache: bool = field(name="predicate.CacheEnable", default=False)
    volume_binding: bool = field(name="predicate.VolumeBindingEnable", default=True)
    dynamic_resources: bool = field(name="predicate.DynamicResourceAllocationEnable", default=True)
    bind_timeout_s: int = field(name="volumebinding.bindTimeoutSeconds", default=600)
    volume_weight: int = field(name="volumebinding.weight", default=1)
    volume_shape: list[Any] = field(name="volumebinding.shape", default_factory=list)
    filter_timeout_s: int = field(name="dynamicresources.filterTimeoutSeconds", default=10)


class PodLimit(Filter):
    """Refuses nodes that already have as many pods as they may take."""

    name = "PodLimit"
    reach = Reach.NODE
    reads_amounts = False
    plannable = True
    reason = Reason("node(s) pod number exceeded")

    def prepare(self, task: Task) -> Any:
        return task

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        return [Refused(nodes.allocatable[PODS] <= nodes.used_for_filters[PODS], self.reason)]

    def refuses(self, state: Any, table: Nodes, row: int) -> bool:
        return table.allocatable_cells[PODS][row] <= table.used_for_filters_cells[PODS][row]


class Predicates(Plugin):
    name = "predicates"
    reads_only_state = True
    rules_last = True
    Args = PredicatesArgs

    def filters(self) -> list[Filter]:
        args, cluster = self.args, self.session.cluster
        chosen: list[tuple[bool, Filter]] = [
            (True, PodLimit()),  #: a kubelet starts no more pods than its node allows
            (True, NodeUnschedulable()),  #: kubectl cordon
            (args.node_affinity, NodeAffinityFilter()),  #: nodeSelector and required node affinity
            (args.taint_toleration, TaintFilter()),  #: NoSchedule would refuse the pod, NoExecute would evict it
            (args.node_ports, NodePorts(cluster)),  #: a host port can be opened once
            (args.pod_affinity, InterPodAffinityFilter(cluster)),  #: required terms of the pod, and anti-affinity of those that run
            (args.volume_limits, NodeVolumeLimits(cluster)),  #: a driver attaches so many volumes to a node
            (args.volume_zone, VolumeZone(cluster)),  #: a disk of a cloud is reached from its zone only
            (args.topology_spread, PodTopologySpreadFilter(SpreadConstraints(cluster))),  #: DoNotSchedule
            (args.volume_binding, BoundVolumes(cluster)),  #: a local volume is on one node
            (args.volume_binding, WaitingVolumes(cluster)),  #: WaitForFirstConsumer: some volume must be left for the claim
        ]
        return [rule for wanted, rule in chosen if wanted] + (dynamic_resources(cluster) if args.dynamic_resources else [])
