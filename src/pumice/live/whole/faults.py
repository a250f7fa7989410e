"""What goes wrong between the scheduler and the server: calls are slow or fail, watches tell late or are cut off, a clock is ahead."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random
from typing import Any, TypeVar

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.transport import ApiError, ListScope, NoAnswer, Page, PatchType, Transport
from pumice.cluster.clock import AlarmClock
from pumice.simulate.faults import Faults

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
