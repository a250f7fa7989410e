"""How fast writes may leave: so many a second with a burst, as `--kube-api-qps` and `--kube-api-burst` say.

`TokenBucket` is pure: it is asked at an instant and answers how long to wait, having taken the token already. So waiting callers are
served in the order they asked, without a queue.
"""

from __future__ import annotations


class TokenBucket:
    """`burst` at once, then `rate` a second."""

    __slots__ = ("_at", "_tokens", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float = 0.0) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst  #: below zero while callers wait for tokens promised to them
        self._at = now

    def reserve(self, now: float) -> float:
        """Take one token; the seconds until it may be used."""
        self._refill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.rate)

    def take(self, now: float) -> bool:
        """Take one token if there is one."""
        self._refill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now
