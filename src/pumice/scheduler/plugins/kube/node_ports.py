"""NodePorts: a host port is given to one pod of a node only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pumice.scheduler.engine import Filter, Reach, Reason, Refused, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always
from pumice.scheduler.model import Cluster, Index, Mask, Task
from pumice.scheduler.plugins.kube import ClusterRule, KubePlugin
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts

ANY_ADDRESS = "0.0.0.0"
REFUSAL = Reason("node(s) didn't have free ports for the requested pod ports")


class NodePorts(ClusterRule, Filter):
    name = "NodePorts"
    reach = Reach.NODE
    reads_amounts = False

    def prepare(self, task: Task) -> Any:
        return sorted(task.template.host_ports) or None

    def refuse(self, wanted: Any, nodes: View) -> Sequence[Refused]:
        ports = self.cluster.index(UsedPorts)
        taken = nodes.table.alive & False
        for protocol, address, port in wanted:
            taken |= ports.taken(protocol, address, port, len(nodes.table))
        return [Refused(nodes.of(taken), REFUSAL)]  # type: ignore[arg-type]


def _frees_port(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    if event.pod is None:
        return True
    freed = {(protocol, port) for protocol, _, port in event.pod.template.host_ports}
    return any((protocol, port) in freed for protocol, _, port in task.template.host_ports)


class UsedPorts(Index):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._uses: dict[tuple[str, int], dict[str, PodCounts]] = {}  #: from protocol and port, then address, to the counts of pods per row

    def change(self, row: int, task: Task, sign: int) -> None:
        for protocol, address, port in task.template.host_ports:
            uses = self._uses.setdefault((protocol, port), {})
            counts = uses.setdefault(address, PodCounts())
            counts.add(row, sign)
            if not counts:
                del uses[address]
                if not uses:
                    del self._uses[protocol, port]

    def agrees(self, recount: UsedPorts) -> bool:
        return self._uses == recount._uses

    def taken(self, protocol: str, address: str, port: int, rows: int) -> Mask:
        """The rows where the port is in use at the same address, or where one of the two addresses is 0.0.0.0."""
        uses = self._uses.get((protocol, port), {})
        taken = PodCounts().present(rows)
        for used, counts in uses.items():
            if address in (used, ANY_ADDRESS) or used == ANY_ADDRESS:
                taken |= counts.present(rows)
        return taken


PLUGIN = KubePlugin(
    "NodePorts",
    "preFilter filter",
    filters=lambda args, cluster: [NodePorts(cluster)],
    hints={EventKind.POD_GONE: _frees_port, EventKind.NODE_ADDED: always},
)
