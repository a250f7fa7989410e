"""The templates that a StatefulSet or DaemonSet has had: `kubectl rollout history` shows them, `kubectl rollout undo` brings one back.

The one in use has the highest number: a template that comes back gets a new number. `data` is a strategic merge patch of the owner.
"""

from __future__ import annotations

from collections.abc import Collection

from pumice.api.annotations import CONTROLLER_REVISION_HASH
from pumice.api.json_objects import copied
from pumice.controllers import kinds
from pumice.controllers.kubernetes.adoption import claim
from pumice.controllers.objects import Object, controlled_by, name_of, namespace_of, spec_of
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Write, delete, patch

HISTORY_LIMIT = 10


def keep_revision(owner: Object, name: str, label: str, in_use: Collection[str], world: World) -> list[Write]:
    """See to it that the owner's template is kept as the revision `name`, and no more old ones than wanted. Revisions whose labels are
    `in_use` stay. Those that an earlier owner of the same pods has left behind are taken over."""
    found, claims = claim(owner, kinds.CONTROLLER_REVISION, world)
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


def _made(owner: Object, name: str, label: str, number: int) -> Object:
    template = {**copied(spec_of(owner).get("template") or {}), "$patch": "replace"}
    made = kinds.new(kinds.CONTROLLER_REVISION, namespace_of(owner), name, data={"spec": {"template": template}}, revision=number)
    made["metadata"]["ownerReferences"] = [controlled_by(owner)]
    made["metadata"]["labels"] = {**((template.get("metadata") or {}).get("labels") or {}), CONTROLLER_REVISION_HASH: label}
    return made
