"""What goes wrong in a simulation, drawn with one seed: nodes are lost, pods are slow, estimates are wrong, the scheduler is away.

The workload's page says it under `faults:`. Calls to the API server and watches of it go wrong only where there are any: with `--whole`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

Draw = Callable[[Any], float]  #: of a seeded generator


class Losses(NamedTuple):
    """Something is lost so many times a second, and back after so long."""

    rate: float
    back: Draw


class Stragglers(NamedTuple):
    """This share of the pods needs so many times as long."""

    share: float
    factor: float


class Breaks(NamedTuple):
    """Shares of what watches tell: told late, by so long; or after the watch was cut off, and all is read anew."""

    late: float
    late_s: float
    lost: float


class Api(NamedTuple):
    """How long a call takes, and the share of calls that fail."""

    slow: Draw | None
    errors: float


@dataclass(frozen=True)
class Faults:
    """All switches."""

    seed: int | None = None  #: instead of the simulation's
    nodes: Losses | None = None
    stragglers: Stragglers | None = None
    estimates: Draw | None = None  #: what the scheduler is told is so many times what it would be
    scheduler: Losses | None = None
    skew_s: float = 0.0  #: that the scheduler's clock is ahead
    events: Breaks | None = None
    api: Api | None = None

    @property
    def of_objects(self) -> str:
        """The first that needs objects and calls; empty if none does."""
        return next((name for name in ("events", "api") if getattr(self, name) is not None), "")


NO_FAULTS = Faults()
