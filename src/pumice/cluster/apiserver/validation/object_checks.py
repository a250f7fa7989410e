"""The reasons for which the API server refuses an object of a built-in kind other than pods."""

import json
from typing import Any

from pumice.api import Object
from pumice.api.defaults import SYSTEM_CLASSES
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
from pumice.cluster.apiserver.validation.group_checks import job_scheduling_causes
from pumice.cluster.apiserver.validation.label_rules import selector_causes
from pumice.cluster.apiserver.validation.pod_spec import mount_causes

_STRATEGIES = ("Recreate", "RollingUpdate")
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_HIGHEST_USER_PRIORITY = 1_000_000_000


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


def service_causes(service: Object, old: Object | None) -> Causes:
    spec, before = service["spec"], (old or service)["spec"]
    if "ExternalName" in (spec["type"], before["type"]) or spec["clusterIPs"][0] == before["clusterIPs"][0]:
        return []
    return [invalid("spec.clusterIPs[0]", spec["clusterIPs"], "may not change once set")]


def ingress_causes(ingress: Object, old: Object | None) -> Causes:
    name, stated = (ingress.get("spec") or {}).get("ingressClassName"), (ingress["metadata"].get("annotations") or {}).get(_INGRESS_CLASS)
    if old is not None or None in (name, stated) or name == stated:
        return []
    return [invalid(f"annotations.{_INGRESS_CLASS}", stated, "must match `ingressClassName` when both are specified")]


def quota_causes(quota: Object, old: Object | None) -> Causes:
    scopes, before = ((state.get("spec") or {}).get("scopes") or [] for state in (quota, old or quota))
    return [] if {*scopes} == {*before} else [invalid("spec.scopes", scopes, "field is immutable")]


def workload_causes(workload: Object, old: Object | None) -> Causes:
    spec = workload["spec"]
    selector, found = spec.get("selector"), Causes()
    if selector is None or (workload["kind"] == "ReplicationController" and not selector):
        return missing("spec", spec, "selector")
    if old is not None and workload["kind"] != "ReplicationController" and selector != old["spec"].get("selector"):
        found.append(invalid("spec.selector", selector, "field is immutable"))
    found += _rollout_causes(workload, old)
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
    return found + mount_causes(spec["template"]["spec"], "spec.template.spec", claims)


_CHANGEABLE = (
    "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and "
    "'minReadySeconds'"
)


def _rollout_causes(workload: Object, old: Object | None) -> Causes:
    """The causes for refusing how a workload rolls out, what its pods may not have, and changes that nothing would follow."""
    kind, spec = workload["kind"], workload["spec"]
    pod, place = spec["template"]["spec"], "spec.template.spec"
    found = unsupported(f"{place}.restartPolicy", pod.get("restartPolicy"), ("Always",))
    if "activeDeadlineSeconds" in pod:
        among = "ReplicaSet" if kind == "Deployment" else kind
        found.append(forbidden(f"{place}.activeDeadlineSeconds", f"activeDeadlineSeconds in {among} is not Supported"))
    rolling = (spec.get("strategy") or spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge, unavailable = (rolling.get(field) in (0, "0%") for field in ("maxSurge", "maxUnavailable"))
    if kind == "Deployment":
        way, strategy = "spec.strategy.rollingUpdate", internal(shape_of("apps.v1.DeploymentStrategy"), spec["strategy"])
        found += unsupported("spec.strategy", strategy, _STRATEGIES) if strategy["Type"] not in _STRATEGIES else []
        if spec["strategy"]["type"] == "Recreate" and "rollingUpdate" in spec["strategy"]:
            found.append(forbidden(way, "may not be specified when strategy `type` is 'Recreate'"))
        elif surge and unavailable:
            found.append((f"{way}.maxUnavailable", "Invalid value: 0: may not be 0 when `maxSurge` is 0"))
        if spec.get("progressDeadlineSeconds", 600) <= spec.get("minReadySeconds", 0):
            found.append(invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], "must be greater than minReadySeconds"))
    if kind == "DaemonSet" and rolling:
        way = "spec.updateStrategy.rollingUpdate"
        if surge and unavailable:
            found.append(required(f"{way}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
        elif not surge and not unavailable:
            found.append(invalid(f"{way}.maxSurge", rolling.get("maxSurge"), "may not be set when maxUnavailable is non-zero"))
    if kind == "StatefulSet" and old is not None:
        free = {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds", "selector"}
        free.add("persistentVolumeClaimRetentionPolicy")
        if any(spec.get(field) != old["spec"].get(field) for field in {*spec, *old["spec"]} - free):
            found.append(forbidden("spec", f"updates to statefulset spec for fields other than {_CHANGEABLE} are forbidden"))
    return found


def job_causes(job: Object, old: Object | None) -> Causes:
    spec = job["spec"]
    found = _selection(spec) + job_scheduling_causes(spec, None if old is None else old["spec"])
    if old is not None:
        if spec.get("selector") != old["spec"].get("selector"):
            found.append(("spec.selector", "Invalid value: field is immutable"))
        for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
            if spec.get(field) != old["spec"].get(field):
                found.append(invalid(f"spec.{field}", _shown(field, spec.get(field)), "field is immutable"))
        if spec.get("completions") != old["spec"].get("completions"):
            if spec["completionMode"] != "Indexed":
                found.append(invalid("spec.completions", spec.get("completions"), "field is immutable"))
            elif "completions" in spec and spec["completions"] != spec.get("parallelism"):
                text = "can only be modified in tandem with spec.parallelism"
                found.append(invalid("spec.completions", spec["completions"], text))
        if spec["template"] != old["spec"]["template"] and not old["spec"].get("suspend"):
            found.append(("spec.template", "Invalid value: field is immutable"))
        return found
    found += _restart_causes(spec["template"]["spec"], "spec.template.spec.restartPolicy")
    return [*found, *_combinations(spec), *mount_causes(spec["template"]["spec"], "spec.template.spec")]


def _shown(field: str, value: Any) -> Any:
    """A field of a Job as Kubernetes shows it."""
    shape = shape_of("batch.v1.JobSpec").fields[field]
    return internal(shape, value) if shape.kind == "struct" and value is not None else value


def _restart_causes(pod: Object, place: str) -> Causes:
    if pod.get("restartPolicy") == "Always":
        return [required(place, 'valid values: "OnFailure", "Never"')]
    return unsupported(place, pod.get("restartPolicy"), ("OnFailure", "Never"))


def _selection(spec: Object) -> Causes:
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


def _combinations(spec: Object) -> Causes:
    """The causes for refusing fields of a Job that need another field, or do not go with its value."""
    found: Causes = []
    is_indexed, restarts = spec["completionMode"] == "Indexed", spec["template"]["spec"].get("restartPolicy")
    if is_indexed and "completions" not in spec:
        found.append(required("spec.completions", "when completion mode is Indexed"))
    for field in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if field in spec and not is_indexed:
            found.append(invalid(f"spec.{field}", _shown(field, spec[field]), "requires indexed completion mode"))
    if "maxFailedIndexes" in spec and "backoffLimitPerIndex" not in spec:
        found.append(required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    for field in ("podFailurePolicy", "backoffLimitPerIndex"):
        if field in spec and restarts == "OnFailure":
            text = f'Invalid value: "{restarts}": only "Never" is supported when {field} is specified'
            found.append(("spec.template.spec.restartPolicy", text))
    return found


def cron_job_causes(cron_job: Object, old: Object | None) -> Causes:
    place, pod = "spec.jobTemplate.spec.template.spec", cron_job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    found = _cron_job_name(cron_job, old) + _schedule(cron_job["spec"].get("schedule") or "") + _time_zone(cron_job["spec"])
    found += _restart_causes(pod, f"{place}.restartPolicy")
    return found + mount_causes(pod, place)


def _schedule(schedule: str) -> Causes:
    shown, fields = f"Invalid value: {json.dumps(schedule)}", schedule.split()
    if "TZ" in schedule:
        return [("spec.schedule", f"{shown}: cannot use TZ or CRON_TZ in schedule, use timeZone field instead")]
    if fields and not schedule.startswith("@") and len(fields) != 5:
        return [("spec.schedule", f"{shown}: expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")]
    return []


def _cron_job_name(cron_job: Object, old: Object | None) -> Causes:
    name = cron_job["metadata"].get("name") or ""
    rule = "must be no more than 52 characters"  # its jobs get eleven more
    return [("metadata.name", f'Invalid value: "{name}": {rule}')] if old is None and len(name) > 52 else []


def _time_zone(spec: Object) -> Causes:
    zone = spec.get("timeZone")
    if zone is None:
        return []
    if not zone:
        return [("spec.timeZone", f'Invalid value: "{zone}": timeZone must be nil or non-empty string')]
    if zone.lower() == "local":
        return [
            (
                "spec.timeZone",
                f'Invalid value: "{zone}": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
            )
        ]
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        ZoneInfo(zone)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return [("spec.timeZone", f'Invalid value: "{zone}": unknown time zone {zone}')]
    return []


def budget_causes(budget: Object, old: Object | None) -> Causes:
    spec = budget.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        return [("spec", "Invalid value: minAvailable and maxUnavailable cannot be both set")]
    return selector_causes(spec.get("selector"), "spec.selector")


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


def priority_class_causes(priority_class: Object, old: Object | None) -> Causes:
    value, name = priority_class["value"], priority_class["metadata"].get("name") or ""
    if old is not None:
        fields = ("value", "preemptionPolicy")
        return [forbidden(field, "may not be changed in an update.") for field in fields if priority_class.get(field) != old.get(field)]
    if name.startswith("system-") and name not in SYSTEM_CLASSES:
        return [("metadata.name", f'Forbidden: priority class names with "system-" prefix are reserved for system use only: {name}')]
    if value > _HIGHEST_USER_PRIORITY and not name.startswith("system-"):
        return [forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}")]
    return []


def lease_causes(lease: Object, old: Object | None) -> Causes:
    spec = lease.get("spec") or {}
    if "leaseDurationSeconds" in spec and spec["leaseDurationSeconds"] <= 0:
        return [("spec.leaseDurationSeconds", "Invalid value: must be greater than 0")]
    return []
