"""Follow one resource of an API server for ever: list, watch, resume, list again, and deliver the changes to a consumer.

`Reflector` makes the calls. It lists page by page and watches from there; a watch that begins with all objects would send each of them
separately, which costs several times as much to receive. When a stream ends, breaks, is cut within a line or falls silent, the watch
goes on from the last position after a pause that doubles and has jitter. When the server has forgotten the position (410) or the events
came out of order, everything is listed again and only the differences are delivered. The reflector runs until it is cancelled.

`KnownObjects` is the pure half: the objects as the consumer has them. It holds only uid and resourceVersion of every object, and turns
whatever a server sends into changes that are delivered once each and never go back in time:

* a list is compared with the known objects: an unchanged object gives no change, missing objects are Deleted at its end;
* a watch event must be newer than the known version of its object. An older event of a known object is dropped;
* an object with a known name and another uid gives Deleted, then Added;
* an object that the consumer has noted from the answer to a call (`note_answer`) counts as delivered;
* what the server shows as older than what it showed before is refused, and asked for anew as not older than that. If the server has not
  come to that version, then it is the version that was wrong: it is forgotten.

Resource versions are compared as numbers: Kubernetes guarantees this since 1.35, and with etcd it was always so. After its list, a watch
sends them in rising order. An event of an unknown object that is not newer than `position` breaks this order (`OutOfOrder`): only a new
list helps.
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
from pumice.client.odd_json import NOT_TAKEN, decode, readable
from pumice.client.transport import ListScope, Transport

T = TypeVar("T")


class Added(msgspec.Struct, Generic[T], frozen=True):
    object: T
    key: str  #: "namespace/name"; consumers can keep this same string object, to save memory


class Modified(msgspec.Struct, Generic[T], frozen=True):
    object: T
    key: str


class Deleted(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str


Change = Added[T] | Modified[T] | Deleted


class OutOfOrder(Exception):
    """Events came out of order, so changes may have been missed: list again."""


class KnownObject(msgspec.Struct, frozen=True, gc=False):
    """The uid and version of an object as it was delivered last. There is one of these for each object of a cluster."""

    uid: str
    version: int


UNKNOWN = KnownObject("", 0)
LONGEST_VERSION = 20  #: the digits of 64 bits


class KnownObjects(Generic[T]):
    """The uids and versions of one resource's objects, as they were delivered."""

    def __init__(self) -> None:
        self._known: dict[str, KnownObject] = {}  #: by "namespace/name"
        self._listed: set[str] | None = None  #: the keys found so far in the list that is being read; None if none is
        self.newest = 0  #: no list may be older than this resource version
        self._doubted = False  #: whether known versions may be beyond the server
        self.position = 0  #: the resource version from which to watch on; 0: list first

    def __len__(self) -> int:
        return len(self._known)

    def version(self, namespace: str, name: str) -> int:
        """The resource version of an object as it was delivered last; 0 if the object is not known."""
        return self._known.get(f"{namespace}/{name}", UNKNOWN).version

    def list_begins(self) -> None:
        self._listed = set()
        self.must_list()

    def list_is_of(self, resource_version: str) -> None:
        """Raise OutOfOrder if the list is older than a position reached before. (After a restore of etcd, programs must be restarted.)"""
        version = _number(resource_version)
        if version < self.newest:
            raise OutOfOrder(f"the server listed its state at {resource_version}, {self.newest} was seen before")
        if self._doubted:
            self._doubted = False
            beyond = {key: KnownObject(known.uid, 0) for key, known in self._known.items() if known.version > version}
            self._known |= beyond

    def list_ends(self, resource_version: str) -> list[Change[T]]:
        """End the list, which is as of `resource_version`. Known objects that were not in it are gone, unless they are newer than it."""
        listed, self._listed = self._listed or (), None
        self.position = _number(resource_version)
        gone = [key for key, known in self._known.items() if key not in listed and known.version <= self.position]
        return [self._drop(key) for key in gone]

    def kept(self, metadata: Metadata) -> None:
        """Note an object in a list that could not be decoded: what is known of it stays."""
        if self._listed is not None:
            self._listed.add(_key(metadata))

    def must_list(self) -> None:
        """Require a new list: the watch cannot go on from `position`."""
        self.newest = max(self.newest, self.position)
        self.position = 0

    def forget_position(self) -> None:
        """Take it that the server has not come to the newest version that was seen. What it lists next is believed."""
        self.newest = self.position = 0
        self._doubted = True

    def stands_at(self, resource_version: str | None) -> None:
        """Take a bookmark: the server has sent all events up to this resource version. Raises OutOfOrder if it was further before."""
        version = _number(resource_version)
        if version < self.position:
            raise OutOfOrder(f"the server stands at {version}, and was at {self.position} before")
        self.position = version

    def changed(self, item: T, metadata: Metadata) -> list[Change[T]]:
        """The changes for an object of a list, or for an ADDED or MODIFIED event of a watch. It does not matter which of the two it is."""
        key, version = _key(metadata), _number(metadata.resource_version)
        if self._listed is not None:
            self._listed.add(key)
        elif version <= self.position and key not in self._known:
            raise OutOfOrder(f"{metadata.name} at {version} came after {self.position}")
        else:
            self.position = max(self.position, version)
        uid = metadata.uid or ""
        known = self._known.get(key)
        if known and version <= known.version:
            return []
        self._known[key] = KnownObject(uid, version)
        if known is None:
            return [Added(item, key)]
        if known.uid != uid:
            return [_deleted(key, known), Added(item, key)]
        return [Modified(item, key)]

    def deleted(self, metadata: Metadata) -> list[Change[T]]:
        """The changes for a DELETED event of a watch, whose resource version is that of the deletion."""
        key, version = _key(metadata), _number(metadata.resource_version)
        self.position = max(self.position, version)
        known = self._known.get(key)
        return [self._drop(key)] if known and version >= known.version else []

    def note_answer(self, metadata: Metadata) -> bool:
        """Note an object that the consumer has from the answer to a call, to deliver its deletion. False if it is deleted already."""
        key, version = _key(metadata), _number(metadata.resource_version)
        known = self._known.get(key) or KnownObject("", self.position)
        if version > known.version:
            self._known[key] = KnownObject(metadata.uid or "", version)
        return version > known.version or known.uid == metadata.uid

    def _drop(self, key: str) -> Deleted:
        return _deleted(key, self._known.pop(key))


def _deleted(key: str, known: KnownObject) -> Deleted:
    namespace, _, name = key.partition("/")
    return Deleted(namespace, name, known.uid)


def _key(metadata: Metadata) -> str:
    return f"{metadata.namespace or ''}/{metadata.name}"


def _number(resource_version: str | None) -> int:
    """The resource version as a number. Raises OutOfOrder if it is no number that a server counts to: nothing can be ordered by it."""
    text = resource_version or ""
    if not (text.isascii() and text.isdigit()) or len(text) > LONGEST_VERSION:
        raise OutOfOrder(f'resourceVersion "{text[: 2 * LONGEST_VERSION]}" is not a number')
    return int(text)


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


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Head(msgspec.Struct):
    """Any object, of which only the metadata is read."""

    metadata: Metadata


_event = msgspec.json.Decoder(_Event)
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
        self._view: KnownObjects[T] = KnownObjects()
        self._page = pace.page
        self._in_doubt = False  #: whether the last round ended because the server showed an older state
        self._silent = False  #: whether the last watch showed nothing
        self._failures = 0  #: the number of rounds without progress in a row
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
        absent = self.absent = isinstance(error, ApiError) and error.code == 404 and self._optional
        if absent:
            self.synced.set()
        known = str(error) == self._logged or (isinstance(error, NoAnswer) and not self._failures)
        quiet = absent or self._is_ordinary(error)
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
        return (error.code == 403 and not self._watched) or (error.code in (410, 429) and self._failures < PATIENT_ROUNDS)

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
        self.trouble, self.absent = None, False
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
                    event = decode(_event, line)
                    self._take(event.type, event.object)
                    # Neither a list nor an answer that is no event is progress: a server may forget each position at once.
                    self._failures, self._logged, self.trouble = 0, "", None

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
