"""The reasons for which the API server refuses an object of a built-in kind, as far as no table of types has them."""

from typing import Any

from pumice.api import Object
from pumice.api.quantity import quantity
from pumice.api.selectors import matches_selector
from pumice.cluster.apiserver.metadata import finalizer_causes
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.validation.declared_rules import internal
from pumice.cluster.apiserver.validation.field_rules import (
    Causes,
    compact,
    forbidden,
    invalid,
    missing,
    negative_amounts,
    required,
    unsupported,
)
from pumice.cluster.apiserver.validation.label_rules import selector_causes
from pumice.cluster.apiserver.validation.pod_spec import mount_causes


def node_causes(node: Object, old: Object | None) -> Causes:
    found: Causes = []
    pairs = set[tuple[Any, Any]]()
    for index, taint in enumerate(node["spec"].get("taints", ())):
        pair = taint.get("key"), taint.get("effect")
        if pair in pairs:
            shown = compact(internal(shape_of("core.v1.Taint"), taint))
            found.append((f"metadata.taints[{index}]", f"Duplicate value: {shown}: taints must be unique by key and effect pair"))
        pairs.add(pair)
    for field in ("capacity", "allocatable"):
        amounts = (node.get("status") or {}).get(field) or {}
        found += negative_amounts((f"status.{field}.{name}", amount) for name, amount in amounts.items())
    return found


def namespace_causes(namespace: Object, old: Object | None) -> Causes:
    found = finalizer_causes((namespace.get("spec") or {}).get("finalizers") or (), "spec.finalizers")
    return [("spec.finalizers", text) for _, text in found]


def workload_causes(workload: Object, old: Object | None) -> Causes:
    spec = workload["spec"]
    selector, pod, found = spec.get("selector"), spec["template"]["spec"], Causes()
    if selector is None or (workload["kind"] == "ReplicationController" and not selector):
        return missing("spec", spec, "selector")
    if old is not None and workload["kind"] != "ReplicationController" and selector != old["spec"].get("selector"):
        found.append(invalid("spec.selector", selector, "field is immutable"))
    found += unsupported("spec.template.spec.restartPolicy", pod.get("restartPolicy"), ("Always",))
    if "activeDeadlineSeconds" in pod:
        among = "ReplicaSet" if workload["kind"] == "Deployment" else workload["kind"]
        found.append(forbidden("spec.template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {among} is not Supported"))
    labels = spec["template"]["metadata"].get("labels") or {}
    plain = workload["kind"] == "ReplicationController"
    unreadable = [] if plain else selector_causes(selector, "spec.selector")
    if not unreadable and not plain and not any(selector.values()):
        unreadable = [invalid("spec.selector", selector, f"empty selector is invalid for {workload['kind'].lower()}")]
    elif unreadable:
        unreadable.append(invalid("spec.selector", selector, "invalid label selector"))
    if unreadable:
        return found + unreadable
    found += _unselected({"matchLabels": selector} if plain else selector, labels)
    claims = ((claim.get("metadata") or {}).get("name") for claim in spec.get("volumeClaimTemplates") or ())
    return found + mount_causes(pod, "spec.template.spec", claims)


def restart_causes(pod: Object, place: str) -> Causes:
    if pod.get("restartPolicy") == "Always":
        return [required(place, 'valid values: "OnFailure", "Never"')]
    return unsupported(place, pod.get("restartPolicy"), ("OnFailure", "Never"))


def selection_causes(spec: Object) -> Causes:
    """The causes for refusing the selector of a Job: a Job that does not select its own pods would create pods for ever."""
    selector = spec.get("selector")
    if not selector:
        return missing("spec", spec, "selector")
    labels = spec["template"]["metadata"].get("labels") or {}
    return selector_causes(selector, "spec.selector") or _unselected(selector, labels)


def _unselected(selector: Object, labels: Object) -> Causes:
    """The cause for refusing a workload whose selector does not match the labels of its own pods; empty if it does."""
    if matches_selector(selector, labels):
        return []
    return [invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")]


def is_time_zone(name: str) -> bool:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return False
    return True


def autoscaler_causes(autoscaler: Object, old: Object | None) -> Causes:
    spec, before, found = autoscaler["spec"], {} if old is None else old["spec"], Causes()
    most, least, target = spec.get("maxReplicas", 0), spec.get("minReplicas", 1), spec.get("scaleTargetRef") or {}
    if most < least:
        found.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    if least == 0 and before.get("minReplicas") != 0:
        found.append(invalid("spec.minReplicas", 0, "must be greater than or equal to 1"))
    if least == 0 and not {"Object", "External"} & {metric.get("type") for metric in spec.get("metrics") or ()}:
        text = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(forbidden("spec.metrics", text))
    if target != before.get("scaleTargetRef") and target.get("kind") != "ReplicationController" and "/" not in target.get("apiVersion", ""):
        text = "apiVersion must specify API group"
        found.append(invalid("spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), text))
    return found


def claim_causes(claim: Object, old: Object | None) -> Causes:
    """The causes for refusing a PersistentVolumeClaim."""
    spec = claim["spec"]
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        return [required("spec.resources[storage]")]
    if quantity(storage).milli <= 0:
        return [invalid("spec.resources[storage]", storage, "must be greater than zero")]
    if len(spec.get("accessModes") or ()) > 1 and "ReadWriteOncePod" in spec["accessModes"]:
        return [forbidden("spec.accessModes", "may not use ReadWriteOncePod with other access modes")]
    before = {} if old is None else old["spec"]
    free = {"resources", "volumeAttributesClassName", *(field for field in ("volumeName", "storageClassName") if not before.get(field))}
    if old is not None and any(spec.get(field) != before.get(field) for field in {*spec, *before} - free):
        rule = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        return [forbidden("spec", rule)]
    return []


def volume_causes(volume: Object, old: Object | None) -> Causes:
    """The causes for refusing a PersistentVolume."""
    spec, members = volume["spec"], shape_of("core.v1.PersistentVolumeSource").fields
    sources = [name for name in spec if name in members]
    if not sources:
        return [required("spec", "must specify a volume type")]
    if old is not None and any(spec.get(name) != old["spec"].get(name) for name in members):
        return [forbidden("spec.persistentvolumesource", "spec.persistentvolumesource is immutable after creation")]
    return [forbidden(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
