"""Who owns which field: `metadata.managedFields`, read, kept up to date and written.

Ownership is kept from an object's first server-side apply on. Until then nobody asks for it and no write pays for it; at the first
apply all fields there are belong to one manager of the name `before-first-apply`, as the API has it for objects older than the feature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pumice.api.times import rfc3339
from pumice.apiserver.kinds import Kind
from pumice.apiserver.leaves import Path, from_fields, leaves, to_fields
from pumice.apiserver.shapes import Object

UNMANAGED = "before-first-apply"
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
        self._times: dict[Manager, str] = {}
        self._versions: dict[Manager, str] = {}
        for entry in entries:
            if not isinstance(entry, dict) or not entry.get("operation"):
                continue
            manager = Manager(str(entry.get("manager", "")), str(entry["operation"]), str(entry.get("subresource", "")))
            self.paths[manager] = from_fields(entry.get("fieldsV1"))
            self._times[manager] = entry.get("time", "")
            self._versions[manager] = entry.get("apiVersion", "")

    def version(self, manager: Manager) -> str:
        return self._versions.get(manager, "")

    def give(self, manager: Manager, paths: set[Path], api_version: str, now: float) -> None:
        """The manager owns exactly these paths."""
        if self.paths.get(manager) == paths:
            return
        self.paths[manager] = paths
        self._times[manager] = rfc3339(now)
        self._versions[manager] = api_version

    def take(self, paths: set[Path], keep: Manager) -> None:
        """From everybody but one."""
        for manager in [manager for manager in self.paths if manager != keep]:
            self.paths[manager] -= paths

    def owned_by_others(self, manager: Manager) -> set[Path]:
        return {path for other, paths in self.paths.items() if other != manager for path in paths}

    def entries(self) -> list[Object]:
        return [self._entry(manager, paths) for manager, paths in self.paths.items() if paths]

    def _entry(self, manager: Manager, paths: set[Path]) -> Object:
        entry = {
            "manager": manager.name,
            "operation": manager.operation,
            "apiVersion": self._versions[manager],
            "time": self._times[manager],
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields(paths),
        }
        return entry | ({"subresource": manager.subresource} if manager.subresource else {})


def note_update(kind: Kind, obj: Object, old: Object, manager_name: str, now: float, subresource: str = "") -> None:
    """A write that is no apply: what it changed belongs to its manager, what it removed to nobody. Changes `obj`."""
    metadata: dict[str, Any] = obj["metadata"]
    entries = metadata.pop("managedFields", None)
    before = old["metadata"].get("managedFields")
    if not before or entries == [] or entries == [{}]:
        return
    ownership = Ownership(entries or before)
    was, now_is = leaves(kind.shape, old), leaves(kind.shape, obj)
    changed = {path for path, value in now_is.items() if path not in was or was[path] != value}
    manager = Manager(manager_name or "unknown", "Update", subresource)
    ownership.take(changed | (was.keys() - now_is.keys()), manager)
    if changed:
        kept = {path for path in ownership.paths.get(manager, set()) if path in now_is}
        ownership.give(manager, kept | changed, kind.api_version, now)
    metadata["managedFields"] = ownership.entries()
