"""NodeName: a pod that names its node stands there or nowhere."""

from collections.abc import Hashable, Sequence
from typing import Any

from pumice.scheduler.engine import Filter, Reach, Reason, Refused, View
from pumice.scheduler.model import Task
from pumice.scheduler.plugins.kube import KubePlugin

REFUSAL = Reason("node(s) didn't match the requested node name", final=True)


class NodeName(Filter):
    name = "NodeName"
    reach = Reach.STATIC
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        return task.node_name or None

    def key(self, task: Task) -> Hashable:
        return task.node_name or None

    def refuse(self, wanted: Any, nodes: View) -> Sequence[Refused]:
        elsewhere = nodes.nothing() | True
        row = nodes.table.rows.get(wanted)
        if row is not None:
            elsewhere &= nodes.row_numbers != row
        return [Refused(elsewhere, REFUSAL)]


#: A pod that names its node waits for no other node.
PLUGIN = KubePlugin("NodeName", "filter", filters=lambda args, cluster: [NodeName()])
