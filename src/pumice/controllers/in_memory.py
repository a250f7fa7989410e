"""A cluster in dictionaries that applies writes: for tests, examples and what-if questions.

It keeps the rules that controllers rely on: uids and resource versions count up, the generation follows the spec, a deletion waits for
finalizers and, if a pod has a node, for a call of `finish`, and a write for another uid does nothing. It validates nothing.
"""

from collections.abc import Iterable, Iterator

from pumice.api import Key, Object, key_of, kinds, rfc3339, uid_of
from pumice.api.json_objects import copied, merged, terminating
from pumice.api.kinds import kind_of
from pumice.controllers.controller import ObjectChange
from pumice.controllers.key_index import IndexedLister
from pumice.controllers.writes import Create, Delete, Emit, Patch, Write

FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}  #: by propagation policy


class Memory(IndexedLister):
    """A cluster: objects by kind and key. `emitted` lists the Events in the order in which they were written."""

    def __init__(self, objects: Iterable[Object] = (), now: float = 0.0) -> None:
        super().__init__()
        self.now = now
        self.emitted: list[Emit] = []
        self._objects: dict[str, dict[Key, Object]] = {}
        self._version = 0
        for subject in objects:
            self.apply(Create(subject))

    # The look-ups of controllers

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._objects.get(kind, {}).get(Key(namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> Iterator[Object]:
        stored = self._objects.get(kind, {})
        return (stored[key] for key in sorted(stored) if namespace is None or key.namespace == namespace)

    def kinds(self) -> Iterator[str]:
        return iter(sorted(self._objects))

    # How writes are applied

    def apply(self, write: Write) -> list[ObjectChange]:
        """Carry out one write. Return the changes that it made: none if there was nothing to do."""
        match write:
            case Create(subject):
                return self._create(subject)
            case Patch():
                return self._patch(write)
            case Delete():
                return self._delete(write)
            case Emit():
                self.emitted.append(write)
        return []

    def put(self, subject: Object) -> list[ObjectChange]:
        """Store an object as it is, new or not, as a user or a kubelet does. Return the changes."""
        if self.get(kind_of(subject), *key_of(subject)) is None:
            return self._create(subject)
        return self._store(subject)

    def finish(self, subject: Object) -> list[ObjectChange]:
        """Remove an object at once, as a kubelet does with a pod that has ended. Return the changes."""
        return self._remove(kind_of(subject), key_of(subject))

    def _create(self, subject: Object) -> list[ObjectChange]:
        if self.get(kind_of(subject), *key_of(subject)) is not None:
            return []
        fresh = copied(subject)
        meta = fresh["metadata"]
        meta.setdefault("uid", f"00000000-0000-0000-0000-{self._version + 1:012d}")
        meta.setdefault("creationTimestamp", rfc3339(self.now))
        meta.setdefault("generation", 1)
        return self._store(fresh)

    def _patch(self, write: Patch) -> list[ObjectChange]:
        before = self.get(write.kind, write.namespace, write.name)
        if before is None or (write.uid and uid_of(before) != write.uid):
            return []
        return self._store(merged(before, write.patch))

    def _store(self, subject: Object) -> list[ObjectChange]:
        kind, key = kind_of(subject), key_of(subject)
        before = self.get(kind, *key)
        after = copied(subject)
        self._version += 1
        after["metadata"]["resourceVersion"] = str(self._version)
        if before is not None and before.get("spec") != after.get("spec"):
            after["metadata"]["generation"] = before["metadata"].get("generation", 1) + 1
        self._index.changed(kind, key, before, after)
        self._objects.setdefault(kind, {})[key] = after
        was_held = bool(before and before["metadata"].get("finalizers"))
        awaits = bool(after["metadata"].get("finalizers")) or (_awaits_somebody(after) and not (was_held and _has_ended(after)))
        if terminating(after) and not awaits:
            return [ObjectChange(before, after), *self._remove(kind, key)]
        return [ObjectChange(before, after)]

    def _delete(self, write: Delete) -> list[ObjectChange]:
        before = self.get(write.kind, write.namespace, write.name)
        if before is None or (write.uid and uid_of(before) != write.uid):
            return []
        after = copied(before)
        meta = after["metadata"]
        if write.propagation in FINALIZERS and not terminating(before):
            meta["finalizers"] = [*(meta.get("finalizers") or ()), FINALIZERS[write.propagation]]
        at_once = write.grace_s == 0 or _has_ended(before) or not _awaits_somebody(before)
        if not meta.get("finalizers") and at_once:
            return self._remove(write.kind, key_of(before))
        if terminating(before):
            return []
        meta["deletionTimestamp"] = rfc3339(self.now)
        return self._store(after)

    def _remove(self, kind: str, key: Key) -> list[ObjectChange]:
        before = self._objects[kind].pop(key)
        self._index.changed(kind, key, before, None)
        return [ObjectChange(before, None)]


def _awaits_somebody(subject: Object) -> bool:
    """Whether the object is removed only after some work: a pod is ended on its node, a namespace is emptied. Others go at once."""
    if kind_of(subject) == kinds.NAMESPACE:
        return bool((subject.get("spec") or {}).get("finalizers"))
    return kind_of(subject) == kinds.POD and bool(subject.get("spec", {}).get("nodeName"))


def _has_ended(subject: Object) -> bool:
    return (subject.get("status") or {}).get("phase") in ("Succeeded", "Failed")
