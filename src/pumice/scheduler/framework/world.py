"""What a cycle needs from its caller, as small protocols, so that the cycle stays pure.

The live loop passes measurements, HTTP extenders and a scheduling queue; files and simulations pass what they have, by default nothing.
"""

from typing import Any, Protocol

import numpy as np
from msgspec import Struct

from pumice.scheduler.model import Mask, NDArray, Nodes

FRESH_S = 300.0


class NodeUsage(Struct, frozen=True):
    """The measured use of a node, in percent."""

    cpu: float
    memory: float
    measured_at: float  #: seconds since 1970

    def is_fresh(self, now: float) -> bool:
        """Whether the measurement is recent enough (FRESH_S) to be used."""
        return now - self.measured_at <= FRESH_S


class ExtenderService(Protocol):
    """A connection to an extender over HTTP. `call` raises OSError or ValueError if the extender cannot answer."""

    def call(self, verb: str, arguments: dict[str, Any]) -> Any: ...


class World(Protocol):
    @property
    def acts(self) -> bool:
        """Whether what is decided here is carried out. Else extenders are only asked, and not told of sessions, jobs and pods."""

    def usage(self, node: str) -> NodeUsage | None:
        """The node's measured use; None if there is no measurement."""

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        """A connection to an extender; None if this world has no extenders."""


class Nowhere:
    """A world without measurements and extenders."""

    acts = False

    def usage(self, node: str) -> NodeUsage | None:
        return None

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        return None


NOWHERE = Nowhere()


def measured(world: World, nodes: Nodes, now: float) -> tuple[Mask, NDArray[np.float64]]:
    """A mask of the nodes with a fresh measurement, and [cpu and memory, n]: the measured use of each node, 0..1, and 0 without one."""
    known, fractions = np.zeros(len(nodes), bool), np.zeros((2, len(nodes)))
    for row in nodes:
        found = world.usage(nodes.names[row])
        if found is not None and found.is_fresh(now):
            known[row] = True
            fractions[:, row] = found.cpu / 100, found.memory / 100
    return known, fractions
