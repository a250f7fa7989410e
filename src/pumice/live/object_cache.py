"""A live cluster as controllers and admission rules see it: their `Lister`, filled by reflectors and by the answers to our own writes.

Answers are stored at once, so that a decision always sees the writes made before it. If a watch shows the same version later, it is no
change; an older version is dropped. An object that was seen to be gone does not come back by a late answer. The server's bookkeeping
(managedFields) and the images of nodes are left out: no code here reads them, and they would take half of the memory.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator

from msgspec import ValidationError

from pumice.api import Key, Object, key_of, uid_of
from pumice.api.kinds import Kind
from pumice.client.known_versions import Change, Deleted
from pumice.controllers.controller import ObjectChange
from pumice.controllers.key_index import IndexedLister

BURIED = 10_000  #: uids of objects that are gone, remembered because of late answers


class ObjectCache(IndexedLister):
    """A Lister of the objects of a live cluster. `wake` is called at the first change after each `take`."""

    def __init__(self) -> None:
        super().__init__()
        self.wake: Callable[[], object] = lambda: None
        self._followers: dict[str, Callable[[Object], bool]] = {}
        self._objects: dict[str, dict[str, dict[str, Object]]] = {}  #: by kind, namespace, name
        self._changes: list[ObjectChange] = []
        self._buried: OrderedDict[str, None] = OrderedDict()

    # What controllers look up

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._objects.get(kind, {}).get(namespace, {}).get(name)

    def all(self, kind: str, namespace: str | None = None) -> Iterator[Object]:
        namespaces = self._objects.get(kind, {})
        for each in sorted(namespaces) if namespace is None else (namespace,):
            found = namespaces.get(each, {})
            yield from [found[name] for name in sorted(found)]

    def kinds(self) -> Iterator[str]:
        return iter(sorted(self._objects))

    def count(self, kind: str) -> int:
        return sum(map(len, self._objects.get(kind, {}).values()))

    # What fills the cache

    def take(self) -> list[ObjectChange]:
        """The changes since the last call, in order."""
        taken, self._changes = self._changes, []
        return taken

    def delivery(self, kind: str, resource: Kind) -> Callable[[Change[Object]], None]:
        """The function to which the reflector of a kind delivers."""

        def deliver(change: Change[Object]) -> None:
            if isinstance(change, Deleted):
                self.removed(kind, Key(change.namespace, change.name), change.uid)
            else:
                self.put(kind, whole(change.object, resource))

        return deliver

    def follow(self, kind: str, note_answer: Callable[[Object], bool]) -> None:
        """Call `note_answer` for each answer with this kind: the reflector must report the end even of an object that no watch showed."""
        self._followers[kind] = note_answer

    def answered(self, kind: str, subject: Object) -> None:
        """Store an object as the answer to a call has it, unless its reflector knows that it is gone."""
        if kind not in self._followers or self._followers[kind](subject):
            self.put(kind, subject)

    def put(self, kind: str, subject: Object) -> None:
        """Store an object as the server has it, unless a newer version is known or it is gone."""
        key = key_of(subject)
        old = self.get(kind, *key)
        if uid_of(subject) in self._buried or (old is not None and uid_of(old) == uid_of(subject) and _version(old) >= _version(subject)):
            return
        if old is not None and uid_of(old) != uid_of(subject):
            self.removed(kind, key, uid_of(old))
            old = None
        self._objects.setdefault(kind, {}).setdefault(key.namespace, {})[key.name] = subject
        self._on_change(kind, key, old, subject)

    def assume(self, kind: str, subject: Object) -> None:
        """Store what a known object will be, until the server sends a newer version."""
        key = key_of(subject)
        old = self.get(kind, *key)
        self._objects[kind][key.namespace][key.name] = subject
        self._on_change(kind, key, old, subject)

    def removed(self, kind: str, key: Key, uid: str) -> None:
        """Remove an object that is gone. Another object of its name stays."""
        self._buried[uid] = None
        if len(self._buried) > BURIED:
            self._buried.popitem(last=False)
        old = self.get(kind, *key)
        if old is not None and uid_of(old) in ("", uid):
            there = self._objects[kind][key.namespace]
            del there[key.name]
            if not there:
                del self._objects[kind][key.namespace]  # namespaces come and go
            self._on_change(kind, key, old, None)

    def _on_change(self, kind: str, key: Key, old: Object | None, new: Object | None) -> None:
        self._index.changed(kind, key, old, new)
        self._changes.append(ObjectChange(old, new))
        if len(self._changes) == 1:
            self.wake()


def whole(item: Object, resource: Kind) -> Object:
    """An item of a list or an answer, with its apiVersion and kind in it, and without the fields that no code here reads. Raises
    ValidationError if it is no object of an API."""
    if not isinstance(item.get("metadata"), dict):
        raise ValidationError(f"a {resource.kind} without metadata")
    item["apiVersion"], item["kind"] = resource.api_version, resource.kind
    item["metadata"].pop("managedFields", None)
    if resource.kind == "Node":
        (item.get("status") or {}).pop("images", None)
    return item


def _version(subject: Object) -> int:
    return int(subject["metadata"].get("resourceVersion") or 0)
