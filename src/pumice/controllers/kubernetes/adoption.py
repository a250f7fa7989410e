"""Whose pods and ReplicaSets are whose: an owner adopts what fits its selector and has no controller, and lets go what fits no more.

Nobody adopts or is adopted who is to be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pumice.api.selectors import Selector, label_selector, matches
from pumice.controllers.controller import Change, KeysOf, its_controller
from pumice.controllers.objects import (
    Key,
    Object,
    controlled_by,
    controller_of,
    key_of,
    labels_of,
    namespace_of,
    owners_of,
    spec_of,
    terminating,
    uid_of,
)
from pumice.controllers.world import World
from pumice.controllers.writes import Patch, Write, patch

Test = Callable[[Object], bool]


class Claim(NamedTuple):
    """What is an owner's, and the writes that make it so."""

    mine: list[Object]
    writes: list[Write]


def claim(owner: Object, kind: str, world: World, considered: Test = lambda subject: True) -> Claim:
    """`considered`: what the owner looks at; the rest stays as it is, whosever it is."""
    selector = selector_of(owner)
    owned = [each for each in world.dependents(uid_of(owner), kind) if (controller_of(each) or {}).get("uid") == uid_of(owner)]
    owned = [each for each in owned if considered(each)]
    if not selector:
        return Claim(owned, [])
    mine = [each for each in owned if matches(selector, labels_of(each))]
    if terminating(owner):
        return Claim(mine, [])
    fitting = (each for each in world.strays(kind, namespace_of(owner)) if matches(selector, labels_of(each)))
    found = [each for each in fitting if considered(each) and not terminating(each)]
    released = (_release(each, owner) for each in owned if not matches(selector, labels_of(each)))
    return Claim([*mine, *found], [*released, *(_adopt(each, owner) for each in found)])


def selector_of(owner: Object) -> Selector:
    """Empty where there is none: it selects nothing."""
    stated = spec_of(owner).get("selector") or {}
    is_plain = owner["kind"] == "ReplicationController"
    return label_selector({"matchLabels": stated} if is_plain else stated) or ()


def _adopt(subject: Object, owner: Object) -> Patch:
    return patch(subject, {"metadata": {"ownerReferences": [*_without(subject, owner), controlled_by(owner)]}})


def _release(subject: Object, owner: Object) -> Patch:
    return patch(subject, {"metadata": {"ownerReferences": _without(subject, owner) or None}})


def _without(subject: Object, owner: Object) -> list[Object]:
    return [each for each in owners_of(subject) if each["uid"] != uid_of(owner)]


def its_claimants(kind: str) -> KeysOf:
    """The controllers of the changed object, and those that might adopt it."""

    def keys(change: Change, world: World) -> Iterable[Key]:
        found = {*its_controller(kind)(change, world)}
        old, new = change
        if new is not None and controller_of(new) is None and not (old and controller_of(old) is None and labels_of(old) == labels_of(new)):
            for owner in world.all(kind, namespace_of(new)):
                selector = selector_of(owner)
                if selector and matches(selector, labels_of(new)):
                    found.add(key_of(owner))
        return sorted(found)

    return keys
