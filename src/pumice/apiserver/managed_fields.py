"""Who owns which field: `metadata.managedFields`, read, kept up to date and written.

What clients create over HTTP has owners from its start. What components in this process make, which are many objects that nobody
applies, has them from its first server-side apply on: then all fields there are belong to one manager of the name `before-first-apply`,
as the API has it for objects older than the feature.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from pumice.api.times import rfc3339
from pumice.apiserver.kinds import Kind
from pumice.apiserver.leaves import Path, difference, from_fields, leaves, to_fields
from pumice.apiserver.shapes import Object
from pumice.apiserver.status import LARGEST_OBJECT, too_large

UNMANAGED = "before-first-apply"
OLDEST = "ancient-changes"  #: the manager of what many others have changed long ago
MOST_UPDATERS = 10
MOST_SHARED = 200  #: paths of objects that there are likely many of
CLIENT_SIDE = "kubectl-client-side-apply"


class Manager(NamedTuple):
    """One entry: a name, what it did (Apply or Update), and through which subresource."""

    name: str
    operation: str
    subresource: str = ""


class Ownership:
    """The sets of paths of all managers of one object."""

    def __init__(self, entries: list[Object]) -> None:
        self.paths: dict[Manager, set[Path]] = {}
        self._written: dict[Manager, Object] = {}  #: the paths of those that nothing has changed since, as they were written
        self._times: dict[Manager, str] = {}
        self._versions: dict[Manager, str] = {}
        for entry in entries:
            if not isinstance(entry, dict) or not entry.get("operation"):
                continue
            manager = Manager(str(entry.get("manager", "")), str(entry["operation"]), str(entry.get("subresource", "")))
            self.paths[manager] = from_fields(entry.get("fieldsV1"))
            self._written[manager] = entry["fieldsV1"]
            self._times[manager] = entry.get("time", "")
            self._versions[manager] = entry.get("apiVersion", "")

    def version(self, manager: Manager) -> str:
        return self._versions.get(manager, "")

    def give(self, manager: Manager, paths: set[Path], api_version: str, now: float) -> None:
        """The manager owns exactly these paths."""
        if self.paths.get(manager) == paths:
            return
        self.paths[manager] = paths
        self._written.pop(manager, None)
        self._times[manager] = rfc3339(now)
        self._versions[manager] = api_version

    def take(self, paths: set[Path], keep: Manager) -> None:
        """From everybody but one."""
        for manager, own in self.paths.items():
            if manager != keep and not own.isdisjoint(paths):
                own -= paths
                self._written.pop(manager, None)

    def owned_by_others(self, manager: Manager) -> set[Path]:
        return {path for other, paths in self.paths.items() if other != manager for path in paths}

    def merge_oldest(self, api_version: str) -> None:
        """Of managers that do not apply only the last few are told apart."""
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
        return [self._entry(manager, paths) for manager, paths in self.paths.items() if paths]

    def _entry(self, manager: Manager, paths: set[Path]) -> Object:
        entry = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": self._versions[manager],
            "time": self._times[manager],
            "fieldsType": "FieldsV1",
            "fieldsV1": self._written.get(manager) or _fields(paths),
        }
        return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def _fields(paths: set[Path]) -> Object:
    least = sum(len(path[-1]) for path in paths)
    if least > LARGEST_OBJECT:
        raise too_large(least, LARGEST_OBJECT)
    return _shared_fields(frozenset(paths)) if len(paths) <= MOST_SHARED else to_fields(paths)


#: objects of one form share it: what is stored is never changed
_shared_fields = lru_cache(maxsize=1024)(to_fields)


def note_create(kind: Kind, obj: Object, manager_name: str, now: float) -> None:
    """All that a new object says, but for its status, belongs to its maker. Changes `obj`."""
    said = {key: value for key, value in obj.items() if key != "status" or not kind.has_status}
    ownership = Ownership([])
    ownership.give(Manager(manager_name or "unknown", "Update"), set(leaves(kind.shape, said)), kind.api_version, now)
    obj["metadata"]["managedFields"] = ownership.entries()


def note_update(kind: Kind, obj: Object, old: Object, manager_name: str, now: float, subresource: str = "") -> None:
    """A write that is no apply: what it changed belongs to its manager, what it removed to nobody. Changes `obj`."""
    metadata: dict[str, Any] = obj["metadata"]
    entries = metadata.pop("managedFields", None)
    before = old["metadata"].get("managedFields")
    if not before or entries == [] or entries == [{}]:
        return
    ownership = Ownership(entries or before)
    changed, gone = difference(kind.shape, old, obj)
    manager = Manager(manager_name or "unknown", "Update", subresource)
    ownership.take(changed | gone, manager)
    if changed:
        ownership.give(manager, (ownership.paths.get(manager, set()) - gone) | changed, kind.api_version, now)
    ownership.merge_oldest(kind.api_version)
    metadata["managedFields"] = ownership.entries()
