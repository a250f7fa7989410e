"""Follow one resource of an API server for ever: list, watch, resume, list again, and deliver the changes to a consumer.

`Reflector` makes the calls. It lists page by page and watches from there; a watch that begins with all objects would send each of them
separately, which costs several times as much to receive. When a stream ends, breaks, is cut within a line or falls silent, the watch
goes on from the last position after a pause that doubles and has jitter. When the server has forgotten the position (410) or the events
came out of order, everything is listed again and only the differences are delivered. The reflector runs until it is cancelled.

What of that is a change is decided by the pure `KnownVersions`.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import aclosing
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec

from pumice.api.meta import Metadata
from pumice.client.client import Backoff, asked_delay_s
from pumice.client.failures import ApiError, KubeError, NoAnswer, api_error
from pumice.client.known_versions import Change, KnownVersions, OutOfOrder
from pumice.client.odd_json import NOT_TAKEN, decode, readable
from pumice.client.transport import ListScope, Transport, WatchedEvent

T = TypeVar("T")
log = logging.getLogger(__name__)


class Pace(msgspec.Struct, frozen=True):
    """The times of a reflector, and the size of its pages."""

    backoff: Backoff = Backoff(first_s=0.8, longest_s=30.0)
    unallowed: Backoff = Backoff(first_s=0.8, longest_s=300.0)  #: where our role does not let an optional resource be read
    idle_s: float = 150.0  #: servers send a bookmark each minute; a stream that is silent for this long is dead
    shortest_watch_s: int = 300  #: the server ends a watch after once to twice this time, so that watches do not end together
    page: int = 500


DEFAULT_PACE = Pace()
PATIENT_ROUNDS = 5  #: so many 410 or 429 in a row are ordinary: a CRD that is only just installed is read with them at first


class _Head(msgspec.Struct):
    """Any object, of which only the metadata is read."""

    metadata: Metadata


_event = msgspec.json.Decoder(WatchedEvent)
_head = msgspec.json.Decoder(_Head)


class Reflector(Generic[T]):
    """Calls `deliver` with each change, in order. `synced` is set once all objects of the first list are delivered."""

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
        self.absent = False  #: whether the server does not have this resource, which is optional
        self.trouble: Exception | None = None  #: why the reflector is not up to date at the moment; None if it is
        self._transport = transport
        self._decode = decode
        self._deliver = deliver
        self._metadata = metadata
        self._jitter = jitter
        self._pace = pace
        self._optional = optional  #: if the server does not have this resource, it counts as a resource without objects
        self._view: KnownVersions[T] = KnownVersions()
        self._page = pace.page
        self._in_doubt = False  #: whether the last round ended because the server showed an older state
        self._silent = False  #: whether the last watch showed nothing
        self._failures = 0  #: the number of rounds without progress in a row
        self._put_off = 0  #: how many rounds without progress ended with 410 or 429, since another failure
        self._was_there = False  #: whether the server had this resource when it was last asked and answered
        self._watched = False  #: whether a watch has shown anything yet
        self._logged = ""  #: the failure that was logged last; the same failure is not logged again as a warning
        self._passed_over = ""  #: the ordinary failure that was seen last; it may last for good, and is not logged again at all

    @property
    def forbidden(self) -> bool:
        """Whether our role does not allow the resource to be read."""
        return isinstance(self.trouble, ApiError) and self.trouble.code == 403

    def version(self, namespace: str, name: str) -> int:
        """The resource version of an object as it was delivered last; 0 if the object is not known."""
        return self._view.version(namespace, name)

    def note_answer(self, metadata: Metadata) -> bool:
        """Note an object from the answer to a call. False if it has been deleted since: no more changes of it will be delivered."""
        return self._view.note_answer(metadata)

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
            backoff = self._pace.unallowed if self._optional and self.forbidden else self._pace.backoff
            pause_s = backoff.delay_s(self._failures - 2, self._jitter()) if self._failures > 1 else 0.0
            await asyncio.sleep(max(pause_s, asked_delay_s(error) if error else 0.0))

    async def _round(self) -> None:
        if self._view.position:
            await self._watch()
        else:
            await self._list()

    def _failed(self, error: Exception) -> None:
        self.trouble = error
        if isinstance(error, ApiError) and error.is_too_large:
            self._view.forget_position()
        if isinstance(error, OutOfOrder) or (isinstance(error, ApiError) and error.code == 410):
            self._view.must_list()
        self._in_doubt = isinstance(error, OutOfOrder)
        self._put_off = self._put_off + 1 if isinstance(error, ApiError) and error.code in (410, 429) else 0
        absent = self.absent = isinstance(error, ApiError) and error.code == 404 and self._optional
        vanished = absent and self._was_there
        if absent:
            self._was_there = False
            self.synced.set()
        known = str(error) == self._logged or (isinstance(error, NoAnswer) and not self._failures)
        quiet = (absent and not vanished) or self._is_ordinary(error)
        self._logged = "" if quiet else str(error)
        if quiet and str(error) == self._passed_over:
            return
        self._passed_over = str(error) if quiet else ""
        log.log(logging.DEBUG if known or quiet else logging.WARNING, "%s: %s", self.scope.resource.plural, error)

    def _is_ordinary(self, error: Exception) -> bool:
        """Whether nobody need act on it, or it is told elsewhere: a CRD was only just installed, a position in the watch is too old; or a
        right is lacking from the start, which whoever waits for the first list tells."""
        if not isinstance(error, ApiError):
            return False
        return (error.code == 403 and not self._watched) or 0 < self._put_off <= PATIENT_ROUNDS

    async def _list(self) -> None:
        self._view.list_begins()
        limit, self._page = self._page, self._pace.page
        not_older = self._view.newest if self._in_doubt else 0
        try:
            version = await self._list_pages(limit, not_older)
        except ApiError as error:
            if error.code == 410:  # the pages were read too slowly: the next try lists everything in one page
                self._page = 0
            raise
        self._in_doubt = False
        self._tell(self._view.list_ends(version))
        self.trouble, self.absent, self._was_there = None, False, True
        self.synced.set()

    async def _list_pages(self, limit: int, not_older: int) -> str:
        """Take all objects of a list, and return the resource version that it is of."""
        version = ""
        async with aclosing(self._transport.pages(self.scope, limit=limit, not_older=not_older)) as pages:  # type: ignore[type-var]
            async for page in pages:
                version = version or page.resource_version
                self._view.list_is_of(version)
                for raw in page.items:
                    self._take("ADDED", raw)
        return version

    async def _watch(self) -> None:
        if self._silent:  # not even a bookmark came. A server says nothing to who waits for a version to which it has not come
            async with aclosing(self._transport.pages(self.scope, limit=1, not_older=self._view.position)) as pages:  # type: ignore[type-var]
                await anext(pages)
        self._silent = True
        pace = self._pace
        lines = self._transport.watch(
            self.scope,
            resource_version=str(self._view.position),
            timeout_s=int(pace.shortest_watch_s * (1 + self._jitter())),
            idle_s=pace.idle_s,
        )
        async with aclosing(lines):  # type: ignore[type-var]
            async for batch in lines:
                self._watched, self._silent = True, False
                for line in batch:
                    event = line if isinstance(line, WatchedEvent) else decode(_event, line)
                    self._take(event.type, event.object)
                    # Neither a list nor an answer that is no event is progress: a server may forget each position at once.
                    self._failures, self._put_off, self._logged, self.trouble = 0, 0, "", None

    def _take(self, kind: str, raw: msgspec.Raw) -> None:
        try:
            self._understand(kind, raw)
        except NOT_TAKEN:
            self._understand(kind, msgspec.Raw(readable(bytes(raw))))

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
            metadata = self._metadata(item)
            if self.scope.namespace in ("", metadata.namespace):  # another reflector has the objects of another namespace
                self._tell(self._view.changed(item, metadata))

    def _tell(self, changes: list[Change[T]]) -> None:
        for change in changes:
            self._deliver(change)

    def _unreadable(self, raw: msgspec.Raw, error: Exception) -> None:
        """Skip an object that the decoder refuses: what is known of it stays, and everything else goes on."""
        metadata = _head.decode(raw).metadata
        self._view.kept(metadata)
        log.error("%s %s/%s cannot be read and is passed over: %s", self.scope.resource.kind, metadata.namespace, metadata.name, error)


def dict_metadata(item: dict[str, Any]) -> Metadata:
    """The metadata of an object that was decoded into a plain dict. Raises ValidationError if it has none."""
    return msgspec.convert(item.get("metadata"), Metadata)
