"""The objects of one resource as a consumer has them: whatever a server sends becomes changes, each delivered once, never back in time.

Only uid and resourceVersion of every object are kept:

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

from typing import Generic, TypeVar

import msgspec

from pumice.api.meta import Metadata

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


class KnownVersions(Generic[T]):
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
