"""What drf and capacity share: a share in which what was used before counts beside what is held now. Off without a half-life.

    amount = held + usage.weight * mean of what was held before

The mean is that of `pumice.scheduler.model.past_usage`. It changes as time passes, so the order is made anew now and then even if nothing
happens; where somebody has room, something has happened.
"""

from __future__ import annotations

from msgspec import Struct, field

from pumice.api.times import Duration
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.past_usage import HolderOf, PastUsage
from pumice.scheduler.model.resources import Vector

TURNS = 100  #: in a half-life: the order is never older than that


class PastUsageArgs(Struct):
    half_life: Duration = field(name="usage.halfLife", default=Duration(0))
    past_weight: float = field(name="usage.weight", default=1.0)


class PastShares:
    """As they stand in one session. `next_turn`: when to look at them again."""

    def __init__(self, usage: PastUsage, args: PastUsageArgs, now: float) -> None:
        self._usage, self._now = usage, now
        self._means: dict[str, Vector] = {}
        self.weight = args.past_weight
        self.next_turn = now + args.half_life / TURNS

    def mean(self, holder: str) -> Vector:
        """What it held before."""
        if holder not in self._means:
            self._means[holder] = self._usage.mean(holder, self._now)
        return self._means[holder]


def past_shares(session: Session, args: PastUsageArgs, holder_of: HolderOf) -> PastShares | None:
    """None if the past does not count."""
    if not args.half_life:
        return None
    return PastShares(session.cluster.used_before(args.half_life, holder_of), args, session.now)


def in_words(first: str, less: float, second: str, more: float, whole: str) -> str:
    """Why the first is served before the second: by the shares that they held before."""
    return f"{second} used more before: on average {more:.0%} of {whole}, {first} {less:.0%}"
