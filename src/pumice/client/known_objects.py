"""What a reflector has told its consumer, and so what it still has to tell: the pure half of list and watch.

A view holds uid and resourceVersion of every object, nothing else, and turns whatever a server sends into changes that are each told once
and never go back in time:

* a list is compared with what is known: equal objects are silent, missing ones are Deleted at its end;
* a watch event must be newer than what is known of its object. Older ones are dropped, if they can be told from news that came late;
* an object with another uid under a known name is Deleted, then Added;
* what the consumer has `heard` from an answer counts as told.

Resource versions are compared as numbers, as Kubernetes promises since 1.35 and etcd always gave. After its list, a watch brings them
in rising order; an event of an unknown object that is older than the `position` is a broken promise (`OutOfOrder`): only a new list helps.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from pumice.api.meta import Metadata

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
