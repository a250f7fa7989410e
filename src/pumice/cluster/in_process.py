"""An API server without a wire: the `Transport` of our own clients, straight over a store in the same process.

What it hands out are the same bytes that the server would send, made once for all watchers of a kind. Its watches never end, break or fall
silent, so those who read them need no time-outs; a reader that is too slow is cut off with 410 as by the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.transport import ApiError, ListScope, Page, PatchType
from pumice.cluster.apiserver import DeleteOptions, PatchRequest, Store, WriteOptions
from pumice.cluster.apiserver.kinds import ServedKind
from pumice.cluster.apiserver.patch import CONTENT_TYPES
from pumice.cluster.apiserver.read import selectors_of
from pumice.cluster.apiserver.schema import Object
from pumice.cluster.apiserver.status import StatusError, no_such_path
from pumice.cluster.apiserver.store import seen
from pumice.cluster.apiserver.watch import Watch, WatchEvent, seen_object

BATCH = 1000  #: events in one piece
WRITES_AT_ONCE = 16  #: before others have their turn

_encode = msgspec.json.encode


class InProcess:
    """A Transport over `store`, for the component called `manager`."""

    def __init__(self, store: Store, manager: str) -> None:
        self._store = store
        self._options = WriteOptions(manager=manager, validation="Ignore")
        self._writes = 0

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes:
        with _answering():
            return _encode(self._store.get(self._kind(resource), ref.name, ref.namespace))

    async def pages(self, scope: ListScope, *, limit: int = 500) -> AsyncIterator[Page]:
        with _answering():
            kind = self._kind(scope.resource)
            page = self._store.list(kind, scope.namespace, *selectors_of(scope.label_selector, scope.field_selector, kind))
        yield Page([msgspec.Raw(_encode(obj)) for obj in page.items], str(page.version))

    async def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        woken = asyncio.Event()
        with _answering():
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
        with _answering():
            if subresource == "binding":
                metadata = body["metadata"]
                where = namespace, name, body["target"]["name"], metadata.get("uid", ""), metadata.get("annotations")
                self._store.bind(*where, options=self._options)
                return b"{}"
            if subresource == "eviction":
                self._store.evict(namespace, name, options=self._options)
                return b"{}"
            return _encode(self._store.create(self._kind(resource), body, namespace, self._options))

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes:
        await self._turn()
        with _answering():
            return _encode(self._store.update(self._kind(resource), body, subresource, self._options))

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes:
        await self._turn()
        with _answering():
            patch = PatchRequest(CONTENT_TYPES[patch_type.value], _plain(body))
            return _encode(self._store.patch(self._kind(resource), ref.name, patch, ref.namespace, subresource, self._options))

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        await self._turn()
        wish = DeleteOptions(uid=ref.uid, grace_s=grace_s, propagation=propagation)
        with _answering():
            self._store.delete(self._kind(resource), ref.name, ref.namespace, wish, self._options)

    async def _turn(self) -> None:
        """Writes never wait for anything, so let others have their turn now and then."""
        self._writes += 1
        if self._writes % WRITES_AT_ONCE == 0:
            await asyncio.sleep(0)

    def _kind(self, resource: Kind) -> ServedKind:
        kind = self._store.kinds.at(resource.group, resource.version, resource.plural)
        if kind is None:
            raise no_such_path()
        return kind


@contextmanager
def _answering() -> Iterator[None]:
    """The store's refusals as clients know them."""
    try:
        yield
    except StatusError as error:
        seconds = (error.details or {}).get("retryAfterSeconds")
        raise ApiError(error.code, error.reason, error.message, float(seconds) if seconds else None) from None


def _plain(body: Any) -> Any:
    """A body that may hold structs, as JSON has it."""
    return msgspec.to_builtins(body)


def _lines(kind: ServedKind, watch: Watch) -> list[bytes]:
    events = watch.take(BATCH)
    if not events and watch.cut_off:
        raise ApiError(410, "Expired", "the watch was too slow")
    return [_event(kind, seen_as, event) for seen_as, event in events]


def _event(kind: ServedKind, seen_as: str, event: WatchEvent) -> bytes:
    if seen_as == event.type and event.object["apiVersion"] == kind.api_version:
        return event.json()
    return _line(seen_as, seen(kind, seen_object(seen_as, event)))


def _line(type_: str, obj: Object) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), _encode(obj))
