"""Host ports in use, per row."""

from __future__ import annotations

from pumice.model.cluster import Cluster
from pumice.model.resources import Mask
from pumice.model.task import Task
from pumice.plugins.kube.standing.groups import standing
from pumice.plugins.kube.standing.row_counts import RowCounts

ANY_ADDRESS = "0.0.0.0"


class Ports:
    """See the module. Use `Ports.of(cluster)`."""

    def __init__(self, cluster: Cluster) -> None:
        self._uses: dict[tuple[str, int], dict[str, RowCounts]] = {}  #: protocol and port to address to who uses it where
        for task in standing(cluster):
            self.change(task.node, task, 1)
        cluster.watchers.append(self.change)

    @classmethod
    def of(cls, cluster: Cluster) -> Ports:
        found: Ports | None = cluster.memory.get("ports")
        if found is None:
            found = cluster.memory["ports"] = cls(cluster)
        return found

    def change(self, row: int, task: Task, sign: int) -> None:
        for protocol, address, port in task.template.host_ports:
            uses = self._uses.setdefault((protocol, port), {})
            counts = uses.setdefault(address, RowCounts())
            counts.add(row, sign)
            if not counts:
                del uses[address]

    def taken(self, protocol: str, address: str, port: int, rows: int) -> Mask:
        """Rows where the port is in use at an address that is the same, or where either address is any."""
        uses = self._uses.get((protocol, port), {})
        taken = RowCounts().present(rows)
        for used, counts in uses.items():
            if address in (used, ANY_ADDRESS) or used == ANY_ADDRESS:
                taken |= counts.present(rows)
        return taken
