"""NodeUnschedulable: a cordoned node takes no pods but those that tolerate it."""

from collections.abc import Sequence
from typing import Any

from pumice.api.core import Taint
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, row_of
from pumice.scheduler.model import Cluster, Task
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.taint_toleration import tolerates

CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
REFUSAL = Reason("node(s) were unschedulable", final=True)


class NodeUnschedulable(Filter):
    name = "NodeUnschedulable"
    reach = Reach.STATIC
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        return None if any(tolerates(each, CORDON) for each in task.template.spec.tolerations or ()) else task

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        return [Refused(nodes.of(nodes.table.cordoned), REFUSAL)]  # type: ignore[arg-type]


def _schedulable(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    row = row_of(cluster, event)
    return row >= 0 and not cluster.nodes.cordoned[row]


def _tolerates_cordon(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return NodeUnschedulable().prepare(task) is None


PLUGIN = KubePlugin(
    "NodeUnschedulable",
    "filter",
    filters=lambda args, cluster: [NodeUnschedulable()],
    hints={EventKind.NODE_ADDED: _schedulable, EventKind.NODE_TAINTS: _schedulable, EventKind.OWN_TOLERATIONS: _tolerates_cordon},
)
