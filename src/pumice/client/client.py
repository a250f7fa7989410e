"""The client of an API server: Kubernetes' verbs over HTTP, with pacing, repetition and the fence in one place.

Every call goes through `_call`. A write waits for one of `in_flight` places and for the rate limit, then asks the fence, then leaves: so a
write that waited or is being repeated is stopped too, if the lease was lost meanwhile. `fenced` gives a second client over the same
connections and limits whose writes ask; the election itself uses the one that does not.
"""

from __future__ import annotations

import asyncio
import copy
import random
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import msgspec

from pumice import __version__
from pumice.api.kinds import Kind, ObjectRef
from pumice.client.access import Access, TimeSource
from pumice.client.http_session import JSON, PLAIN, HttpSession, WireFormat, not_whole
from pumice.client.retry import Retry, TokenBucket, perhaps_done
from pumice.client.transport import ApiError, Fenced, KubeError, ListScope, Page, PatchType, decode


class ClientLimits(msgspec.Struct, frozen=True):
    """How much may leave at once, and how long an answer may take."""

    qps: float = 2000.0  #: writes a second
    burst: float = 2000.0
    in_flight: int = 64  #: writes under way
    timeout_s: float = 30.0


DEFAULT_LIMITS = ClientLimits()
DEFAULT_RETRY = Retry()
_JSON = WireFormat(JSON)
_LIST = WireFormat(zipped=True, checked=False)  # it is gone through when it is taken apart


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    next: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_list = msgspec.json.Decoder(_List)
_encode = msgspec.json.Encoder().encode


class Client:
    """A Transport over HTTP. Use it as an asynchronous context manager."""

    def __init__(
        self,
        access: Access,
        *,
        user_agent: str = f"pumice/{__version__}",
        limits: ClientLimits = DEFAULT_LIMITS,
        retry: Retry = DEFAULT_RETRY,
        jitter: Callable[[], float] = random.random,
        clock: TimeSource = time.monotonic,
        warned: Callable[[str], None] = lambda warning: None,
    ) -> None:
        self.access = access
        self._wire = HttpSession(access, user_agent, warned)
        self._timeout_s = limits.timeout_s
        self._retry = retry
        self._jitter = jitter
        self._clock = clock
        self._bucket = TokenBucket(limits.qps, limits.burst, clock())
        self._places = asyncio.Semaphore(limits.in_flight)
        self._may_write: Callable[[], bool] | None = None

    async def __aenter__(self) -> Self:
        await self._wire.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._wire.__aexit__(kind, error, trace)

    def fenced(self, may_write: Callable[[], bool]) -> Client:
        """This client, but its writes leave only while `may_write()`; otherwise they raise Fenced."""
        other = copy.copy(self)
        other._may_write = may_write
        return other

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        return await self._call("GET", resource.path(ref.name, ref.namespace), form=PLAIN, repeatable=True)

    async def get_path(self, path: str, accept: str = JSON) -> bytes:
        """Anything else the server tells, such as /version, or an object in another form, such as a table."""
        return await self._call("GET", path, form=WireFormat(accept=accept), repeatable=True)

    def watch_path(self, path: str, accept: str, idle_s: float) -> AsyncIterator[list[bytes]]:
        """The lines of a watch in another form than that of the objects themselves."""
        return self._wire.lines(path, idle_s, WireFormat(accept=accept))

    async def pages(self, scope: ListScope, *, limit: int = 500) -> AsyncIterator[Page]:
        # No resourceVersion: the list must not be older than anything seen before, so a server's stale cache will not do.
        query = _selection(scope) | ({"limit": str(limit)} if limit else {})
        path = scope.resource.path(namespace=scope.namespace)
        while True:
            page = _page(await self._call("GET", _target(path, query), form=_LIST, repeatable=True), path)
            yield Page(page.items or [], page.metadata.resource_version)
            if not page.metadata.next:
                return
            query["continue"] = page.metadata.next

    def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        how = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(timeout_s), "resourceVersion": resource_version}
        query = _selection(scope) | how
        return self._wire.lines(_target(scope.resource.path(namespace=scope.namespace), query), idle_s)

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes:
        return await self._call("POST", resource.path(name, namespace, subresource), _encode(body), repeatable=repeatable)

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        return await self._call("PUT", resource.path(ref.name, ref.namespace, subresource), _encode(body), repeatable=repeatable)

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        path = resource.path(ref.name, ref.namespace, subresource)
        return await self._call("PATCH", path, _encode(body), WireFormat(patch_type.value), repeatable=repeatable)

    async def apply(self, resource: Kind, ref: ObjectRef, body: Any, manager: str) -> bytes:
        """Server-side apply: create the object or make it so, taking over what others wrote. Unknown fields are refused."""
        query = {"fieldManager": manager, "fieldValidation": "Strict", "force": "true"}
        target = _target(resource.path(ref.name, ref.namespace), query)
        return await self._call("PATCH", target, _encode(body), WireFormat("application/apply-patch+yaml"), repeatable=True)

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        if ref.uid:
            options["preconditions"] = {"uid": ref.uid}
        await self._call("DELETE", resource.path(ref.name, ref.namespace), _encode(options), repeatable=True)

    async def _call(self, method: str, target: str, body: bytes | None = None, form: WireFormat = _JSON, *, repeatable: bool) -> bytes:
        attempt, doubtful = 0, False
        while True:
            try:
                if method == "GET":
                    return await self._wire.call(method, target, None, form, self._timeout_s)
                return await self._write(method, target, body, form)
            except KubeError as error:
                if method == "DELETE" and doubtful and isinstance(error, ApiError) and error.code == 404:
                    return b""  # an earlier try of ours was carried out
                doubtful = doubtful or perhaps_done(error)
                delay_s = self._retry.delay_s(error, attempt, repeatable=repeatable, jitter=self._jitter())
                if delay_s is None:
                    raise
            attempt += 1
            await asyncio.sleep(delay_s)

    async def _write(self, method: str, target: str, body: bytes | None, form: WireFormat) -> bytes:
        async with self._places:
            wait_s = self._bucket.reserve(self._clock())
            if wait_s:
                await asyncio.sleep(wait_s)
            if self._may_write is not None and not self._may_write():
                raise Fenced(f"{method} {target}: not sent, another replica may lead")
            return await self._wire.call(method, target, body, form, self._timeout_s)


def _page(body: bytes, path: str) -> _List:
    try:
        return decode(_list, body)
    except msgspec.DecodeError as error:
        raise not_whole(f"GET {path}", error) from error


def _selection(scope: ListScope) -> dict[str, str]:
    chosen = {"fieldSelector": scope.field_selector, "labelSelector": scope.label_selector}
    return {key: value for key, value in chosen.items() if value}


def _target(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path
