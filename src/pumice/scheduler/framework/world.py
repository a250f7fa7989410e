"""What a cycle may need from outside the kept state, asked through a small protocol so that the engine stays pure.

The live loop passes measurements and HTTP extenders; files and simulations pass what they have, by default nothing.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from pumice.scheduler.model.nodes import Nodes
from pumice.scheduler.model.resources import Mask

FRESH_S = 300.0


class Usage(Struct, frozen=True):
    """Measured use of a node, in percent."""

    cpu: float
    memory: float
    measured_at: float  #: seconds since 1970

    def is_fresh(self, now: float) -> bool:
        """Whether it still tells something: what is older is not acted upon."""
        return now - self.measured_at <= FRESH_S


class ExtenderService(Protocol):
    """A service that is asked over HTTP. Raises OSError or ValueError if it cannot answer."""

    def call(self, verb: str, arguments: dict[str, Any]) -> Any: ...


class World(Protocol):
    def usage(self, node: str) -> Usage | None:
        """The node's measured use, if there is any."""

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        """A connection to an extender; None where there are none."""


class Nowhere:
    """No measurements, no extenders."""

    def usage(self, node: str) -> Usage | None:
        return None

    def extender(self, url: str, timeout_s: float, options: dict[str, Any]) -> ExtenderService | None:
        return None


NOWHERE = Nowhere()


def measured(world: World, nodes: Nodes, now: float) -> tuple[Mask, NDArray[np.float64]]:
    """Nodes with a fresh measurement, and [cpu and memory, n] of all, 0..1."""
    known, fractions = np.zeros(len(nodes), bool), np.zeros((2, len(nodes)))
    for row in nodes:
        found = world.usage(nodes.names[row])
        if found is not None and found.is_fresh(now):
            known[row] = True
            fractions[:, row] = found.cpu / 100, found.memory / 100
    return known, fractions
