"""Whose pods and ReplicaSets are whose: an owner adopts what fits its selector and has no controller, and lets go what fits no more.

Nobody adopts or is adopted who is to be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from pumice.api import kinds
from pumice.api.annotations import CONTROLLER_REVISION_HASH
from pumice.api.json_objects import (
    Key,
    Object,
    controlled_by,
    controller_of,
    copied,
    finalizers_of,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    owners_of,
    spec_of,
    terminating,
    uid_of,
)
from pumice.api.selectors import Selector, label_selector, matches
from pumice.controllers.controller import Create, KeysOf, ObjectChange, Patch, Write, delete, its_controller, patch
from pumice.controllers.lister import Lister

Test = Callable[[Object], bool]


class Claim(NamedTuple):
    """What is an owner's, and the writes that make it so."""

    mine: list[Object]
    writes: list[Write]


def claim(owner: Object, kind: str, lister: Lister, considered: Test = lambda subject: True, finalizer: str = "") -> Claim:
    """`considered`: what the owner looks at; the rest stays as it is, whosever it is. `finalizer`: what all of the owner's have."""
    selector = selector_of(owner)
    owned = [each for each in lister.dependents(uid_of(owner), kind) if (controller_of(each) or {}).get("uid") == uid_of(owner)]
    owned = [each for each in owned if considered(each)]
    if not selector:
        return Claim(owned, [])
    mine = [each for each in owned if matches(selector, labels_of(each))]
    if terminating(owner):
        return Claim(mine, [])
    fitting = (each for each in lister.strays(kind, namespace_of(owner)) if matches(selector, labels_of(each)))
    found = [each for each in fitting if considered(each) and not terminating(each)]
    released = (_release(each, owner, finalizer) for each in owned if not matches(selector, labels_of(each)))
    return Claim([*mine, *found], [*released, *(_adopt(each, owner, finalizer) for each in found)])


def selector_of(owner: Object) -> Selector:
    """Empty where there is none: it selects nothing."""
    stated = spec_of(owner).get("selector") or {}
    is_plain = owner["kind"] == "ReplicationController"
    return label_selector({"matchLabels": stated} if is_plain else stated) or ()


def _adopt(subject: Object, owner: Object, finalizer: str) -> Patch:
    added = {"finalizers": [*finalizers_of(subject), finalizer]} if finalizer else {}
    return patch(subject, {"metadata": {"ownerReferences": [*_without(subject, owner), controlled_by(owner)], **added}})


def _release(subject: Object, owner: Object, finalizer: str) -> Patch:
    taken = {"finalizers": [each for each in finalizers_of(subject) if each != finalizer] or None} if finalizer else {}
    return patch(subject, {"metadata": {"ownerReferences": _without(subject, owner) or None, **taken}})


def _without(subject: Object, owner: Object) -> list[Object]:
    return [each for each in owners_of(subject) if each["uid"] != uid_of(owner)]


def its_claimants(kind: str) -> KeysOf:
    """The controllers of the changed object, and those that might adopt it."""
    owners = its_controller(kind)

    def keys(change: ObjectChange, lister: Lister) -> Iterable[Key]:
        found = {*owners(change, lister)}
        old, new = change
        if new is not None and controller_of(new) is None and not (old and controller_of(old) is None and labels_of(old) == labels_of(new)):
            for owner in lister.all(kind, namespace_of(new)):
                selector = selector_of(owner)
                if selector and matches(selector, labels_of(new)):
                    found.add(key_of(owner))
        return sorted(found)

    return keys


# The templates that a StatefulSet or DaemonSet has had: `kubectl rollout history` shows them, `kubectl rollout undo` brings one back.
#
# The one in use has the highest number: a template that comes back gets a new number. `data` is a strategic merge patch of the owner.

HISTORY_LIMIT = 10


def keep_revision(owner: Object, name: str, label: str, in_use: Collection[str], lister: Lister) -> list[Write]:
    """See to it that the owner's template is kept as the revision `name`, and no more old ones than wanted. Revisions whose labels are
    `in_use` stay. Those that an earlier owner of the same pods has left behind are taken over."""
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


def _made(owner: Object, name: str, label: str, number: int) -> Object:
    template = {**copied(spec_of(owner).get("template") or {}), "$patch": "replace"}
    made = kinds.new(kinds.CONTROLLER_REVISION, namespace_of(owner), name, data={"spec": {"template": template}}, revision=number)
    made["metadata"]["ownerReferences"] = [controlled_by(owner)]
    made["metadata"]["labels"] = {**((template.get("metadata") or {}).get("labels") or {}), CONTROLLER_REVISION_HASH: label}
    return made
