"""Leader election, run against a server: reads and writes the Lease that a `Candidate` asks for.

Every step has a deadline of its own, so that a call that hangs costs a step and not the lease. The transport should be a client of its
own: it may not ask the fence, which is `leading` of this very election, and renewals may not queue behind binds.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
import time
import uuid
from collections.abc import Callable

from pumice.api.kinds import LEASES
from pumice.kube.access import Clock
from pumice.kube.errors import ApiError, KubeError, NoAnswer
from pumice.kube.lease import Candidate, Lease, decode_lease
from pumice.kube.transport import Transport

log = logging.getLogger(__name__)


def new_identity() -> str:
    """Host name and something that no other process has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Election:
    """`won` is set when the candidate begins to lead; `run` returns when it has lost."""

    def __init__(
        self,
        transport: Transport,
        candidate: Candidate,
        *,
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.candidate = candidate
        self.won = asyncio.Event()
        self._transport = transport
        self._clock = clock
        self._wall = wall
        self._jitter = jitter
        self._told = ""  #: whose lead was last told of
        self._trouble = ""  #: what is in the way, as told last
        self._fresh = False  #: the record is as our own last write left it

    def leading(self) -> bool:
        """The fence, for `Client.fenced`."""
        return self.candidate.leading(self._clock())

    async def run(self) -> None:
        term = self.candidate.term
        while not self.candidate.lost:
            try:
                async with asyncio.timeout(term.renew_deadline_s / 2):
                    await self.step()
            except (KubeError, TimeoutError) as error:
                self._fresh = False
                self._tell_trouble(str(error) or "no answer in time")
            else:
                self._trouble = ""
            if self.leading() and not self.won.is_set():
                log.info("%s became leader of %s", self.candidate.identity, self.candidate.lock)
                self.won.set()
            self._tell_who_leads()
            # Waiting candidates spread out; the leader keeps the period.
            await asyncio.sleep(term.retry_s * (1 if self.won.is_set() else 1 + 0.2 * self._jitter()))
            self.candidate.check(self._clock())
        log.error("%s lost %s to %s", self.candidate.identity, self.candidate.lock, self.candidate.leader or "nobody")

    def _tell_trouble(self, trouble: str) -> None:
        """The same again is no news."""
        log.log(logging.DEBUG if trouble == self._trouble else logging.WARNING, "lease %s: %s", self.candidate.lock, trouble)
        self._trouble = trouble

    def _tell_who_leads(self) -> None:
        leader = self.candidate.leader
        if leader not in ("", self._told, self.candidate.identity):
            log.info("%s leads %s; this replica waits", leader, self.candidate.lock)
        self._told = leader

    async def step(self) -> None:
        """Read the Lease unless we wrote it last, then create or renew or take it if we may."""
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
        except (ApiError, NoAnswer) as error:
            log.warning("lease %s was not released: %s", self.candidate.lock, error)

    async def _read(self) -> None:
        try:
            record: Lease | None = decode_lease(await self._transport.get(LEASES, self.candidate.lock))
        except ApiError as error:
            if error.code != 404:
                raise
            record = None
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
