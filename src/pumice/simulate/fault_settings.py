"""What goes wrong in a simulation, drawn with one seed: nodes are lost, pods are slow, estimates are wrong, the scheduler is away.

The workload file describes faults under `faults:`. API calls, watches and the link that carries them go wrong only where there
are any: with `--whole`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

Draw = Callable[[Any], float]  #: draws a number from a seeded generator


class Losses(NamedTuple):
    """Something is lost `rate` times a second, and comes back after `back` seconds."""

    rate: float
    back: Draw


class Stragglers(NamedTuple):
    """This share of the pods runs `factor` times as long."""

    share: float
    factor: float


class Breaks(NamedTuple):
    """Shares of what watches deliver: `late` comes `late_s` seconds late; at `lost` the watch is cut off, and all is listed again."""

    late: float
    late_s: float
    lost: float


class Api(NamedTuple):
    """How many seconds an API call takes, and the share of calls that fail."""

    slow: Draw | None
    errors: float


@dataclass(frozen=True)
class Faults:
    """All faults of a simulation; by default there are none."""

    seed: int | None = None  #: used instead of the simulation's seed
    nodes: Losses | None = None
    stragglers: Stragglers | None = None
    estimates: Draw | None = None  #: the factor by which the estimate that the scheduler sees is wrong
    scheduler: Losses | None = None
    skew_s: float = 0.0  #: how many seconds the scheduler's clock is ahead
    events: Breaks | None = None
    api: Api | None = None
    link: Losses | None = None  #: between the scheduler and the API server: nothing passes it for a while

    @property
    def of_objects(self) -> str:
        """The first fault that needs API objects and calls; empty if none does."""
        return next((name for name in ("events", "api", "link") if getattr(self, name) is not None), "")


NO_FAULTS = Faults()
