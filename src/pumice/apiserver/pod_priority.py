"""A pod's priority is that of its class, and nobody's to state otherwise."""

from __future__ import annotations

from typing import Any

from pumice.apiserver.admission import Refusal, Review, Rule, World
from pumice.apiserver.shapes import Object

CLASSES = "priorityclasses.scheduling.k8s.io"
_COMPUTED = ("priority", "preemptionPolicy")


def priority_rules() -> list[Rule]:
    return [
        Rule(("pods",), ("CREATE",), mutate=_with_priority, validate=_says_its_class),
        Rule(("pods",), ("UPDATE",), mutate=_keeping_priority),
        Rule((CLASSES,), ("CREATE", "UPDATE"), validate=_one_default),
    ]


def _class_of(pod: Object, world: World) -> Object | None:
    """The class a pod names, or the one that is the default for all."""
    name = pod["spec"].get("priorityClassName")
    if name:
        return world.find(CLASSES, "", name)
    return min(_defaults(world), key=lambda one: int(one["value"]), default=None)


def _defaults(world: World) -> list[Object]:
    return [one for one in world.all(CLASSES) if one.get("globalDefault")]


def _computed(found: Object | None) -> dict[str, Any]:
    known = found or {}
    return {"priority": known.get("value", 0), "preemptionPolicy": known.get("preemptionPolicy", "PreemptLowerPriority")}


def _with_priority(review: Review, world: World) -> Object:
    spec, found = review.obj["spec"], _class_of(review.obj, world)
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    for field, value in _computed(found).items():
        spec.setdefault(field, value)
    return review.obj


def _says_its_class(review: Review, world: World) -> Refusal | None:
    spec, found = review.obj["spec"], _class_of(review.obj, world)
    if found is None and spec.get("priorityClassName"):
        return Refusal(f"no PriorityClass with name {spec['priorityClassName']} was found")
    for field, value in _computed(found).items():
        if spec[field] != value:
            what = "integer value of priority" if field == "priority" else "string value of PreemptionPolicy"
            text = f"the {what} ({spec[field]}) must not be provided in pod spec; "
            return Refusal(f"{text}priority admission controller computed {value} from the given PriorityClass name")
    return None


def _keeping_priority(review: Review, world: World) -> Object:
    """A write that leaves the priority out does not take it away."""
    assert review.old is not None
    for field in _COMPUTED:
        if field in review.old["spec"]:
            review.obj["spec"].setdefault(field, review.old["spec"][field])
    return review.obj


def _one_default(review: Review, world: World) -> Refusal | None:
    others = [one["metadata"]["name"] for one in _defaults(world) if one["metadata"]["name"] != review.name]
    if not review.obj.get("globalDefault") or not others:
        return None
    return Refusal(f"PriorityClass {others[0]} is already marked as default. Only one default can exist")
