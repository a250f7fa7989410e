"""One resource of an API server, followed for ever: list, watch, resume, list again, told to a consumer as changes.

`Reflector` is the shell around `KnownObjects`. It lists page by page and watches from there; a watch that begins with all sends each in a
parcel of its own, which costs several times as much to receive. When a stream ends, breaks, is cut within a line or falls silent, the watch
goes on from the last position after a pause that doubles and is spread; when the position is forgotten (410) or the stream broke its order,
everything is listed anew and only the differences are told. It ends by being cancelled.

`KnownObjects` is the pure half: what the consumer has been told. It holds uid and resourceVersion of every object, nothing else, and turns
whatever a server sends into changes that are each told once and never go back in time:

* a list is compared with what is known: equal objects are silent, missing ones are Deleted at its end;
* a watch event must be newer than what is known of its object. Older ones are dropped, if they can be told from news that came late;
* an object with another uid under a known name is Deleted, then Added;
* what the consumer has `heard` from an answer counts as told.

Resource versions are compared as numbers, as Kubernetes promises since 1.35 and etcd always gave. After its list, a watch brings them
in rising order; an event of an unknown object that is older than the `position` is a broken promise (`OutOfOrder`): only a new list helps.
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
from pumice.client.client import Backoff, asked_delay_s
from pumice.client.transport import ApiError, KubeError, ListScope, NoAnswer, Transport, api_error, decode, shallow

T = TypeVar("T")


class Added(msgspec.Struct, Generic[T], frozen=True):
    object: T
    key: str  #: "namespace/name", for consumers to keep the same one


class Modified(msgspec.Struct, Generic[T], frozen=True):
    object: T
    key: str


class Deleted(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    uid: str


Change = Added[T] | Modified[T] | Deleted


class OutOfOrder(Exception):
    """Events came so that something may have been missed; list again."""


class KnownObject(msgspec.Struct, frozen=True, gc=False):
    """Identity and version of an object as it was told last; there is one for each object of a cluster."""

    uid: str
    version: int


UNKNOWN = KnownObject("", 0)


class KnownObjects(Generic[T]):
    """The identities of one resource's objects, as told."""

    def __init__(self) -> None:
        self._known: dict[str, KnownObject] = {}  #: by "namespace/name"
        self._listed: set[str] | None = None  #: keys met in the list under way
        self._newest = 0  #: no list may be older
        self.position = 0  #: the resource version from which to watch on; 0: list first

    def __len__(self) -> int:
        return len(self._known)

    def version(self, namespace: str, name: str) -> int:
        """Of an object as it was told last; 0 if it is not known."""
        return self._known.get(f"{namespace}/{name}", UNKNOWN).version

    def list_begins(self) -> None:
        self._listed = set()
        self.must_list()

    def list_is_of(self, resource_version: str) -> None:
        """Raises OutOfOrder for a list that is older than what was told. (After a restore of etcd, programs are to be started again.)"""
        if _number(resource_version) < self._newest:
            raise OutOfOrder(f"the server listed its state at {resource_version}, {self._newest} was seen before")

    def list_ends(self, resource_version: str) -> list[Change[T]]:
        """All objects were listed, as of `resource_version`. What was not met is gone, unless it was heard of since."""
        listed, self._listed = self._listed or (), None
        self.position = _number(resource_version)
        gone = [key for key, told in self._known.items() if key not in listed and told.version <= self.position]
        return [self._drop(key) for key in gone]

    def kept(self, metadata: Metadata) -> None:
        """An object that could not be read was met in a list: what was known of it stays."""
        if self._listed is not None:
            self._listed.add(_key(metadata))

    def must_list(self) -> None:
        """The server no longer knows what happened since `position`."""
        self._newest = max(self._newest, self.position)
        self.position = 0

    def stands_at(self, resource_version: str | None) -> None:
        """A bookmark: everything up to here has been sent."""
        self.position = max(self.position, _number(resource_version))

    def changed(self, item: T, metadata: Metadata) -> list[Change[T]]:
        """An object of a list, or an ADDED or MODIFIED event of a watch; which of the two is not relied upon."""
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
        """A DELETED event of a watch. Its resource version is that of the deletion."""
        key, version = _key(metadata), _number(metadata.resource_version)
        self.position = max(self.position, version)
        known = self._known.get(key)
        return [self._drop(key)] if known and version >= known.version else []

    def heard(self, metadata: Metadata) -> bool:
        """The consumer has an object from the answer to a call, and is to hear of its end. False: it ended already."""
        key, version = _key(metadata), _number(metadata.resource_version)
        known = self._known.get(key) or KnownObject("", self.position)
        if version > known.version:
            self._known[key] = KnownObject(metadata.uid or "", version)
        return version > known.version or known.uid == metadata.uid

    def _drop(self, key: str) -> Deleted:
        return _deleted(key, self._known.pop(key))


def _deleted(key: str, told: KnownObject) -> Deleted:
    namespace, _, name = key.partition("/")
    return Deleted(namespace, name, told.uid)


def _key(metadata: Metadata) -> str:
    return f"{metadata.namespace or ''}/{metadata.name}"


def _number(resource_version: str | None) -> int:
    """The version as a number. Raises OutOfOrder for what is not a resource version: nothing can be ordered by it."""
    try:
        return int(resource_version or "")
    except ValueError:
        raise OutOfOrder(f'resourceVersion "{resource_version}" is not a number') from None


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
