"""An API server without a network: the `Transport` of our clients, over the embedded store.

It hands out the same bytes that the server would send, made once for all watchers of a kind. Its watches never end, break or fall silent,
so their readers need no time-outs. A reader that is too slow is cut off with 410, as by the server.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import msgspec

from pumice.api import Object
from pumice.api.kinds import Kind, ObjectRef
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, Page, PatchType, WatchedEvent, WatchLine
from pumice.cluster.apiserver import DeleteOptions, PatchRequest, StatusError, Store, WriteOptions
from pumice.cluster.apiserver.patches.strategic_merge import CONTENT_TYPES
from pumice.cluster.apiserver.pending_calls import Pending, attempted, until_done
from pumice.cluster.apiserver.read import selectors_of
from pumice.cluster.apiserver.scheme.conversion import seen
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import no_such_path
from pumice.cluster.apiserver.storage.watch import Watch, WatchEvent, seen_object

BATCH = 1000  #: the most events that a watch hands out at a time
_OF_STATUS = ("apiVersion", "kind", "metadata", "status")  #: what a write to the status is about: all else stays as it is stored
WRITES_AT_ONCE = 16  #: writes in a row before other coroutines have their turn

_encode = msgspec.json.encode

Done = TypeVar("Done")


class InProcess:
    """A Transport over `store`, for the component called `manager`."""

    def __init__(self, store: Store, manager: str) -> None:
        self._store = store
        self._options = WriteOptions(manager=manager, validation="Ignore")
        self._writes = 0

    def check_fence(self) -> None:
        """There is none: a component of this process has no other replica."""

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        with _answering:
            kind = self._kind(resource)
            return self._json(kind, self._store.get(kind, ref.name, ref.namespace))

    async def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        with _answering:
            kind = self._kind(scope.resource)
            page = self._store.list(kind, scope.namespace, *selectors_of(scope.label_selector, scope.field_selector, kind))
        yield Page([msgspec.Raw(_encode(obj)) for obj in page.items], str(page.version))

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[WatchLine]]:
        woken = asyncio.Event()
        with _answering:
            kind = self._kind(scope.resource)
            chosen = selectors_of(scope.label_selector, scope.field_selector, kind)
            watch = self._store.watch(kind, scope.namespace, *chosen, since=int(resource_version), wake=woken.set)
        try:
            while True:
                await woken.wait()
                woken.clear()
                while lines := _lines(kind, watch):
                    yield lines
        finally:
            self._store.unwatch(kind, watch)

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes:
        await self._turn()
        with _answering:
            if subresource == "binding":
                metadata = body["metadata"]
                where = namespace, name, body["target"]["name"], metadata.get("uid", ""), metadata.get("annotations")
                self._store.bind(*where, options=self._options)
                return b"{}"
            if subresource == "eviction":
                await self._done(lambda: self._store.evict(namespace, name, options=self._options))
                return b"{}"
            kind = self._kind(resource)
            return self._json(kind, await self._done(lambda: self._store.create(kind, body, namespace, self._options)))

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        await self._turn()
        if subresource == "status":
            body = {field: body[field] for field in _OF_STATUS if field in body}
        with _answering:
            kind = self._kind(resource)
            return self._json(kind, await self._done(lambda: self._store.update(kind, body, subresource, self._options)))

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        await self._turn()
        with _answering:
            patch = PatchRequest(CONTENT_TYPES[patch_type.value], _plain(body))
            kind = self._kind(resource)
            where = kind, ref.name, patch, ref.namespace, subresource
            return self._json(kind, await self._done(lambda: self._store.patch(*where, self._options)))

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        await self._turn()
        delete_options = DeleteOptions(uid=ref.uid or None, grace_s=grace_s, propagation=propagation)
        with _answering:
            await self._done(lambda: self._store.delete(self._kind(resource), ref.name, ref.namespace, delete_options, self._options))

    async def _done(self, work: Callable[[], Done]) -> Done:
        """What a write returns, which waits for webhooks outside of this process if it concerns any."""
        try:
            return attempted(self._store, work)
        except Pending as pending:
            return await until_done(self._store, work, pending)

    async def _turn(self) -> None:
        """Let other coroutines have their turn now and then, as a write itself never waits for anything."""
        self._writes += 1
        if self._writes % WRITES_AT_ONCE == 0:
            await asyncio.sleep(0)

    def _json(self, kind: ServedKind, obj: Object) -> bytes:
        return self._store.storage.json(kind.storage, obj)

    def _kind(self, resource: Kind) -> ServedKind:
        kind = self._store.kinds.at(resource.group, resource.version, resource.plural)
        if kind is None:
            raise no_such_path()
        return kind


class _Answering:
    """A context that turns the StatusError of a request that the store refuses into the ApiError that clients know."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, StatusError):
            seconds = (error.details or {}).get("retryAfterSeconds")
            raise ApiError(error.code, error.reason, error.message, float(seconds) if seconds else None) from None


_answering = _Answering()


def _plain(body: Any) -> Any:
    """The body, which may hold structs, as plain JSON values."""
    return msgspec.to_builtins(body)


def _lines(kind: ServedKind, watch: Watch) -> list[WatchLine]:
    events = watch.take(BATCH)
    if not events and watch.cut_off:
        raise ApiError(410, "Expired", "the watch was too slow")
    return [_event(kind, seen_as, event) for seen_as, event in events]


def _event(kind: ServedKind, seen_as: str, event: WatchEvent) -> WatchedEvent:
    if seen_as == event.type and event.object["apiVersion"] == kind.api_version:
        return WatchedEvent(seen_as, msgspec.Raw(event.body))
    return WatchedEvent(seen_as, msgspec.Raw(_encode(seen(kind, seen_object(seen_as, event)))))
