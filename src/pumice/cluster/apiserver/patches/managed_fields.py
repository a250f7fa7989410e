"""Who owns which field: `metadata.managedFields`, read, kept up to date and written.

An object that a client creates over HTTP has field owners from the start. Components in this process create many objects that are never
applied: such an object gets its owners at its first server-side apply. Its fields then belong to the manager `before-first-apply`, as for
objects that are older than the feature, except those that kubectl's client-side apply has set.
"""

from collections.abc import Set
from typing import Any, NamedTuple

from pumice.api import Object, rfc3339
from pumice.cluster.apiserver.patches.field_paths import (
    Path,
    difference,
    from_fields,
    has_fields,
    has_items,
    item_step,
    owned_part,
    to_fields,
)
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.status import LARGEST_OBJECT, too_large

UNMANAGED = "before-first-apply"
OLDEST = "ancient-changes"  #: the manager that the fields of the oldest of many managers are given to
MOST_UPDATERS = 10
MOST_SHARED = 200  #: paths: a set of at most so many is shared, since many objects are likely to have the same
CLIENT_SIDE = "kubectl-client-side-apply"


class Manager(NamedTuple):
    """The manager of one entry: its name, its operation (Apply or Update), and the subresource that it wrote through."""

    name: str
    operation: str
    subresource: str = ""


class Ownership:
    def __init__(self, entries: list[Object]) -> None:
        self.paths: dict[Manager, Set[Path]] = {}
        self._written: dict[Manager, Object] = {}  #: `fieldsV1` as it was read, of managers whose paths have not changed since
        self._times: dict[Manager, str] = {}
        self._versions: dict[Manager, str] = {}
        for entry in entries:
            if not _is_right(entry):
                continue
            manager = Manager(str(entry.get("manager", "")), str(entry["operation"]), str(entry.get("subresource", "")))
            self.paths[manager] = _SHARED.read(entry["fieldsV1"])
            self._written[manager] = entry["fieldsV1"]
            self._times[manager] = entry.get("time", "")
            self._versions[manager] = entry.get("apiVersion", "")

    def version(self, manager: Manager) -> str:
        return self._versions.get(manager, "")

    def give(self, manager: Manager, paths: Set[Path], api_version: str, now: float) -> None:
        """Let the manager own exactly these paths."""
        if self.paths.get(manager) == paths:
            return
        self.paths[manager] = paths
        self._written.pop(manager, None)
        self._times[manager] = rfc3339(now)
        self._versions[manager] = api_version

    def take(self, paths: set[Path], keep: Manager) -> None:
        """Take the paths away from all managers except one."""
        for manager, own in self.paths.items():
            if manager != keep and not own.isdisjoint(paths):
                self.paths[manager] = own - paths
                self._written.pop(manager, None)

    def owned_by_others(self, manager: Manager) -> set[Path]:
        return {path for other, paths in self.paths.items() if other != manager for path in paths}

    def merge_oldest(self, api_version: str) -> None:
        """Merge the oldest of the managers that do not apply into one, so that at most MOST_UPDATERS of them are left."""
        updaters = [manager for manager in self.paths if manager.operation == "Update" and not manager.subresource and self.paths[manager]]
        if len(updaters) <= MOST_UPDATERS:
            return
        updaters.sort(key=lambda manager: (manager.name != OLDEST, self._times[manager]))
        merged = updaters[: len(updaters) - MOST_UPDATERS + 1]
        time = max(self._times[manager] for manager in merged)
        paths = {path for manager in merged for path in self.paths.pop(manager)}
        oldest = Manager(OLDEST, "Update")
        self.paths[oldest], self._times[oldest], self._versions[oldest] = paths, time, api_version
        self._written.pop(oldest, None)

    def entries(self) -> list[Object]:
        """The entries in the order that they always have: those of applies first, then by time."""
        managers = sorted(filter(self.paths.get, self.paths), key=lambda manager: (manager.operation, self._times[manager]))
        return [
            _entry(each, self._versions[each], self._times[each], self._written.get(each) or _fields(self.paths[each])) for each in managers
        ]


def _is_right(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("operation") in ("Apply", "Update") and isinstance(entry.get("fieldsV1"), dict)


def _entry(manager: Manager, api_version: str, time: str, fields: Object) -> Object:
    entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def _fields(paths: Set[Path]) -> Object:
    least = sum(len(path[-1]) for path in paths)
    if least > LARGEST_OBJECT:
        raise too_large(least, LARGEST_OBJECT)
    return _SHARED.write(frozenset(paths)) if len(paths) <= MOST_SHARED else to_fields(paths)


class SharedFields:
    """A cache of `fieldsV1`: objects with the same fields share one, and share its parts. Each is written and read only once, since stored
    objects are never changed. `room` is about how many names and paths are kept."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._forget()

    def _forget(self) -> None:
        self._kept = 0
        self._parts: dict[tuple[Any, ...], Object] = {}  #: by the names and ids of the parts below, which the part itself keeps alive
        self._written: dict[frozenset[Path], Object] = {}
        self._read: dict[int, tuple[Object, frozenset[Path]]] = {}  #: by the id of the `fieldsV1`

    def of(self, shape: Shape | None, obj: Object, known: Object | None = None) -> Object:
        """The `fieldsV1` of an object: the same as `write` returns for the paths of its leaves. Those of some of its fields are known."""
        known, owned = known or {}, owned_part(obj)
        fields = self._part("f", self._below(shape, {key: item for key, item in owned.items() if key not in known}) | known)
        return fields if id(fields) in self._read else self._keep(fields, frozenset(from_fields(fields)))

    def write(self, paths: frozenset[Path]) -> Object:
        known = self._written.get(paths)
        return self._keep(to_fields(paths), paths) if known is None else known

    def read(self, fields: Any) -> Set[Path]:
        known = self._read.get(id(fields))
        return from_fields(fields) if known is None else known[1]

    def _keep(self, fields: Object, paths: frozenset[Path]) -> Object:
        self._make_room(len(paths))
        self._written[paths] = fields
        self._read[id(fields)] = fields, paths
        return fields

    def _make_room(self, more: int) -> None:
        if self._kept > self._room:
            self._forget()
        self._kept += more

    def _of_value(self, shape: Shape | None, value: Any) -> Object | None:
        if has_fields(shape, value):
            below = self._below(shape, value)
            return self._part("f", below) if below else None
        if shape is not None and has_items(shape, value):
            items: Object = {}
            for item in value:
                step, fields = item_step(shape, item), self._of_item(shape, item)
                items[step] = _merged(items[step], fields) if step in items else fields
            return self._part("k", items) if items else None
        return _LEAF

    def _of_item(self, shape: Shape, item: Any) -> Object:
        return _LEAF if shape.is_set or not has_fields(shape.element, item) else self._part(".", self._below(shape.element, item))

    def _below(self, shape: Shape | None, value: Object) -> Object:
        below: Object = {}
        for key, item in value.items():
            nested = item.__class__ is dict or item.__class__ is list
            fields = self._of_value(shape.child(key) if shape is not None else None, item) if nested else _LEAF
            if fields is not None:
                below[key] = fields
        return below

    def _part(self, mark: str, below: Object) -> Object:
        key = (mark, *below, *map(id, below.values()))
        part = self._parts.get(key)
        if part is None:
            self._make_room(len(key))
            steps = below if mark == "k" else {f"f:{name}": fields for name, fields in below.items()}
            part = self._parts[key] = ({".": _LEAF} if mark == "." else {}) | {step: steps[step] for step in sorted(steps)}
        return part


_LEAF: Object = {}


def _merged(first: Object, second: Object) -> Object:
    """The `fieldsV1` of two items that have the same key, as one."""
    return {step: _merged(first.get(step, _LEAF), second.get(step, _LEAF)) for step in sorted(first.keys() | second.keys())}


_SHARED = SharedFields(200_000)


def note_create(kind: ServedKind, obj: Object, manager_name: str, now: float, known: Object) -> Object:
    """Make the manager that creates an object the owner of all its fields, except its status. Changes `obj`. Returns their `fieldsV1`, of
    which parts are known."""
    stated = {key: value for key, value in obj.items() if key != "status" or not kind.has_status}
    fields = _SHARED.of(kind.shape, stated, known)
    if fields:
        manager = Manager(manager_name or "unknown", "Update")
        obj["metadata"]["managedFields"] = [_entry(manager, kind.api_version, rfc3339(now), fields)]
    return fields


def note_update(kind: ServedKind, obj: Object, old: Object, manager_name: str, now: float, subresource: str = "") -> None:
    """Record a write that is not an apply: changed fields belong to its manager, removed fields to no manager. Changes `obj`."""
    metadata: dict[str, Any] = obj["metadata"]
    entries = metadata.pop("managedFields", None)
    before = old["metadata"].get("managedFields")
    if not before or entries == [] or entries == [{}]:
        return
    ownership = Ownership(entries if entries is not None and entries != before and all(map(_is_right, entries)) else before)
    changed, gone = difference(kind.shape, old, obj)
    manager = Manager(manager_name or "unknown", "Update", subresource)
    ownership.take(changed | gone, manager)
    ownership.give(manager, (ownership.paths.get(manager, set()) - gone) | changed, kind.api_version, now)
    ownership.merge_oldest(kind.api_version)
    if left := ownership.entries():
        metadata["managedFields"] = left
