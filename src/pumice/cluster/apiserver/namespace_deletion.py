"""Namespaces that are being deleted: the objects in them are deleted first, and conditions say what is still there.

The garbage collector has the turns for this (`garbage_collector.py`).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice, takewhile

from pumice.api import Object, rfc3339
from pumice.cluster.apiserver.scheme.kinds import KindTable
from pumice.cluster.apiserver.storage.in_memory import Storage
from pumice.cluster.apiserver.storage.watch import Key

Place = tuple[str, Key]  #: storage and key of an object

DELETED_AT_ONCE = 10  #: the objects of a namespace that are deleted before other work has its turn


class NamespaceDeletion:
    """Empties namespaces. `delete` deletes an object, and returns False if an admission rule refuses. `write` stores an object, or removes
    it if it is being deleted and nothing holds it any more."""

    def __init__(
        self,
        kinds: KindTable,
        storage: Storage,
        now: Callable[[], float],
        delete: Callable[[Place], bool],
        write: Callable[[Place, Object], None],
    ) -> None:
        self._kinds, self._storage, self._now = kinds, storage, now
        self._delete, self._write = delete, write

    def step(self, namespace: str) -> bool:
        """Delete some of the objects in a namespace, pods before all others. When none is left, let the namespace go. Return whether more
        can be done at once."""
        place = ("namespaces", ("", namespace))
        found = self._storage.get(*place)
        if found is None:
            return False
        pods = list(self._of_kind("pods", namespace))
        staying = (each for each in pods or self._inside(namespace) if not self._metadata(each).get("deletionTimestamp"))
        some = list(islice(staying, DELETED_AT_ONCE))
        gone = sum(self._delete(each) for each in some)
        if gone and (pods or len(some) == DELETED_AT_ONCE):
            return True
        if next(self._inside(namespace), None) is None:
            spec = (found.get("spec") or {}) | {"finalizers": []}
            self._write(place, found | {"metadata": dict(found["metadata"]), "spec": spec})
        else:
            self._tell_what_remains(place, found)
        return False

    def _tell_what_remains(self, place: Place, namespace: Object) -> None:
        """Say in the namespace's conditions why it is still there. Many objects that go one by one are not counted anew each time."""
        inside = list(self._inside(namespace["metadata"]["name"]))
        remaining = Counter(storage for storage, _ in inside)
        finalizers = Counter(finalizer for each in inside for finalizer in self._metadata(each).get("finalizers") or ())
        old = (namespace.get("status") or {}).get("conditions") or []
        new = deletion_conditions(remaining, finalizers, old, rfc3339(self._now()))
        before, after = ([(each["type"], each["status"]) for each in conditions] for conditions in (old, new))
        if new != old and (before != after or remaining.total() <= DELETED_AT_ONCE):
            status = (namespace.get("status") or {}) | {"conditions": new}
            self._write(place, namespace | {"metadata": dict(namespace["metadata"]), "status": status})

    def _metadata(self, place: Place) -> Object:
        metadata: Object = self._storage.kind_storage(place[0]).objects[place[1]]["metadata"]
        return metadata

    def _inside(self, namespace: str) -> Iterator[Place]:
        """The objects in a namespace, without those of kinds that are served no more, as their feature gate is off now."""
        for storage in self._storage.kind_storages:
            if self._kinds.known(storage):
                yield from self._of_kind(storage, namespace)

    def _of_kind(self, storage: str, namespace: str) -> Iterator[Place]:
        keys = self._storage.kind_storage(storage).keys
        inside = takewhile(lambda key: key[0] == namespace, islice(keys, bisect_left(keys, (namespace, "")), None))
        return ((storage, key) for key in inside)


def deletion_conditions(remaining: Counter[str], finalizers: Counter[str], before: list[Object], now: str) -> list[Object]:
    """The conditions of a namespace that is being deleted, in the words of Kubernetes: how many objects of each kind are still in it, and
    how many of them each finalizer holds."""
    pods = remaining["pods"]
    held = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(finalizers.items()))
    left = ", ".join(f"{kind} has {count} resource instances" for kind, count in sorted(remaining.items()))
    failed = f"Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: {pods} pods" if pods else ""
    conditions = [
        ("NamespaceDeletionDiscoveryFailure", False, "ResourcesDiscovered", "All resources successfully discovered"),
        ("NamespaceDeletionGroupVersionParsingFailure", False, "ParsedGroupVersions", "All legacy kube types successfully parsed"),
        ("NamespaceDeletionContentFailure", True, "ContentDeletionFailed", failed)
        if failed
        else (
            "NamespaceDeletionContentFailure",
            False,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", True, "SomeResourcesRemain", f"Some resources are remaining: {left}"),
        ("NamespaceFinalizersRemaining", True, "SomeFinalizersRemain", f"Some content in the namespace has finalizers remaining: {held}")
        if held
        else ("NamespaceFinalizersRemaining", False, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
    ]
    since = {(each["type"], each["status"]): each["lastTransitionTime"] for each in before if "lastTransitionTime" in each}
    others = [each for each in before if each.get("type") not in {type_ for type_, *_ in conditions}]
    return others + [
        {
            "type": type_,
            "status": str(holds),
            "lastTransitionTime": since.get((type_, str(holds)), now),
            "reason": reason,
            "message": message,
        }
        for type_, holds, reason, message in conditions
    ]
