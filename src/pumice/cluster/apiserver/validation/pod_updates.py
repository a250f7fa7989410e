"""What may be changed in an existing pod, by a plain update, by `resize` and by `ephemeralcontainers`."""

from collections.abc import Iterable
from typing import Any

from pumice.api import Object
from pumice.api.json_objects import clone
from pumice.api.quantity import quantity
from pumice.cluster.apiserver.pod_defaults import qos_class
from pumice.cluster.apiserver.validation.field_rules import Causes, forbidden, missing
from pumice.cluster.apiserver.validation.pod_spec import resource_causes

_RESIZABLE = ("cpu", "memory")


def may_become(spec: Object, before: Object) -> bool:
    """Whether an update changes only fields that may change, and narrows where the pod may run only as it may."""
    return spec == before or (_fixed(spec, before) == _fixed(before, before) and _narrows(spec, before))


def may_tolerate(tolerations: Iterable[Object] | None, before: Iterable[Object] | None) -> bool:
    """Whether tolerations are still those of before, but for how long they last."""

    def lasting(toleration: Object) -> Object:
        return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}

    kept = [lasting(toleration) for toleration in tolerations or ()]
    return all(lasting(toleration) in kept for toleration in before or ())


def _fixed(spec: Object, before: Object) -> Object:
    """The spec without the fields that may change. A change of the grace period that is allowed is undone."""
    fixed: Object = clone(spec)
    for container in (*fixed.get("containers", ()), *fixed.get("initContainers", ())):
        container.pop("image", None)
    for field in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "nodeSelector", "affinity"):
        fixed.pop(field, None)
    if before.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        fixed["terminationGracePeriodSeconds"] = before["terminationGracePeriodSeconds"]
    return fixed


def _narrows(spec: Object, before: Object) -> bool:
    """Whether node selector and affinity are unchanged, or changed as is allowed: while the pod has a scheduling gate, to fewer nodes."""
    if all(spec.get(field) == before.get(field) for field in ("nodeSelector", "affinity")):
        return True
    if not before.get("schedulingGates"):
        return False
    selector, was = spec.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(key) != value for key, value in was.items()):
        return False
    affinity, had = spec.get("affinity") or {}, before.get("affinity") or {}
    others = {*affinity, *had} - {"nodeAffinity"}
    return all(affinity.get(field) == had.get(field) for field in others) and _terms_narrow(affinity, had)


def _terms_narrow(affinity: Object, had: Object) -> bool:
    """Whether the terms of required node affinity match the same nodes or fewer. Terms are alternatives, so none may be added; within a
    term, requirements may be added."""
    terms, were = (
        ((each.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms")
        for each in (affinity, had)
    )
    if not were:
        return True
    if terms is None or len(terms) != len(were):
        return False
    fields = ("matchExpressions", "matchFields")
    return all(
        all(requirement in (term.get(field) or ()) for requirement in was.get(field) or ())
        for term, was in zip(terms, were, strict=True)
        for field in fields
    )


def resize_causes(pod: Object, old: Object | None) -> Causes:
    """The causes for refusing a resize. Only CPU and memory may change, neither may be removed, and the pod must keep its QoS class."""
    assert old is not None
    found: Causes = []
    for field in ("containers", "initContainers"):
        for index, (container, was) in enumerate(zip(pod["spec"].get(field, ()), old["spec"].get(field, ()), strict=True)):
            place = f"spec.{field}[{index}].resources"
            resources, before = container.get("resources") or {}, was.get("resources") or {}
            found += resource_causes(resources, place)
            for side in ("requests", "limits"):
                found += _amount_causes(resources.get(side) or {}, before.get(side) or {}, f"{place}.{side}", f"resource {side}")
    if not found and qos_class(pod["spec"]) != qos_class(old["spec"]):
        found.append(("spec", "Invalid value: Pod QOS Class may not change as a result of resizing"))
    return found


def _amount_causes(amounts: Object, before: Object, place: str, what: str) -> Causes:
    found: Causes = []
    for name in sorted({*amounts, *before}):
        if name in _RESIZABLE:
            if name not in amounts:
                found.append(forbidden(place, f"{what} cannot be removed"))
        elif _milli(amounts, name) != _milli(before, name):
            found.append(forbidden(f"{place}[{name}]", "only cpu and memory resources are mutable"))
    return found


def _milli(amounts: dict[str, Any], name: str) -> int | None:
    return quantity(amounts[name]).milli if name in amounts else None


def ephemeral_causes(pod: Object, old: Object | None) -> Causes:
    """The causes for refusing a change to ephemeral containers. New containers may be added; existing ones must stay as they are."""
    assert old is not None
    containers = pod["spec"].get("ephemeralContainers") or []
    found: Causes = []
    names = {container.get("name") for field in ("containers", "initContainers") for container in pod["spec"].get(field, ())}
    for index, container in enumerate(containers):
        place = f"spec.ephemeralContainers[{index}]"
        found += missing(place, container, "name", "image")
        if container.get("name") in names:
            found.append((f"{place}.name", f'Duplicate value: "{container.get("name")}"'))
        names.add(container.get("name"))
        if container.get("resources"):
            found.append(forbidden(f"{place}.resources", "cannot be set for an Ephemeral Container"))
    by_name = {container.get("name"): container for container in containers}
    for was in old["spec"].get("ephemeralContainers") or ():
        if by_name.get(was["name"]) != was:
            verb = "removed" if was["name"] not in by_name else "changed"
            found.append(("spec.ephemeralContainers", f'Forbidden: existing ephemeral containers "{was["name"]}" may not be {verb}'))
    return found
