"""Leader election with a Lease, as client-go does it, with a fence: the pure half.

A `Candidate` is told what was read and what was granted, each with the local time at which we knew, and says what to write. Other clocks
are never believed: a lease may be taken once nobody renewed it, as we saw it, for the time that its holder promised.

The fence: `leading` holds until `renew_deadline_s` after the last granted write was *sent*. Others saw that write no earlier than it was
sent and wait the whole lease from there, so the difference of the two (5 s) is left for writes under way and for clocks that drift.
A leader that passes the deadline has lost, for good: what it does next would be decided on old knowledge.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from pumice.api.kinds import LEASES, ObjectRef


class Term(msgspec.Struct, frozen=True):
    """The durations of an election; the defaults are Kubernetes' own."""

    lease_s: int = 15
    renew_deadline_s: float = 10.0
    retry_s: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.retry_s < self.renew_deadline_s < self.lease_s:
            raise ValueError("the lease must be longer than the renew deadline, and that longer than the retry period")


class LeaseSpec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(msgspec.Struct, rename="camel"):
    """What is read of a Lease; the rest of it is sent back as it came."""

    metadata: dict[str, Any]
    spec: LeaseSpec
    api_version: str = LEASES.api_version
    kind: str = LEASES.kind

    @property
    def version(self) -> str:
        return str(self.metadata.get("resourceVersion", ""))


decode_lease = msgspec.json.Decoder(Lease).decode
DEFAULT_TERM = Term()


class Candidate:
    """One replica's part in an election. Times are seconds of the local monotonic clock, `wall` is seconds since 1970."""

    def __init__(self, identity: str, lock: ObjectRef, term: Term = DEFAULT_TERM) -> None:
        self.identity = identity
        self.lock = lock
        self.term = term
        self.lost = False  #: it led and does no longer; nothing makes it lead again
        self._record: Lease | None = None  #: as last seen
        self._seen_at = 0.0  #: when the record was first seen as it is
        self._led_until: float | None = None  #: None: never led

    def leading(self, now: float) -> bool:
        """Whether writes may leave. False before anybody else may think that they lead."""
        return self._led_until is not None and now < self._led_until and not self.lost

    def check(self, now: float) -> None:
        """Notice that the deadline has passed."""
        if self._led_until is not None and now >= self._led_until:
            self.lost = True

    @property
    def leader(self) -> str:
        """Who holds the lease, as far as we know."""
        return (self._record.spec.holder_identity or "") if self._record else ""

    def observed(self, record: Lease | None, received_at: float) -> None:
        """The Lease was read, None if there is none. Renewals are noticed by the resource version, not by the times in it."""
        if record is None or self._record is None or record.version != self._record.version:
            self._seen_at = received_at
        self._record = record
        if self._led_until is not None and self.leader != self.identity:
            self.lost = True

    def wanted(self, now: float, wall: float) -> Lease | None:
        """What to write now: create it if it has no resource version, else update it. None: wait."""
        if self.lost or self._held_by_other(now):
            return None
        time = micro_time(wall)
        old = self._record.spec if self._record else LeaseSpec()
        renewal = old.holder_identity == self.identity
        spec = LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=self.term.lease_s,
            acquire_time=old.acquire_time if renewal else time,
            renew_time=time,
            lease_transitions=(old.lease_transitions or 0) + (not renewal) if self._record else 0,
        )
        return Lease(self._metadata(), spec)

    def granted(self, record: Lease, sent_at: float, received_at: float) -> None:
        """Our write was carried out."""
        self._record = record
        self._seen_at = received_at
        self.check(received_at)
        if not self.lost:
            self._led_until = sent_at + self.term.renew_deadline_s

    def released(self, wall: float) -> Lease | None:
        """Give up leading, at once, and say what to write so that a successor need not wait. None if there is nothing to give."""
        led = self._led_until is not None and not self.lost
        self.lost = True
        if not led or self._record is None or self.leader != self.identity:
            return None
        time = micro_time(wall)
        old = self._record.spec
        spec = LeaseSpec(
            holder_identity="", lease_duration_seconds=1, acquire_time=time, renew_time=time, lease_transitions=old.lease_transitions
        )
        return Lease(self._metadata(), spec)

    def _metadata(self) -> dict[str, Any]:
        return self._record.metadata if self._record else {"name": self.lock.name, "namespace": self.lock.namespace}

    def _held_by_other(self, now: float) -> bool:
        if self.leader in ("", self.identity):
            return False
        assert self._record is not None
        promised_s = self._record.spec.lease_duration_seconds or self.term.lease_s
        return now < self._seen_at + promised_s


def micro_time(seconds: float) -> str:
    """Seconds since 1970 as Kubernetes' MicroTime."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
