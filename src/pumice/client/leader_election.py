"""Leader election against a server: reads the Lease, and writes it as a `LeaseCandidate` decides.

Every step has a deadline of its own, so that a call that hangs costs one step and not the lease. The election should have a client of its
own as transport: it must not ask the fence, which is `leading` of this very election, and renewals must not queue behind binds.

A `LeaseCandidate` gets each Lease that was read or written, with the local time of the answer, and decides what to write. The clocks of
other machines are never used: a lease may be taken if we have seen no renewal of it for the lease duration that its holder stated.
The fence: `leading` is true until `renew_deadline_s` after the last granted write was *sent*. Other replicas saw that write no earlier
than it was sent, and wait the whole lease duration from then on. So the difference of the two (5 s) is left for writes on their way and
for clock drift. A leader that passes the deadline has lost for good: its next decisions would be based on old knowledge.
"""

import asyncio
import logging
import random
import socket
import time
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from pumice.api.kinds import LEASES, ObjectRef
from pumice.api.times import micro_time
from pumice.client.access import TimeSource
from pumice.client.failures import KubeError, despite
from pumice.client.transport import Transport


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
    """A Lease: the fields that are read or written. Its metadata is sent back as it came."""

    metadata: dict[str, Any]
    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)
    api_version: str = LEASES.api_version
    kind: str = LEASES.kind

    @property
    def version(self) -> str:
        return str(self.metadata.get("resourceVersion", ""))


decode_lease = msgspec.json.Decoder(Lease).decode
DEFAULT_TERM = Term()


class LeaseCandidate:
    """The state of one replica in an election. Times are seconds of the local monotonic clock, `wall` is seconds since 1970."""

    def __init__(self, identity: str, lock: ObjectRef, term: Term = DEFAULT_TERM) -> None:
        self.identity = identity
        self.lock = lock
        self.term = term
        self.lost = False  #: this replica led and leads no longer; it never leads again
        self._record: Lease | None = None  #: the Lease as last seen
        self._seen_at = 0.0  #: when this version of the Lease was first seen
        self._led_until: float | None = None  #: None: this replica never led

    def leading(self, now: float) -> bool:
        """Whether writes may be sent. It is False before any other replica may take the lead."""
        return self._led_until is not None and now < self._led_until and not self.lost

    def check(self, now: float) -> None:
        """Mark the lease as lost if the deadline has passed."""
        if self._led_until is not None and now >= self._led_until:
            self.lost = True

    @property
    def leader(self) -> str:
        """The identity of the lease's holder, as last seen; empty if there is none."""
        return (self._record.spec.holder_identity or "") if self._record else ""

    def observed(self, record: Lease | None, received_at: float) -> None:
        """Note the Lease that was read; None if there is none. Renewals are noticed by the resource version, not by the times in it."""
        if record is None or self._record is None or record.version != self._record.version:
            self._seen_at = received_at
        self._record = record
        if self._led_until is not None and self.leader != self.identity:
            self.lost = True

    def wanted(self, now: float, wall: float) -> Lease | None:
        """The Lease to write now: create it if it has no resource version, else update it. None if this replica has to wait."""
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
        """Note the Lease that our write, sent at `sent_at`, has stored."""
        self._record = record
        self._seen_at = received_at
        self.check(received_at)
        if not self.lost:
            self._led_until = sent_at + self.term.renew_deadline_s

    def released(self, wall: float) -> Lease | None:
        """Stop leading at once. Return the Lease to write so that a successor need not wait; None if this replica does not hold it."""
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


log = logging.getLogger(__name__)


def new_identity() -> str:
    """A new identity: the host name, and an id that no other process has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Election:
    """Runs an election. `won` is set when the candidate begins to lead; `run` returns when it has lost the lead."""

    def __init__(
        self,
        transport: Transport,
        candidate: LeaseCandidate,
        *,
        clock: TimeSource = time.monotonic,
        wall: TimeSource = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.candidate = candidate
        self.won = asyncio.Event()
        self._transport = transport
        self._clock = clock
        self._wall = wall
        self._jitter = jitter
        self._logged_leader = ""  #: the leader that was logged last
        self._trouble = ""  #: the failure that was logged last
        self._fresh = False  #: the candidate's Lease is the answer to our own last write

    def leading(self) -> bool:
        """Whether writes may be sent: the fence, for `Client.fenced`."""
        return self.candidate.leading(self._clock())

    async def run(self) -> None:
        term = self.candidate.term
        while not self.candidate.lost:
            try:
                async with asyncio.timeout(term.renew_deadline_s / 2):
                    await self.step()
            except (KubeError, TimeoutError, msgspec.DecodeError) as error:  # a DecodeError: what the server answered is no Lease
                self._fresh = False
                self._tell_trouble(str(error) or "no answer in time")
            else:
                self._trouble = ""
            if self.leading() and not self.won.is_set():
                log.info("%s became leader of %s", self.candidate.identity, self.candidate.lock)
                self.won.set()
            self._tell_who_leads()
            # Waiting candidates add jitter to the period; the leader keeps it.
            await asyncio.sleep(term.retry_s * (1 if self.won.is_set() else 1 + 0.2 * self._jitter()))
            self.candidate.check(self._clock())
        taken = self.candidate.leader not in ("", self.candidate.identity)
        why = f"{self.candidate.leader} has it" if taken else f"it could not be renewed for {term.renew_deadline_s:g} s"
        log.error("%s lost %s: %s", self.candidate.identity, self.candidate.lock, why)

    def _tell_trouble(self, trouble: str) -> None:
        """Log a failed step; if it is the same failure as before, only for debugging."""
        log.log(logging.DEBUG if trouble == self._trouble else logging.WARNING, "lease %s: %s", self.candidate.lock, trouble)
        self._trouble = trouble

    def _tell_who_leads(self) -> None:
        leader = self.candidate.leader
        if leader not in ("", self._logged_leader, self.candidate.identity):
            log.info("%s leads %s; this replica waits", leader, self.candidate.lock)
        self._logged_leader = leader

    async def step(self) -> None:
        """Read the Lease unless we wrote it last. Then create, renew or take it if we may."""
        if not self._fresh:
            await self._read()
        wanted = self.candidate.wanted(self._clock(), self._wall())
        if wanted is not None:
            await self._write(wanted)

    async def release(self) -> None:
        """Stop leading and let a successor begin at once. Call it after the last write, when `run` has been cancelled."""
        wanted = self.candidate.released(self._wall())
        if wanted is None:
            return
        try:
            await self._transport.update(LEASES, self.candidate.lock, wanted)
        except KubeError as error:
            log.warning("lease %s was not released: %s", self.candidate.lock, error)

    async def _read(self) -> None:
        record: Lease | None = None
        with despite(404):
            record = decode_lease(await self._transport.get(LEASES, self.candidate.lock))
        self.candidate.observed(record, self._clock())

    async def _write(self, wanted: Lease) -> None:
        sent_at = self._clock()
        self._fresh = False
        lock = self.candidate.lock
        if wanted.version:
            answer = await self._transport.update(LEASES, lock, wanted)
        else:
            answer = await self._transport.create(LEASES, wanted, lock.namespace)
        self.candidate.granted(decode_lease(answer), sent_at, self._clock())
        self._fresh = True
