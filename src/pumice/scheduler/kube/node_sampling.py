"""The nodes that a search looks at if not at all: zone by zone in turn, from where the last search stopped, until enough are feasible.

The start is kept from cycle to cycle. A search that stops early has also passed the nodes that it refused on the way.
"""

from typing import Any

import numpy as np

from pumice.api.annotations import OLD_REGION_LABEL, OLD_ZONE_LABEL, REGION_LABEL, ZONE_LABEL
from pumice.scheduler.model import Cluster, Mask, Nodes, Rows

FEWEST = 100  #: if there are fewer nodes, all are looked at; and at least so many feasible nodes are looked for
ZONE_KEYS = (ZONE_LABEL, OLD_ZONE_LABEL)
REGION_KEYS = (REGION_LABEL, OLD_REGION_LABEL)


class NodeSampling:
    """The nodes that the next search looks at, in its order. `memory` is kept from session to session."""

    def __init__(self, cluster: Cluster, memory: dict[str, Any]) -> None:
        self._table = cluster.nodes
        self._memory = memory

    @property
    def order(self) -> Rows:
        """The rows of existing nodes, zone by zone in turn."""
        version = (self._table.static_version, len(self._table))
        if self._memory.get("version") != version:
            self._memory["version"], self._memory["order"] = version, in_turn(self._table)
        order: Rows = self._memory["order"]
        return order

    def pick(self, feasible: Mask, among: Mask, wanted: int) -> Mask:
        """The first `wanted` feasible nodes of a search among some nodes."""
        order, start = self.order, self._memory.get("start", 0)
        visited = order[among[order]]
        if not len(visited):
            return feasible
        visited = np.roll(visited, -(start % len(visited)))
        fine = feasible[visited]
        found = np.cumsum(fine)
        end = int(np.argmax(found > wanted)) if found[-1] > wanted else len(visited)
        self._memory["start"] = (start + end) % len(order)
        picked = np.zeros(len(feasible), bool)
        picked[visited[:end][fine[:end]]] = True
        return picked


def enough(percentage: int, nodes: int) -> int:
    """The number of feasible nodes that ends a search. 0 percent means all nodes: sampling is not needed here."""
    if nodes < FEWEST or not 0 < percentage < 100:
        return nodes
    return max(nodes * percentage // 100, FEWEST)


def in_turn(table: Nodes) -> Rows:
    zones: dict[tuple[str, str], list[int]] = {}
    for row in table:
        zones.setdefault(_zone(table.labels(row)), []).append(row)
    longest = max(map(len, zones.values()), default=0)
    turns = [rows[turn] for turn in range(longest) for rows in zones.values() if turn < len(rows)]
    return np.array(turns, np.intp)


def _zone(labels: dict[str, str]) -> tuple[str, str]:
    region = next((labels[key] for key in REGION_KEYS if key in labels), "")
    return region, next((labels[key] for key in ZONE_KEYS if key in labels), "")
