"""The templates that a StatefulSet or DaemonSet has had: `kubectl rollout history` shows them, `kubectl rollout undo` brings one back.

The template in use has the highest number: a template that comes back gets a new number. `data` is a strategic merge patch of the owner.
"""

from collections.abc import Collection
from typing import Any

from pumice.api import Object, kinds, name_of, namespace_of, spec_of
from pumice.api.annotations import CONTROLLER_REVISION_HASH
from pumice.api.json_objects import annotations_of, controlled_by
from pumice.controllers.controller import Lister
from pumice.controllers.kubernetes.owned_pods import claim
from pumice.controllers.writes import Create, Write, delete, patch

HISTORY_LIMIT = 10


def keep_revision(owner: Object, name: str, label: str, in_use: Collection[str], lister: Lister) -> list[Write]:
    """The writes that keep the owner's template as the revision `name`, and delete old revisions beyond the limit. Revisions whose labels
    are `in_use` stay. Revisions that an earlier owner of the same pods has left behind are adopted."""
    found, claims = claim(owner, kinds.CONTROLLER_REVISION, lister)
    known = sorted(found, key=number_of)
    latest = number_of(known[-1]) if known else 0
    mine = next((each for each in known if name_of(each) == name), None)
    others = [each for each in known if each is not mine]
    writes = claims
    if mine is None:
        writes.append(Create(_made(owner, name, label, latest + 1)))
    elif number_of(mine) < latest:
        writes.append(patch(mine, {"revision": latest + 1}))
    idle = [each for each in others if each["metadata"].get("labels", {}).get(CONTROLLER_REVISION_HASH) not in in_use]
    surplus = len(idle) - int(spec_of(owner).get("revisionHistoryLimit", HISTORY_LIMIT))
    return [*writes, *map(delete, idle[: max(0, surplus)])]


def number_of(revision: Object) -> int:
    return int(revision.get("revision") or 0)


def _in_order(value: Any) -> Any:
    """A copy with the keys of all objects in alphabetical order: clients compare the bytes of a revision."""
    if isinstance(value, dict):
        return {key: _in_order(value[key]) for key in sorted(value)}
    return [_in_order(each) for each in value] if isinstance(value, list) else value


def _made(owner: Object, name: str, label: str, number: int) -> Object:
    template = _in_order({**(spec_of(owner).get("template") or {}), "$patch": "replace"})
    made = kinds.new(kinds.CONTROLLER_REVISION, namespace_of(owner), name, data={"spec": {"template": template}}, revision=number)
    made["metadata"]["ownerReferences"] = [controlled_by(owner)]
    made["metadata"]["labels"] = {**((template.get("metadata") or {}).get("labels") or {}), CONTROLLER_REVISION_HASH: label}
    if annotations_of(owner):
        made["metadata"]["annotations"] = dict(annotations_of(owner))  # with the cause of the change, which the history shows
    return made
