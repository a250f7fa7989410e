"""Host ports in use, per row."""

from __future__ import annotations

from pumice.model.cluster import Cluster
from pumice.model.index import Index
from pumice.model.resources import Mask
from pumice.model.task import Task
from pumice.plugins.kube.standing.row_counts import RowCounts

ANY_ADDRESS = "0.0.0.0"


class Ports(Index):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._uses: dict[tuple[str, int], dict[str, RowCounts]] = {}  #: protocol and port to address to who uses it where

    def change(self, row: int, task: Task, sign: int) -> None:
        for protocol, address, port in task.template.host_ports:
            uses = self._uses.setdefault((protocol, port), {})
            counts = uses.setdefault(address, RowCounts())
            counts.add(row, sign)
            if not counts:
                del uses[address]
                if not uses:
                    del self._uses[protocol, port]

    def agrees(self, recount: Ports) -> bool:
        return self._uses == recount._uses

    def taken(self, protocol: str, address: str, port: int, rows: int) -> Mask:
        """Rows where the port is in use at an address that is the same, or where either address is any."""
        uses = self._uses.get((protocol, port), {})
        taken = RowCounts().present(rows)
        for used, counts in uses.items():
            if address in (used, ANY_ADDRESS) or used == ANY_ADDRESS:
                taken |= counts.present(rows)
        return taken
