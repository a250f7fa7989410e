"""What workloads ask of pods: made from a template, active, ready, available, and which of too many to end first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from pumice.api import kinds
from pumice.api.annotations import DELETION_COST
from pumice.api.json_objects import (
    Object,
    annotations_of,
    condition,
    controlled_by,
    controller_of,
    copied,
    created_at,
    name_of,
    namespace_of,
    spec_of,
    status_of,
    suffix,
    terminating,
    uid_of,
)
from pumice.api.quantity import integer
from pumice.api.times import instant
from pumice.controllers.controller import Create, Emit, Write, delete
from pumice.controllers.lister import Lister

ENDED = ("Succeeded", "Failed")
STARTED = {"Pending": 0, "Unknown": 1, "Running": 2}


def pods_of(owner: Object, lister: Lister) -> list[Object]:
    """All pods that the owner controls."""
    return [pod for pod in lister.dependents(uid_of(owner), kinds.POD) if (controller_of(pod) or {}).get("uid") == uid_of(owner)]


def phase(pod: Object) -> str:
    return str(status_of(pod).get("phase") or "Pending")


def active(pod: Object) -> bool:
    return not terminating(pod) and phase(pod) not in ENDED


def ready(pod: Object) -> bool:
    found = condition(pod, "Ready")
    return found is not None and found.get("status") == "True" and phase(pod) == "Running"


def available_at(pod: Object, min_ready_s: float) -> float | None:
    """When the pod has been, or will have been, ready for so long; None while it is not ready."""
    found = condition(pod, "Ready")
    if found is None or not ready(pod):
        return None
    stamp = found.get("lastTransitionTime")
    return (instant(stamp) if stamp else 0.0) + min_ready_s if min_ready_s else 0.0


def available(pods: Iterable[Object], min_ready_s: float, now: float) -> tuple[int, float | None]:
    """How many pods are available, and when the next one will be."""
    times = [at for at in (available_at(pod, min_ready_s) for pod in pods if not terminating(pod)) if at is not None]
    return sum(at <= now for at in times), min((at for at in times if at > now), default=None)


def from_template(owner: Object, template: Object, name: str, **labels: str) -> Object:
    """A pod of its owner."""
    content = copied(template)
    meta = content.get("metadata") or {}
    pod = kinds.new(kinds.POD, namespace_of(owner), name, spec=content.get("spec") or {})
    pod["metadata"]["labels"] = {**(meta.get("labels") or {}), **labels}
    if meta.get("annotations"):
        pod["metadata"]["annotations"] = meta["annotations"]
    pod["metadata"]["ownerReferences"] = [controlled_by(owner)]
    return pod


def free_names(owner: Object, count: int, lister: Lister, stem: str = "") -> Iterator[str]:
    """Names for new pods, the same ones as long as the owner has not changed."""
    number = 0
    while count:
        name = f"{stem or name_of(owner)}-{suffix(uid_of(owner), owner['metadata'].get('resourceVersion'), number)}"
        number += 1
        if lister.get(kinds.POD, namespace_of(owner), name) is None:
            count -= 1
            yield name


def dispensable_first(pods: Iterable[Object]) -> list[Object]:
    """Which to end first: without a node, not started, not ready, cheap, restarted often, young."""
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
    """A number, or a percentage of the total."""
    if isinstance(stated, str) and stated.endswith("%"):
        whole, rest = divmod(int(stated[:-1]) * total, 100)
        return whole + (1 if rest and round_up else 0)
    return int(stated)


# What is done with pods, together with the events that `kubectl describe` shows of it, in Kubernetes' words.

BURST = 500  #: pods made at a time


def created(owner: Object, pods: Iterable[Object]) -> list[Write]:
    """Make pods, so many at a time; their coming brings the next. The owner is told, also if one is refused."""
    writes: list[Write] = []
    for pod in islice(pods, BURST):
        writes += Create(pod, owner), Emit(owner, "Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}")
    return writes


def ended(owner: Object, pods: Iterable[Object]) -> list[Write]:
    """Delete pods."""
    return [write for pod in pods for write in (delete(pod), Emit(owner, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}"))]


def of_set(verb: str, subject: Object, owner: Object) -> Emit:
    """A StatefulSet speaks in another way: `verb` is create or delete."""
    text = f"{verb} {subject['kind']} {name_of(subject)} in StatefulSet {name_of(owner)} successful"
    return Emit(owner, "Normal", f"Successful{verb.capitalize()}", text)
