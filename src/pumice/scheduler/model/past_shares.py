"""Shares for drf and capacity in which what was used before counts beside what is held now. Without a half-life they are off.

    amount = held + usage.weight * mean of what was held before

The amount changes with time, so the order is computed again at intervals even if nothing happens. That is often enough: room becomes
free only by events, and after these the order is computed as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Struct, field

from pumice.api.times import Duration
from pumice.scheduler.model.argument_ranges import OneOf, Range
from pumice.scheduler.model.past_usage import HolderOf, PastUsage
from pumice.scheduler.model.resources import Vector

if TYPE_CHECKING:
    from pumice.scheduler.model.cluster import Cluster


TURNS = 100  #: per half-life: the order is at least computed so often


class PastUsageArgs(Struct):
    half_life: Annotated[Duration, OneOf("1h", "6h", "24h", "168h")] = field(name="usage.halfLife", default=Duration(0))
    past_weight: Annotated[float, Range(0.1, 10, log=True)] = field(name="usage.weight", default=1.0)


class PastShares:
    """The means of holders in one session. `next_turn`: when they are to be computed again."""

    def __init__(self, usage: PastUsage, args: PastUsageArgs, now: float) -> None:
        self._usage, self._now = usage, now
        self._means: dict[str, Vector] = {}
        self.weight = args.past_weight
        self.next_turn = now + args.half_life / TURNS

    def mean(self, holder: str) -> Vector:
        """The mean of what the holder held before."""
        if holder not in self._means:
            self._means[holder] = self._usage.mean(holder, self._now)
        return self._means[holder]


def past_shares(cluster: Cluster, args: PastUsageArgs, holder_of: HolderOf, now: float) -> PastShares | None:
    """The means of all holders at this time; None if the past does not count."""
    if not args.half_life:
        return None
    return PastShares(cluster.used_before(args.half_life, holder_of), args, now)


def format_amount(first: str, less: float, second: str, more: float, whole: str) -> str:
    """Why the first holder is served before the second, by the shares that they held before."""
    return f"{second} used more before: on average {more:.0%} of {whole}, {first} {less:.0%}"
