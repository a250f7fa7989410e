"""The rate limit of writes: a number per second with a burst, as `--kube-api-qps` and `--kube-api-burst` set them.

`TokenBucket` is pure: `reserve` takes a token at once and returns how long to wait before using it. So waiting callers are served in the
order in which they came, without a queue.
"""

import msgspec


class TokenBucket:
    """A bucket that gives `burst` tokens at once, then `rate` tokens per second; at a rate that is not positive, any number (client-go)."""

    __slots__ = ("_at", "_tokens", "burst", "rate")

    def __init__(self, rate: float, burst: float, now: float = 0.0) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst  #: below zero while callers wait for tokens promised to them
        self._at = now

    def reserve(self, now: float) -> float:
        """Take one token. Return the seconds until it may be used."""
        self._refill(now)
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self.rate) if self.rate > 0 else 0.0

    def take(self, now: float) -> bool:
        """Take one token if there is one. Return whether there was one."""
        self._refill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self.burst, self._tokens + (now - self._at) * self.rate)
            self._at = now


class ClientLimits(msgspec.Struct, frozen=True):
    """How many writes may be sent per second and at once, and how long an answer may take."""

    qps: float = 2000.0  #: writes per second
    burst: float = 2000.0
    in_flight: int = 64  #: writes that wait for their answer at the same time
    timeout_s: float = 30.0


DEFAULT_LIMITS = ClientLimits()
