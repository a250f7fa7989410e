"""A way to an API server on which calls fail, answers get lost and the link clogs, by chance."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from random import Random
from typing import Any, TypeVar

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.failures import ApiError, NoAnswer
from pumice.client.transport import ListScope, Page, PatchType, Transport, WatchLine
from pumice.cluster.clock import Alarm, AlarmClock
from pumice.simulate.fault_settings import Faults

REQUEST_TIMEOUT_S = 30.0  #: as that of the client of a real API server
T = TypeVar("T")


class SkewedClock:
    """A clock that is `skew_s` seconds ahead of another clock."""

    def __init__(self, clock: AlarmClock, skew_s: float) -> None:
        self._clock, self._skew_s = clock, skew_s

    def now(self) -> float:
        return self._clock.now() + self._skew_s

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def at(self, when: float, call: Callable[[], None]) -> Alarm:
        return self._clock.at(when - self._skew_s, call)


class Link:
    """What calls and watches pass between the scheduler and the API server. While it is clogged, nothing does."""

    def __init__(self) -> None:
        self._clear = asyncio.Event()
        self._clear.set()

    def clog(self) -> Callable[[], None] | None:
        """Let nothing pass until the returned function is called. None if nothing passes already."""
        if self.is_clogged:
            return None
        self._clear.clear()
        return self._clear.set

    @property
    def is_clogged(self) -> bool:
        return not self._clear.is_set()

    async def passes(self, within_s: float, *, sent: bool) -> None:
        """Wait until something passes. Raises NoAnswer if that takes too long. `sent`: whether the server may have been asked by then."""
        try:
            async with asyncio.timeout(within_s if self.is_clogged else None):
                await self._clear.wait()
        except TimeoutError:
            raise NoAnswer("timed out", sent=sent) from None


class FaultyTransport:
    """A Transport with faults in front of another one. Faults are drawn in the order of calls, which is the same each time."""

    def __init__(self, transport: Transport, faults: Faults, random: Random, clock: AlarmClock, link: Link) -> None:
        self._transport, self._faults, self._random, self._clock, self._link = transport, faults, random, clock, link

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call, slowly or with a failure if the faults say so. A call that fails is not carried out. While the link is clogged, half
        of the calls are carried out at once, and their answers come late or never."""
        is_asked = not self._link.is_clogged or self._random.random() < 0.5
        if not is_asked:
            await self._link.passes(REQUEST_TIMEOUT_S, sent=False)
        answer = await self._make(call)
        await self._link.passes(REQUEST_TIMEOUT_S, sent=True)
        return answer

    async def _make(self, call: Callable[[], Awaitable[T]]) -> T:
        api = self._faults.api
        if api is not None:
            if api.slow is not None:
                await self._clock.sleep(api.slow(self._random))
            if self._random.random() < api.errors:
                raise ApiError(500, "InternalError", "made to fail")
        return await call()

    def check_fence(self) -> None:
        self._transport.check_fence()

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        return await self._call(lambda: self._transport.get(resource, ref))

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        async for page in self._transport.pages(scope, limit=limit, not_older=not_older):
            await self._link.passes(REQUEST_TIMEOUT_S, sent=False)
            yield page

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[Sequence[WatchLine]]:
        watching = self._transport.watch(scope, resource_version=resource_version, timeout_s=timeout_s, idle_s=idle_s)
        breaks = self._faults.events
        async for lines in watching:
            await self._link.passes(idle_s, sent=True)
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
