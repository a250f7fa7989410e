"""Pods of workloads: making them from a template, counting them, choosing which to end first; and adopting and releasing objects.

An owner adopts objects that match its selector and have no controller, and releases its objects that do not match. An owner that is being
deleted adopts nothing, and an object that is being deleted is not adopted.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from pumice.api import Key, Object, instant, key_of, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.annotations import DELETION_COST
from pumice.api.integers import integer
from pumice.api.json_objects import (
    annotations_of,
    condition,
    controlled_by,
    controller_of,
    copied,
    created_at,
    finalizers_of,
    labels_of,
    owners_of,
    suffix,
    terminating,
)
from pumice.api.selectors import Selector, label_selector, matches
from pumice.controllers.controller import Among, KeysOf, Lister, ObjectChange
from pumice.controllers.writes import Patch, Write, patch

ENDED = ("Succeeded", "Failed")
STARTED = {"Pending": 0, "Unknown": 1, "Running": 2}


def pods_of(owner: Object, lister: Lister) -> list[Object]:
    return [pod for pod in lister.dependents(uid_of(owner), kinds.POD) if (controller_of(pod) or {}).get("uid") == uid_of(owner)]


def phase(pod: Object) -> str:
    return str(status_of(pod).get("phase") or "Pending")


def active(pod: Object) -> bool:
    return not terminating(pod) and phase(pod) not in ENDED


def ready(pod: Object) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.get("status") == "True" and phase(pod) == "Running"


def available_at(pod: Object, min_ready_s: float) -> float | None:
    """When the pod has been, or will have been, ready for `min_ready_s` seconds; None while it is not ready."""
    found = condition(pod, "Ready")
    if found is None or not ready(pod):
        return None
    stamp = found.get("lastTransitionTime")
    return (instant(stamp) if stamp else 0.0) + min_ready_s if min_ready_s else 0.0


def serves(pod: Object, owner: Object, now: float) -> bool:
    """Whether the pod is available, by its owner's `minReadySeconds`, and is not being deleted."""
    at = available_at(pod, float(spec_of(owner).get("minReadySeconds") or 0))
    return at is not None and at <= now and not terminating(pod)


def available(pods: Iterable[Object], min_ready_s: float, now: float) -> tuple[int, float | None]:
    """The number of available pods, and when the next pod will be available, or None."""
    times = [at for at in (available_at(pod, min_ready_s) for pod in pods if not terminating(pod)) if at is not None]
    return sum(at <= now for at in times), min((at for at in times if at > now), default=None)


def from_template(owner: Object, template: Object, name: str, **labels: str) -> Object:
    """A new pod of this owner, from a template."""
    content = copied(template)
    meta = content.get("metadata") or {}
    pod = kinds.new(kinds.POD, namespace_of(owner), name, spec=content.get("spec") or {})
    pod["metadata"]["labels"] = {**(meta.get("labels") or {}), **labels}
    if meta.get("annotations"):
        pod["metadata"]["annotations"] = meta["annotations"]
    pod["metadata"]["ownerReferences"] = [controlled_by(owner)]
    return pod


def free_names(owner: Object, count: int, lister: Lister, stem: str = "") -> Iterator[str]:
    """Unused names for `count` new pods; the same names as long as the owner has not changed."""
    number = 0
    while count:
        name = f"{stem or name_of(owner)}-{suffix(uid_of(owner), owner['metadata'].get('resourceVersion'), number)}"
        number += 1
        if lister.get(kinds.POD, namespace_of(owner), name) is None:
            count -= 1
            yield name


def dispensable_first(pods: Iterable[Object]) -> list[Object]:
    """The pods in the order in which to end them: first those without a node, not started, not ready, cheap, restarted often, young."""
    return sorted(pods, key=_worth)


def _worth(pod: Object) -> tuple[Any, ...]:
    restarts = sum(int(each.get("restartCount") or 0) for each in status_of(pod).get("containerStatuses") or ())
    cost = annotations_of(pod).get(DELETION_COST, "0")
    return (
        bool(spec_of(pod).get("nodeName")),
        STARTED.get(phase(pod), 2),
        ready(pod),
        integer(cost),
        -restarts,
        -created_at(pod),
        name_of(pod),
    )


def revision_of(template: Object) -> str:
    """A short name for the content of a template."""
    return suffix(json.dumps(template, sort_keys=True), length=10)


def share(stated: Any, total: int, round_up: bool) -> int:
    """The number that a field states, either directly or as a percentage of the total."""
    if isinstance(stated, str) and stated.endswith("%"):
        whole, rest = divmod(int(stated[:-1]) * total, 100)
        return whole + (1 if rest and round_up else 0)
    return int(stated)


Test = Callable[[Object], bool]


class Claim(NamedTuple):
    """The objects of an owner, and the writes that adopt and release objects."""

    mine: list[Object]
    writes: list[Write]


def claim(owner: Object, kind: str, lister: Lister, considered: Test = lambda subject: True, finalizer: str = "") -> Claim:
    """Find, adopt and release objects of a kind. Objects that are not `considered` stay as they are. `finalizer` is put on adopted objects
    and taken from released ones."""
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
    """The owner's selector of pods; empty if it has none: then it selects nothing."""
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
    """A function from a change to the keys of the changed object's controllers, and of the owners of this kind that might adopt it."""

    def keys(change: ObjectChange, lister: Lister) -> Iterable[Key]:
        found = change.controllers.get(kind, frozenset())
        if change.is_adoptable:
            owners, labels = lister.all(kind, namespace_of(change.object)), labels_of(change.object)
            found = found | {key_of(owner) for owner in owners if (selector := selector_of(owner)) and matches(selector, labels)}
        return sorted(found)

    return Among(kind, keys, owners=True)
