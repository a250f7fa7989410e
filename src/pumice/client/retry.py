"""The one place that says which failed calls are made again, and when.

* 429, and 5xx with Retry-After: the server did not carry it out and says when to come back. Any call may be repeated.
* No connection: nothing was sent. Any call may be repeated.
* Connection lost after sending, time-out, 5xx without Retry-After: it may have been carried out. Only a call that may be made twice
  (`repeatable`: reads, and writes whose second time changes nothing) is repeated; the others go to the caller, who looks.
* 409 and the other 4xx are answers, not faults: never repeated.

API priority and fairness speaks through 429 and Retry-After, so it needs no case of its own.
"""

from __future__ import annotations

import msgspec

from pumice.client.transport import ApiError, KubeError, NoAnswer

PASSING = (404, 408, 409, 410, 429)  #: the object or the moment was wrong, not the write


class Backoff(msgspec.Struct, frozen=True):
    """Waiting times that double from `first_s` up to `longest_s`, spread by up to half so that clients do not come in step."""

    first_s: float = 0.1
    longest_s: float = 5.0

    def delay_s(self, attempt: int, jitter: float) -> float:
        """How long to wait after failure number `attempt` (from 0). `jitter` is in [0, 1)."""
        return min(self.longest_s, self.first_s * 2.0 ** min(attempt, 30)) * (0.5 + jitter / 2)


class Retry(msgspec.Struct, frozen=True):
    """How often a call is made again before the caller hears of its failure."""

    attempts: int = 6
    backoff: Backoff = Backoff()

    def delay_s(self, error: KubeError, attempt: int, *, repeatable: bool, jitter: float) -> float | None:
        """Seconds until the next try, None to give up. `attempt` counts the failures before this one."""
        if attempt + 1 >= self.attempts or not may_repeat(error, repeatable):
            return None
        return max(asked_delay_s(error), self.backoff.delay_s(attempt, jitter))


def may_repeat(error: KubeError, repeatable: bool) -> bool:
    match error:
        case NoAnswer():
            return repeatable or not error.sent
        case ApiError(code=429):
            return True
        case ApiError() if error.code >= 500:
            return repeatable or error.retry_after_s is not None
    return False


def perhaps_done(error: KubeError) -> bool:
    """Whether the call may have been carried out though it failed."""
    return may_repeat(error, repeatable=True) and not may_repeat(error, repeatable=False)


def is_refusal(error: KubeError) -> bool:
    """Whether the same write would be refused again."""
    return isinstance(error, ApiError) and 400 <= error.code < 500 and error.code not in PASSING


def asked_delay_s(error: BaseException) -> float:
    """What the server asked us to wait: Retry-After, a second if a 429 came without."""
    if not isinstance(error, ApiError):
        return 0.0
    if error.retry_after_s is not None:
        return error.retry_after_s
    return 1.0 if error.code == 429 else 0.0


# How fast writes may leave: so many a second with a burst, as `--kube-api-qps` and `--kube-api-burst` say.
#
# `TokenBucket` is pure: it is asked at an instant and answers how long to wait, having taken the token already. So waiting callers are
# served in the order they asked, without a queue.


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
