"""The live scheduler where time stands still while anybody has something to do: a cycle an instant, when all of its news are in.

Live, a cycle waits a moment for more news, and now and then looks at pods that wait although there are none. Neither means anything here.
What goes wrong between it and the server is made to: calls are slow or fail, watches tell late or are cut off, a clock is ahead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from math import inf
from random import Random
from typing import Any, TypeVar

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.transport import ApiError, ListScope, NoAnswer, Page, PatchType, Transport
from pumice.cluster.clock import AlarmClock
from pumice.live.lifecycle import Clock
from pumice.live.scheduler.cycle_timing import CycleTimer, Urgency
from pumice.live.scheduler.loop import CycleObserver, Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.simulate.faults import Faults
from pumice.simulate.simulated_cluster import PERIOD_S, has_more_to_do


class InstantTimer(CycleTimer):
    """At once after any news; after those that change only what is reported, if nobody waits, who is looked at again soon anyway."""

    def __init__(self) -> None:
        super().__init__(PERIOD_S)
        self.again_at = inf  #: for policies that do not come to rest in a cycle

    def due_at(self, waiting: bool) -> float:
        if self._news is Urgency.SOON or (self._news is Urgency.LATER and not waiting):
            return self._news_at
        return self.again_at if waiting else inf


class InstantScheduler(Scheduler):
    """`quiet` returns when there is nothing left to do at this instant but to decide."""

    def __init__(
        self,
        transport: Transport,
        policy: Policy,
        options: Options,
        clock: Clock,
        quiet: Callable[[], Awaitable[None]],
        observer: CycleObserver,
        when_synced: Callable[[], None],
    ) -> None:
        super().__init__(transport, policy, options, clock, when_synced=when_synced)
        self._quiet = quiet
        self._cycle_timer = self._timer = InstantTimer()
        self.watch(observer)

    async def _until_due(self) -> None:
        await super()._until_due()
        await self._quiet()

    def _leave(self, decisions: Decisions, now: float) -> None:
        super()._leave(decisions, now)
        self._timer.again_at = now + PERIOD_S if has_more_to_do(self.policy, decisions) else inf


T = TypeVar("T")


class SkewedClock:
    """Is ahead of another by so many seconds."""

    def __init__(self, clock: AlarmClock, skew_s: float) -> None:
        self._clock, self._skew_s = clock, skew_s

    def now(self) -> float:
        return self._clock.now() + self._skew_s

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class FaultyTransport:
    """A Transport in front of another. What goes wrong is drawn in the order of calls, which is the same each time."""

    def __init__(self, transport: Transport, faults: Faults, random: Random, clock: AlarmClock) -> None:
        self._transport, self._faults, self._random, self._clock = transport, faults, random, clock

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """Slow; a call that fails is not carried out."""
        api = self._faults.api
        if api is not None:
            if api.slow is not None:
                await self._clock.sleep(api.slow(self._random))
            if self._random.random() < api.errors:
                raise ApiError(500, "InternalError", "made to fail")
        return await call()

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        return await self._call(lambda: self._transport.get(resource, ref))

    def pages(self, scope: ListScope, *, limit: int = 500) -> AsyncIterator[Page]:
        return self._transport.pages(scope, limit=limit)

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        watching = self._transport.watch(scope, resource_version=resource_version, timeout_s=timeout_s, idle_s=idle_s)
        breaks = self._faults.events
        async for lines in watching:
            if breaks is not None:
                if self._random.random() < breaks.lost:
                    raise NoAnswer("cut off", sent=True)
                if self._random.random() < breaks.late:
                    await self._clock.sleep(breaks.late_s)
            yield lines

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call(
            lambda: self._transport.create(resource, body, namespace, name=name, subresource=subresource, repeatable=repeatable)
        )

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        return await self._call(lambda: self._transport.update(resource, ref, body, subresource=subresource, repeatable=repeatable))

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call(
            lambda: self._transport.patch(resource, ref, body, patch_type, subresource=subresource, repeatable=repeatable)
        )

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        await self._call(lambda: self._transport.delete(resource, ref, propagation=propagation, grace_s=grace_s))
