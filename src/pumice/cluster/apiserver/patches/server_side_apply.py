"""Server-side apply: a manager states the fields that it wants to own; the server merges them, and records which manager owns which field.

A conflict is a field that another manager owns and this apply would change. A field that the manager applied before and leaves out now is
removed, unless another manager owns it too.
"""

import json
from collections import deque
from collections.abc import Iterator, Set
from typing import Any

from pumice.api import Object
from pumice.api.annotations import LAST_APPLIED
from pumice.api.plural import counted
from pumice.cluster.apiserver.decoding import untyped
from pumice.cluster.apiserver.patches.field_paths import Leaves, Path, has_fields, has_items, item_step, leaves, shown
from pumice.cluster.apiserver.patches.managed_fields import CLIENT_SIDE, UNMANAGED, Manager, Ownership
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.scheme.schema import Shape
from pumice.cluster.apiserver.status import StatusError

Tree = dict[str, "Tree | None"]  #: paths by their steps; None where a path ends

_LAST_APPLIED_PATH = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


def apply(
    kind: ServedKind, live: Object | None, applied: Object, manager_name: str, force: bool, now: float, subresource: str = ""
) -> Object:
    """The merged object with its new managedFields. Raises StatusError 409 on conflicts."""
    manager = Manager(manager_name, "Apply", subresource)
    stated = _stated(kind, applied, subresource)
    doubled: list[Path] = []
    wanted = leaves(kind.shape, stated, doubled)
    if doubled:
        raise untyped(kind, applied, [f"{shown(doubled[0][:-1])}: duplicate entries for key {shown(doubled[0][-1:])}"])
    if live is None:
        ownership = Ownership([])
        merged = stated
    else:
        ownership = _ownership(kind, live, now)
        changed: set[Path] = set()
        merged = _merge(kind.shape, live, stated, (), changed)
        _refuse_conflicts(kind, live, changed & wanted.keys(), ownership, manager, force)
        merged = _without(kind.shape, merged, _tree(_given_up(kind.shape, wanted.keys(), ownership, manager)))
        if manager_name == "kubectl":
            merged = _with_last_applied(merged, applied)
    ownership.give(manager, set(wanted), kind.api_version, now)
    return merged | {"metadata": merged["metadata"] | {"managedFields": ownership.entries()}}


def _with_last_applied(obj: Object, applied: Object) -> Object:
    """The object whose note of what was applied last, if it has one, says what is applied now: a client-side apply may follow."""
    notes = obj["metadata"].get("annotations") or {}
    if LAST_APPLIED not in notes:
        return obj
    metadata = applied["metadata"]
    others = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED}
    text = json.dumps(applied | {"metadata": metadata | {"annotations": others}}, sort_keys=True, separators=(",", ":")) + "\n"
    return obj | {"metadata": obj["metadata"] | {"annotations": notes | {LAST_APPLIED: text}}}


def _stated(kind: ServedKind, applied: Object, subresource: str) -> Object:
    """The part of an applied object that counts: no status on the main resource, only the status on its subresource."""
    if subresource == "status":
        return {key: value for key, value in applied.items() if key in ("apiVersion", "kind", "metadata", "status")}
    return {key: value for key, value in applied.items() if not (kind.has_status and key == "status")}


def _ownership(kind: ServedKind, live: Object, now: float) -> Ownership:
    ownership = Ownership(live["metadata"].get("managedFields") or [])
    if not ownership.paths:
        present = leaves(kind.shape, live).keys()
        by_client = _applied_by_client(kind, live).keys() & present
        by_client |= {_LAST_APPLIED_PATH} if by_client else set()
        ownership.give(Manager(UNMANAGED, "Update"), present - by_client, kind.api_version, now)
        ownership.give(Manager(CLIENT_SIDE, "Update"), by_client, kind.api_version, now)
    return ownership


def _given_up(shape: Shape, wanted: Set[Path], ownership: Ownership, manager: Manager) -> Set[Path]:
    """The paths that the manager applied before and leaves out now, and the fields of structs that these are in, with all that they hold;
    except those that another manager owns, or that have a path below them which is still owned or applied."""
    gone = ownership.paths.get(manager, set()) - wanted
    if not gone:
        return gone
    gone = gone | {parent for path in gone for parent in _parents(shape, path)}
    lengths = {len(path) for path in gone}
    kept = wanted | ownership.owned_by_others(manager)
    return gone - {path[:length] for path in kept for length in lengths}


def _parents(shape: Shape | None, path: Path) -> Iterator[Path]:
    """The paths above a path that are fields of structs: the keys of maps and the items of lists are owned by themselves."""
    for length, step in enumerate(path[:-1], 1):
        if shape is None:
            return
        if step[:2] != "f:":
            shape = shape.element
            continue
        if step[2:] in shape.fields and path[:length] != ("f:metadata",):  # which has the name, at least
            yield path[:length]
        shape = shape.child(step[2:])


def _refuse_conflicts(kind: ServedKind, live: Object, changed: set[Path], ownership: Ownership, manager: Manager, force: bool) -> None:
    contested = changed
    if manager.name == "kubectl" and manager not in ownership.paths:
        contested = changed - _applied_by_client(kind, live).keys()
    conflicts = [(other, path) for other, paths in ownership.paths.items() if other != manager for path in sorted(paths & contested)]
    if conflicts and not force:
        raise _conflict_error(ownership, conflicts)
    ownership.take(changed, manager)


def _applied_by_client(kind: ServedKind, live: Object) -> Leaves:
    """The leaves that kubectl's client-side apply set: kubectl takes them over when it changes to server-side apply."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        applied = json.loads(text) if text else None
    except ValueError:
        applied = None
    return leaves(kind.shape, applied) if isinstance(applied, dict) else {}


def _conflict_error(ownership: Ownership, conflicts: list[tuple[Manager, Path]]) -> StatusError:
    texts = [(f'conflict with "{other.name}" using {ownership.version(other)}', shown(path)) for other, path in conflicts]
    count = counted(len(texts), "conflict")
    message = f"Apply failed with {count}: " + ", ".join(f"{text}: {field}" for text, field in texts)
    causes = [{"reason": "FieldManagerConflict", "message": text, "field": field} for text, field in texts]
    return StatusError(409, "Conflict", message, {"causes": causes})


def merged(shape: Shape, live: Object, applied: Object) -> Object:
    """The object with the fields that are applied to it, whoever owns them."""
    found: Object = _merge(shape, live, applied, (), set())
    return found


def _merge(shape: Shape | None, live: Any, applied: Any, path: Path, changed: set[Path]) -> Any:
    """The merged value. The paths of leaves that get another value are added to `changed`."""
    if live == applied:
        return applied
    if has_items(shape, live) and has_items(shape, applied) and shape is not None:
        return _merge_items(shape, live, applied, path, changed)
    if has_fields(shape, live) and has_fields(shape, applied):
        merged = dict(live)
        for key, value in applied.items():
            child = shape.child(key) if shape is not None else None
            merged[key] = _merge(child, live[key], value, (*path, f"f:{key}"), changed) if key in live else value
        return merged
    if applied == {} and has_fields(shape, live):
        return live
    changed.add(path)
    return applied


def _merge_items(shape: Shape, live: list[Any], applied: list[Any], path: Path, changed: set[Path]) -> list[Any]:
    """The merged list. Items that are applied have the order in which they are; each of the others comes after the items before it in
    `live`, as far as this is possible."""
    before, stated = ([(item_step(shape, item), item) for item in items] for items in (live, applied))
    known, wanted = dict(reversed(before)), {step for step, _ in stated}
    shared = deque(step for step, _ in stated if step in known)
    result: list[Any] = []
    merged: set[str] = set()
    at = 0
    for step, item in stated:
        while at < len(before) and before[at][0] != step and (before[at][0] not in wanted or (shared and before[at][0] != shared[0])):
            if before[at][0] not in wanted:
                result.append(before[at][1])
            at += 1
        result.append(_merge(shape.element, known[step], item, (*path, step), changed) if step in known else item)
        merged.add(step)
        if shared and shared[0] == step:
            shared.popleft()
        if at < len(before) and before[at][0] in merged:
            at += 1
    return result + [item for step, item in before[at:] if step not in wanted]


def _tree(paths: Set[Path]) -> Tree:
    """The paths by their steps. A path below another of the paths is left out."""
    tree: Tree = {}
    for path in sorted(paths):
        place: Tree | None = tree
        for step in path[:-1]:
            place = place.setdefault(step, {}) if place is not None else None
        if place is not None:
            place[path[-1]] = None
    return tree


def _without(shape: Shape | None, value: Any, gone: Tree) -> Any:
    """The value without the fields and items at the paths in `gone`."""
    if not gone:
        return value
    if isinstance(value, dict):
        return {
            key: _without(shape.child(key) if shape else None, inner, gone.get(f"f:{key}") or {})
            for key, inner in value.items()
            if gone.get(f"f:{key}", gone) is not None
        }
    if isinstance(value, list) and shape is not None:
        steps = ((item_step(shape, item), item) for item in value)
        return [_without(shape.element, item, gone.get(step) or {}) for step, item in steps if gone.get(step, gone) is not None]
    return value
