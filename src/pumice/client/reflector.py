"""One resource of an API server, followed for ever: list, watch, resume, list again, told to a consumer as changes.

`Reflector` is the shell around `KnownObjects`. It lists page by page and watches from there; a watch that begins with all sends each in a
parcel of its own, which costs several times as much to receive. When a stream ends, breaks, is cut within a line or falls silent, the watch
goes on from the last position after a pause that doubles and is spread; when the position is forgotten (410) or the stream broke its order,
everything is listed anew and only the differences are told. It ends by being cancelled.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from pumice.api.meta import Metadata
from pumice.client.known_objects import Change, KnownObjects, OutOfOrder
from pumice.client.retry import Backoff, asked_delay_s
from pumice.client.transport import ApiError, KubeError, ListScope, NoAnswer, Transport, api_error, decode, shallow

T = TypeVar("T")
log = logging.getLogger(__name__)


class Pace(msgspec.Struct, frozen=True):
    """The times a reflector keeps."""

    backoff: Backoff = Backoff(first_s=0.8, longest_s=30.0)
    idle_s: float = 150.0  #: servers send a bookmark a minute; a stream that is silent longer is dead
    shortest_watch_s: int = 300  #: watches are ended by the server after this to twice this, so that they spread
    page: int = 500


DEFAULT_PACE = Pace()


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Head(msgspec.Struct):
    """Any object, its metadata only."""

    metadata: Metadata


_event = msgspec.json.Decoder(_Event)
_head = msgspec.json.Decoder(_Head)


class Reflector(Generic[T]):
    """`deliver` is called with each change, in order. `synced` is set once it was told of everything there was."""

    def __init__(
        self,
        transport: Transport,
        scope: ListScope,
        decode: Callable[[msgspec.Raw], T],
        deliver: Callable[[Change[T]], None],
        *,
        metadata: Callable[[T], Metadata] = attrgetter("metadata"),
        jitter: Callable[[], float] = random.random,
        pace: Pace = DEFAULT_PACE,
        optional: bool = False,
    ) -> None:
        self.scope = scope
        self.synced = asyncio.Event()
        self.trouble: Exception | None = None  #: why it is not up to date at the moment
        self._transport = transport
        self._decode = decode
        self._deliver = deliver
        self._metadata = metadata
        self._jitter = jitter
        self._pace = pace
        self._optional = optional  #: a server without this resource counts as one without objects
        self._view: KnownObjects[T] = KnownObjects()
        self._page = pace.page
        self._failures = 0  #: rounds without progress, one after the other
        self._told = ""  #: the failure that was logged last; the same one again is no news

    @property
    def forbidden(self) -> bool:
        """Whether our role does not let it be read."""
        return isinstance(self.trouble, ApiError) and self.trouble.code == 403

    def version(self, namespace: str, name: str) -> int:
        """Of an object as it was delivered last; 0 if it is not known."""
        return self._view.version(namespace, name)

    def heard(self, metadata: Metadata) -> bool:
        """An answer to a call told of this object. False: it has ended since, and nothing more will be told of it."""
        return self._view.heard(metadata)

    async def run(self) -> None:
        while True:
            try:
                await self._round()
                error: Exception | None = None
            except (KubeError, OutOfOrder, msgspec.DecodeError) as failure:
                error = failure
                self._failed(failure)
            self._failures += 1
            # The first interruption after progress is ordinary (a time-out, a forgotten position): go on at once.
            pause_s = self._pace.backoff.delay_s(self._failures - 2, self._jitter()) if self._failures > 1 else 0.0
            await asyncio.sleep(max(pause_s, asked_delay_s(error) if error else 0.0))

    async def _round(self) -> None:
        if self._view.position:
            await self._watch()
        else:
            await self._list()

    def _failed(self, error: Exception) -> None:
        self.trouble = error
        if isinstance(error, OutOfOrder) or (isinstance(error, ApiError) and error.code == 410):
            self._view.must_list()
        absent = isinstance(error, ApiError) and error.code == 404 and self._optional
        if absent:
            self.synced.set()
        known = str(error) == self._told or (isinstance(error, NoAnswer) and not self._failures)
        self._told = str(error)
        level = logging.DEBUG if known else logging.INFO if absent else logging.WARNING
        log.log(level, "%s: %s", self.scope.resource.plural, error)

    async def _list(self) -> None:
        self._view.list_begins()
        limit, self._page = self._page, 0  # pages taken too slowly end in 410: the next try asks for everything in one
        version = ""
        async with aclosing(self._transport.pages(self.scope, limit=limit)) as pages:  # type: ignore[type-var]
            async for page in pages:
                version = version or page.resource_version
                self._view.list_is_of(version)
                for raw in page.items:
                    self._take("ADDED", raw)
        self._page = limit or self._pace.page
        self._tell(self._view.list_ends(version))
        self.trouble = None
        self.synced.set()

    async def _watch(self) -> None:
        pace = self._pace
        lines = self._transport.watch(
            self.scope,
            resource_version=str(self._view.position),
            timeout_s=int(pace.shortest_watch_s * (1 + self._jitter())),
            idle_s=pace.idle_s,
        )
        async with aclosing(lines):  # type: ignore[type-var]
            async for batch in lines:
                self._failures, self._told = 0, ""  # a list alone is no progress: a server may forget each position at once
                self.trouble = None
                for line in batch:
                    event = decode(_event, line)
                    self._take(event.type, event.object)

    def _take(self, kind: str, raw: msgspec.Raw) -> None:
        try:
            self._understand(kind, raw)
        except RecursionError:
            self._understand(kind, msgspec.Raw(shallow(bytes(raw))))

    def _understand(self, kind: str, raw: msgspec.Raw) -> None:
        if kind == "BOOKMARK":
            self._view.stands_at(_head.decode(raw).metadata.resource_version)
        elif kind == "ERROR":
            raise api_error(500, bytes(raw))
        elif kind == "DELETED":
            self._tell(self._view.deleted(_head.decode(raw).metadata))
        else:
            try:
                item = self._decode(raw)
            except msgspec.ValidationError as error:
                self._unreadable(raw, error)
                return
            self._tell(self._view.changed(item, self._metadata(item)))

    def _tell(self, changes: list[Change[T]]) -> None:
        for change in changes:
            self._deliver(change)

    def _unreadable(self, raw: msgspec.Raw, error: Exception) -> None:
        """An object that the decoder refuses: what was known of it stays, everything else goes on."""
        metadata = _head.decode(raw).metadata
        self._view.kept(metadata)
        log.error("%s %s/%s cannot be read and is passed over: %s", self.scope.resource.kind, metadata.namespace, metadata.name, error)


def dict_metadata(item: dict[str, Any]) -> Metadata:
    """For reflectors that decode into plain dicts."""
    return msgspec.convert(item["metadata"], Metadata)
