"""The client of an API server: Kubernetes' verbs over HTTP, with rate limit, retries and the fence in one place.

Every call goes through `_call`. A write waits for one of `in_flight` places and for the rate limit, then asks the fence, then is sent. So a
write that waited or is being repeated is stopped too, if the lease was lost meanwhile. `fenced` gives a second client with the same
connections and limits, whose writes ask the fence; the election itself uses the client whose writes do not ask it.

`Retry` says which failed calls are repeated, and when:

* 429, and 5xx with Retry-After: the server did not carry out the call and says when to try again. Any call may be repeated.
* No connection: nothing was sent. Any call may be repeated.
* Connection lost after sending, time-out, 5xx without Retry-After: the call may have been carried out. Only a call that may be made twice
  (`repeatable`: reads, and writes whose second time changes nothing) is repeated; for others, the caller finds out what happened.
* 409 and the other 4xx are answers, not faults: never repeated.

API priority and fairness uses 429 and Retry-After, so it needs no case of its own.
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
from pumice.client.failures import ApiError, Fenced, KubeError, NoAnswer
from pumice.client.http_session import JSON, PLAIN, HttpSession, WireFormat, not_whole
from pumice.client.odd_json import decode
from pumice.client.rate_limit import DEFAULT_LIMITS, ClientLimits, TokenBucket
from pumice.client.transport import ListScope, Page, PatchType

PASSING = (401, 404, 408, 409, 410, 429)  #: the state of the object, our credentials or the moment was the cause, not the write itself


class Backoff(msgspec.Struct, frozen=True):
    """Pauses that double from `first_s` up to `longest_s`. Jitter takes away up to half, so that clients do not retry together."""

    first_s: float = 0.1
    longest_s: float = 5.0

    def delay_s(self, attempt: int, jitter: float) -> float:
        """The seconds to wait after failure number `attempt` (counted from 0). `jitter` is in [0, 1)."""
        return min(self.longest_s, self.first_s * 2.0 ** min(attempt, 30)) * (0.5 + jitter / 2)


class Retry(msgspec.Struct, frozen=True):
    """How often a call is tried, and after which pauses, before its failure is raised to the caller."""

    attempts: int = 6
    backoff: Backoff = Backoff()

    def delay_s(self, error: KubeError, attempt: int, *, repeatable: bool, jitter: float) -> float | None:
        """The seconds until the next try, None to give up. `attempt` counts the failures before this one."""
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


def of_ending_namespace(error: BaseException) -> bool:
    """Whether the call failed because its namespace is being deleted, or is gone: what was to be written is of no use any more."""
    return (
        isinstance(error, ApiError) and error.code in (403, 404) and ("is being terminated" in str(error) or 'namespaces "' in str(error))
    )


def asked_delay_s(error: BaseException) -> float:
    """The seconds that the server asks us to wait: its Retry-After; 1 for a 429 without one; else 0."""
    if not isinstance(error, ApiError):
        return 0.0
    if error.retry_after_s is not None:
        return error.retry_after_s
    return 1.0 if error.code == 429 else 0.0


DEFAULT_RETRY = Retry()
_JSON = WireFormat(JSON)
_LIST = WireFormat(zipped=True, checked=False)  # a list is checked when it is decoded


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
        """A copy of this client whose writes are sent only while `may_write()` is true; otherwise they raise Fenced."""
        other = copy.copy(self)
        other._may_write = may_write
        return other

    def check_fence(self) -> None:
        if self._may_write is not None and not self._may_write():
            raise Fenced("not sent, another replica may lead")

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        return await self._call("GET", resource.path(ref.name, ref.namespace), form=PLAIN, repeatable=True)

    async def get_path(self, path: str, accept: str = JSON) -> bytes:
        """Get any other path of the server, such as /version, or an object in another form, such as a table."""
        return await self._call("GET", path, form=WireFormat(accept=accept), repeatable=True)

    def watch_path(self, path: str, accept: str, idle_s: float) -> AsyncIterator[list[bytes]]:
        """The lines of a watch that gives the objects in another form, such as a table."""
        return self._wire.lines(path, idle_s, WireFormat(accept=accept))

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        # No resourceVersion: the list must not be older than anything seen before, so it must not come from a server's stale cache.
        query = _selection(scope) | ({"limit": str(limit)} if limit else {})
        if not_older:
            query |= {"resourceVersion": str(not_older), "resourceVersionMatch": "NotOlderThan"}
        path = scope.resource.path(namespace=scope.namespace)
        before = set[str]()  #: the tokens of earlier pages
        while True:
            page = _page(await self._call("GET", _target(path, query), form=_LIST, repeatable=True), path)
            yield Page(page.items or [], page.metadata.resource_version)
            if not page.metadata.next:
                return
            if page.metadata.next in before:
                raise NoAnswer(f"GET {path}: the list does not end: a page names an earlier page as its next", sent=True)
            before.add(page.metadata.next)
            query = _selection(scope) | {"limit": str(limit), "continue": page.metadata.next}

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
        """Server-side apply: create or update the object, and take over fields that others own. Unknown fields are refused."""
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
                    return b""  # an earlier try of this call was carried out
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
            self.check_fence()
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
