"""A Transport between the scheduler and a server that loses, delays, repeats, refuses and cuts, in the order that a test draws."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

import msgspec

from pumice.kube.errors import ApiError, NoAnswer
from pumice.kube.resource import ObjectRef, Resource
from pumice.kube.transport import Page, PatchType, Scope, Transport

CALLS = ("none", "lose request", "lose answer", "late request", "late answer", "409", "429", "500", "500 but done", "twice")
#: a late batch is overtaken by those of other kinds; a very late one shows a bind after its assumption has expired
STREAMS = ("none", "cut", "410", "late", "very late", "garbage", "twice", "swap")


class Faulty:
    """`calls` and `streams` give one fault for each call and each batch of a watch; when they end, nothing goes wrong any more."""

    def __init__(self, transport: Transport, calls: Iterable[str], streams: Iterable[str]) -> None:
        self.dead = False  #: whoever uses it was killed: nothing leaves any more, and no answer comes
        self._transport = transport
        self._calls: Iterator[str] = iter(calls)
        self._streams: Iterator[str] = iter(streams)

    async def _alive(self) -> None:
        if self.dead:
            await asyncio.Event().wait()

    async def _call(self, make: Callable[[], Awaitable[Any]]) -> Any:
        await self._alive()
        fault = next(self._calls, "none")
        match fault:
            case "lose request":
                raise NoAnswer("refused", sent=False)
            case "409":
                raise ApiError(409, "Conflict", "made to fail")
            case "429":
                raise ApiError(429, "TooManyRequests", "made to fail", 1.0)
            case "500":
                raise ApiError(500, "InternalError", "made to fail")
            case "late request":
                await asyncio.sleep(20)
                await self._alive()
            case "twice":
                await make()
        answer = await make()
        await self._alive()
        match fault:
            case "lose answer":
                raise NoAnswer("cut", sent=True)
            case "500 but done":
                raise ApiError(500, "InternalError", "made to fail")
            case "late answer":
                await asyncio.sleep(20)
        return answer

    async def get(self, resource: Resource, ref: ObjectRef) -> bytes:
        return await self._call(lambda: self._transport.get(resource, ref))

    async def pages(self, scope: Scope, *, limit: int = 1000) -> AsyncIterator[Page]:
        async for page in self._transport.pages(scope, limit=limit):
            yield page

    async def watch(
        self, scope: Scope, *, resource_version: str, initial: bool, timeout_s: int, idle_s: float
    ) -> AsyncIterator[list[bytes]]:
        options: Any = {"resource_version": resource_version, "initial": initial, "timeout_s": timeout_s, "idle_s": idle_s}
        async for batch in self._transport.watch(scope, **options):
            match next(self._streams, "none"):
                case "cut":
                    raise NoAnswer("cut", sent=True)
                case "410":
                    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "made to fail"}
                    yield [msgspec.json.encode({"type": "ERROR", "object": status})]
                    return
                case "garbage":
                    yield [batch[0][: len(batch[0]) // 2]]
                    return
                case "late":
                    await asyncio.sleep(5)
                case "very late":
                    await asyncio.sleep(40)
                case "twice" if not initial:
                    yield batch
                case "swap" if not initial:
                    batch = batch[::-1]
            yield batch

    async def create(
        self, resource: Resource, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call(lambda: self._transport.create(resource, body, namespace, name=name, subresource=subresource))

    async def update(self, resource: Resource, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        return await self._call(lambda: self._transport.update(resource, ref, body, subresource=subresource))

    async def patch(
        self, resource: Resource, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call(lambda: self._transport.patch(resource, ref, body, patch_type, subresource=subresource))

    async def delete(self, resource: Resource, ref: ObjectRef) -> None:
        await self._call(lambda: self._transport.delete(resource, ref))
