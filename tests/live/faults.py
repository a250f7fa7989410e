"""A Transport between the scheduler and a server that loses, delays, repeats, refuses and cuts, as a test has drawn it.

A `Plan` has a queue of faults for each kind of call, so that binds, evictions and reads of pods are hit as often as events, which are many
more; one for each kind of watch; times at which the whole server is away; and instants at which the scheduler is killed. When the queues
are empty, nothing goes wrong any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from pumice.api.kinds import EVENTS, PODS, Kind, ObjectRef
from pumice.client.failures import ApiError, NoAnswer
from pumice.client.transport import ListScope, Page, PatchType, Transport

REFUSALS = {
    "403": ApiError(403, "Forbidden", "made to fail"),
    "409": ApiError(409, "Conflict", "made to fail"),
    "410": ApiError(410, "Expired", "made to fail"),
    "429": ApiError(429, "TooManyRequests", "made to fail", 1.0),
    "500": ApiError(500, "InternalError", "made to fail"),
}
CALLS = ("none", "lose request", "lose answer", "late request", "late answer", "500 but done", "twice", *REFUSALS)
#: a late batch is overtaken by those of other kinds; a very late one shows a bind after its assumption has expired
STREAMS = ("none", "cut", "410", "late", "very late", "garbage", "twice", "swap", "overtaken", "silence")
WRITES = ("bind", "delete", "status of pods", "podgroups", "queues", "events", "get", "other")
KINDS = (*WRITES, "list", "watch")
WATCHED = ("pods", "nodes", "podgroups", "other")


class Outage(NamedTuple):
    """The server is killed, and started again. `forgets`: it knows no earlier resource versions any more."""

    after_s: float
    lasts_s: float
    forgets: bool


class Plan(NamedTuple):
    """See the module."""

    calls: Mapping[str, Sequence[str]] = {}
    streams: Mapping[str, Sequence[str]] = {}
    outages: Sequence[Outage] = ()
    lives_s: Sequence[float] = ()  #: how long each scheduler lives that is killed


def queues(names: Sequence[str], faults: Sequence[str], most: int) -> st.SearchStrategy[dict[str, list[str]]]:
    """By name some faults, mixed or one again and again: what is tried several times must fail so often, too."""
    one = st.sampled_from(faults)
    again = st.builds(lambda fault, times: [fault] * times, one, st.integers(most // 2, 2 * most))
    return st.dictionaries(st.sampled_from(names), st.lists(one, min_size=1, max_size=most) | again, max_size=len(names))


outages = st.lists(st.builds(Outage, st.floats(0.0, 4.0), st.floats(0.1, 40.0), st.booleans()), max_size=2)
lives = st.lists(st.floats(0.0, 3.0), max_size=4)
plans = st.builds(Plan, queues(KINDS, CALLS, 10), queues(WATCHED, STREAMS, 4), outages, lives)


class Faults:
    """What is left of a plan; a killed scheduler leaves the rest to its successor."""

    def __init__(self, plan: Plan) -> None:
        self._calls = {kind: deque(faults) for kind, faults in plan.calls.items()}
        self._streams = {plural: deque(faults) for plural, faults in plan.streams.items()}

    def of_call(self, kind: str) -> str:
        waiting = self._calls.get(kind)
        return waiting.popleft() if waiting else "none"

    def of_stream(self, plural: str) -> str:
        waiting = self._streams.get(plural if plural in WATCHED else "other")
        return waiting.popleft() if waiting else "none"


class Faulty:
    """See the module."""

    def __init__(self, transport: Transport, faults: Faults) -> None:
        self.dead = False  #: whoever uses it was killed: nothing leaves any more, and no answer comes
        self._transport = transport
        self._faults = faults

    async def _alive(self) -> None:
        if self.dead:
            await asyncio.Event().wait()

    async def _before(self, fault: str) -> None:
        """What goes wrong before the server hears of a call."""
        await self._alive()
        if fault in REFUSALS:
            raise REFUSALS[fault]
        if fault == "lose request":
            raise NoAnswer("refused", sent=False)
        if fault == "late request":
            await asyncio.sleep(20)
            await self._alive()

    async def _after(self, fault: str) -> None:
        await self._alive()
        if fault == "lose answer":
            raise NoAnswer("cut", sent=True)
        if fault == "500 but done":
            raise REFUSALS["500"]
        if fault == "late answer":
            await asyncio.sleep(20)

    async def _call(self, kind: str, make: Callable[[], Awaitable[Any]]) -> Any:
        fault = self._faults.of_call(kind)
        await self._before(fault)
        if fault == "twice":
            await make()
        answer = await make()
        await self._after(fault)
        return answer

    def check_fence(self) -> None:
        self._transport.check_fence()

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        return await self._call("get", lambda: self._transport.get(resource, ref))

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        fault = self._faults.of_call("list")
        await self._before(fault)
        async for page in self._transport.pages(scope, limit=limit, not_older=not_older):
            yield page
            await self._after(fault)

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        await self._before(self._faults.of_call("watch"))
        lines = self._transport.watch(scope, resource_version=resource_version, timeout_s=timeout_s, idle_s=idle_s)
        ahead = asyncio.ensure_future(_next(lines))
        try:
            while batch := await ahead:
                ahead = asyncio.ensure_future(_next(lines))
                async for faulty in self._told(scope, batch, ahead, idle_s):
                    yield faulty
        except _Ended:
            return
        finally:
            ahead.cancel()
            await asyncio.gather(ahead, return_exceptions=True)

    async def _told(
        self, scope: ListScope, batch: list[bytes], ahead: asyncio.Future[list[bytes]], idle_s: float
    ) -> AsyncIterator[list[bytes]]:
        """What becomes of a batch; `ahead` is the one after it."""
        await self._alive()
        match self._faults.of_stream(scope.resource.plural):
            case "cut":
                raise NoAnswer("cut", sent=True)
            case "silence":
                await asyncio.sleep(idle_s)
                raise NoAnswer("silence", sent=True)
            case "410":
                status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "made to fail"}
                yield [msgspec.json.encode({"type": "ERROR", "object": status})]
                raise _Ended
            case "garbage":
                yield [batch[0][: len(batch[0]) // 2]]
                raise _Ended
            case "late":
                await asyncio.sleep(5)
            case "very late":
                await asyncio.sleep(40)
            case "twice":
                yield batch
            case "swap":
                batch = batch[::-1]
            case "overtaken":
                await asyncio.wait({ahead}, timeout=10)
                if ahead.done() and not ahead.exception() and ahead.result():
                    yield ahead.result()  # and told once more in its turn
        yield batch

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes:
        def make() -> Awaitable[bytes]:
            return self._transport.create(resource, body, namespace, name=name, subresource=subresource)

        return await self._call("bind" if subresource == "binding" else kind_of(resource), make)

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        return await self._call(kind_of(resource), lambda: self._transport.update(resource, ref, body, subresource=subresource))

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call(kind_of(resource), lambda: self._transport.patch(resource, ref, body, patch_type, subresource=subresource))

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        await self._call("delete", lambda: self._transport.delete(resource, ref))


class _Ended(Exception):
    """The stream is over, as if the server had ended it."""


async def _next(lines: AsyncIterator[list[bytes]]) -> list[bytes]:
    """Empty at the end."""
    return await anext(lines, [])


def kind_of(resource: Kind) -> str:
    """Of a write that is neither a bind nor a deletion."""
    if resource == PODS:
        return "status of pods"
    return "events" if resource == EVENTS else resource.plural if resource.plural in WRITES else "other"
