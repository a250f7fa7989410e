"""How far preempt and reclaim look for victims that cost less."""

from __future__ import annotations

from msgspec import Struct, field


class Budget(Struct):
    """Arguments of both actions. The last three are Volcano's, of topology-aware preemption."""

    spare: bool = field(name="spareVictims", default=False)  #: ours; without it victims are Volcano's
    candidates_percent: int = field(name="minCandidateNodesPercentage", default=10)
    candidates_least: int = field(name="minCandidateNodesAbsolute", default=1)
    candidates_most: int = field(name="maxCandidateNodesAbsolute", default=100)

    def enough(self, nodes: int) -> int:
        """How many nodes that would do are compared."""
        wanted = max(nodes * self.candidates_percent // 100, self.candidates_least)
        return max(1, min(wanted, self.candidates_most, nodes))
