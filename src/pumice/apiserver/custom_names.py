"""The names of custom kinds: within a group, each belongs to one definition, to the one that had it first.

A definition whose names are taken is stored, says so in its status, and is not served until they are free. Names that were accepted
once stay accepted, whatever an update asks for besides.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pumice.apiserver.shapes import Object

RESOURCES = {"plural": "PluralConflict", "singular": "SingularConflict", "shortNames": "ShortNamesConflict"}
KINDS = {"kind": "KindConflict", "listKind": "ListKindConflict"}


def settle_names(definition: Object, others: Iterable[Object]) -> None:
    """Say in the definition's status which of its names are accepted, and whether it is served."""
    wanted, status = definition["spec"]["names"], definition.get("status") or {}
    accepted = dict(status.get("acceptedNames") or {})
    conflict: tuple[str, str] | None = None
    taken = [one for other in others if (one := _taken_by(definition, other))]
    for fields, used in ((RESOURCES, _all(taken, RESOURCES)), (KINDS, _all(taken, KINDS))):
        for field, reason in fields.items():
            clash = next((name for name in _names(wanted, field) if name in used and name not in _names(accepted, field)), None)
            if clash is None:
                accepted[field] = wanted.get(field)
            elif conflict is None:
                conflict = reason, f'"{clash}" is already in use'
    accepted["categories"] = wanted.get("categories")
    established = conflict is None or is_established(definition)
    at = definition["metadata"].get("creationTimestamp")
    definition["status"] = {
        "acceptedNames": {field: names for field, names in accepted.items() if names},
        "storedVersions": _stored_versions(definition, status),
        "conditions": [
            _condition("NamesAccepted", conflict is None, *(conflict or ("NoConflicts", "no conflicts found")), at),
            _condition("Established", True, "InitialNamesAccepted", "the initial names have been accepted", at)
            if established
            else _condition("Established", False, "NotAccepted", "not all names are accepted", at),
            *(condition for condition in status.get("conditions") or () if condition.get("type") == "Terminating"),
        ],
    }


def is_established(definition: Object) -> bool:
    return _says(definition, "Established")


def are_accepted(definition: Object) -> bool:
    return _says(definition, "NamesAccepted")


def terminating(definition: Object, now: str) -> Object:
    """The status of a definition whose objects are being deleted."""
    status = definition.get("status") or {}
    others = [condition for condition in status.get("conditions") or () if condition.get("type") != "Terminating"]
    text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
    return status | {"conditions": [*others, _condition("Terminating", True, "InstanceDeletionPending", text, now)]}


def _says(definition: Object, type: str) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == type and condition.get("status") == "True" for condition in conditions)


def _taken_by(definition: Object, other: Object) -> Object | None:
    """The names that another definition of the same group holds."""
    if other["metadata"]["name"] == definition["metadata"].get("name") or other["spec"]["group"] != definition["spec"]["group"]:
        return None
    names: Object | None = (other.get("status") or {}).get("acceptedNames")
    return names


def _all(taken: list[Object], fields: Iterable[str]) -> set[str]:
    return {name for names in taken for field in fields for name in _names(names, field)}


def _names(names: Object, field: str) -> list[str]:
    found: Any = names.get(field) or ()
    return [found] if isinstance(found, str) else list(found)


def _stored_versions(definition: Object, status: Object) -> list[str]:
    now = [version["name"] for version in definition["spec"]["versions"] if version.get("storage")]
    return list(dict.fromkeys([*(status.get("storedVersions") or ()), *now]))


def _condition(type: str, holds: bool, reason: str, message: str, at: Any) -> Object:
    return {"type": type, "status": str(holds), "reason": reason, "message": message, "lastTransitionTime": at}
