"""What the API server itself does with an object of a kind when it is written: begin, default, check.

`begin` sets what a new object starts with, whatever its creator wrote; `default` fills in fields that were left out; `causes` returns what
is wrong. All three get an object of the right shape that is shared with nothing. For a kind without an entry in the table, only the status
of a new object is removed.
"""

import base64
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from pumice.api import Object
from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.pod_admission_defaults import limits_and_requests
from pumice.cluster.apiserver import pod_defaults
from pumice.cluster.apiserver.admission import policies
from pumice.cluster.apiserver.auth import signing
from pumice.cluster.apiserver.pod_defaults import default_spec
from pumice.cluster.apiserver.scheme.builtin_defaults import set_defaults
from pumice.cluster.apiserver.scheme.builtin_shapes import shape_of
from pumice.cluster.apiserver.scheme.crd import CRDS, complete, definition_causes
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.validation import (
    admission_checks,
    device_checks,
    group_checks,
    object_checks,
    pod_updates,
    slice_checks,
)
from pumice.cluster.apiserver.validation.field_rules import Causes, fill

Change = Callable[[Object], None]
Check = Callable[[Object, Object | None], Causes]


def filled(**defaults: Any) -> Change:
    return lambda obj: fill(obj, defaults)


def started(**status: Any) -> Change:
    def begin(obj: Object) -> None:
        obj["status"] = dict(status)

    return begin


def default_namespace(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if "deletionTimestamp" not in metadata:
        namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    if metadata.get("name"):
        metadata.setdefault("labels", {})[NAMESPACE_NAME] = metadata["name"]


def begin_volume(volume: Object) -> None:
    volume["status"] = {"phase": "Pending", "lastPhaseTransitionTime": volume["metadata"]["creationTimestamp"]}


def default_node(node: Object) -> None:
    status = node["status"]
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    status["nodeInfo"] = dict.fromkeys(shape_of("core.v1.NodeSystemInfo").required, "") | (status.get("nodeInfo") or {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})


def default_service(service: Object) -> None:
    spec = service["spec"]
    for port in spec.get("ports", ()):
        port["targetPort"] = port.get("targetPort") or port.get("port")  # clients in Go always state it: 0 for none
    if spec["type"] == "ExternalName":
        return
    fill(spec, {"internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"})
    if spec.get("clusterIP"):
        spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    service.setdefault("status", {"loadBalancer": {}})


#: how a HorizontalPodAutoscaler scales, if it states a part of this: upwards by four pods or to the double, downwards at once
_SCALING: dict[str, Object] = {
    "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [("Pods", 4), ("Percent", 100)]},
    "scaleDown": {"selectPolicy": "Max", "policies": [("Percent", 100)]},
}


def default_autoscaler(autoscaler: Object) -> None:
    spec = autoscaler.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    for way, rules in _SCALING.items() if spec.get("behavior") is not None else ():
        policies = [{"type": sort, "value": value, "periodSeconds": 15} for sort, value in rules["policies"]]
        spec["behavior"][way] = rules | {"policies": policies} | (spec["behavior"].get(way) or {})


def default_secret(secret: Object) -> None:
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def default_binding(binding: Object) -> None:
    """Give references to roles, users and groups the API group of RBAC if they have none."""
    if binding.get("roleRef"):
        binding["roleRef"]["apiGroup"] = binding["roleRef"].get("apiGroup") or "rbac.authorization.k8s.io"
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or "rbac.authorization.k8s.io"


def default_limit_range(limits: Object) -> None:
    """Fill in the defaults for containers: the default limit is the maximum; the default request is the default limit, else the minimum."""
    for limit in (limits.get("spec") or {}).get("limits", ()):
        if limit.get("type") != "Container":
            continue
        amounts = limits_and_requests(*(limit.get(field) for field in ("max", "default", "min", "defaultRequest")))
        limit.update({field: found for field, found in zip(("default", "defaultRequest"), amounts, strict=True) if found})


_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")


#: how pods are replaced, by kind
_ROLLING = {"DaemonSet": {"maxUnavailable": 1, "maxSurge": 0}, "Deployment": {"maxUnavailable": "25%", "maxSurge": "25%"}}
_ROLLING |= {"StatefulSet": {"partition": 0}}


def default_workload(obj: Object) -> None:
    """Fill in the pod template, and how the pods are replaced."""
    spec = obj["spec"]
    default_spec(spec["template"]["spec"])
    for claim in spec.get("volumeClaimTemplates", ()):
        fill(claim, {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}})
    for way in ("strategy", "updateStrategy"):
        if way in spec and spec[way]["type"] == "RollingUpdate":
            fill(spec[way], {"rollingUpdate": _ROLLING[obj["kind"]]})


def default_controller(obj: Object) -> None:
    default_workload(obj)
    labels = obj["spec"]["template"]["metadata"].get("labels") or {}
    obj["spec"].setdefault("selector", dict(labels))
    obj["metadata"].setdefault("labels", dict(labels))


def begin_job(obj: Object) -> None:
    """Remove the status. A Job without `manualSelector` gets a selector by its uid, and its pod template the labels for it."""
    obj.pop("status", None)
    spec, metadata = obj.setdefault("spec", {}), obj["metadata"]
    if spec.get("manualSelector"):
        return
    template_metadata = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = template_metadata.setdefault("labels", {})
    labels |= dict.fromkeys(_JOB_LABELS, metadata["uid"]) | dict.fromkeys(_JOB_NAMES, metadata.get("name", ""))
    spec.setdefault("selector", {}).setdefault("matchLabels", {})[_JOB_LABELS[0]] = metadata["uid"]


LONGEST_LABEL = 63


def default_job(obj: Object) -> None:
    spec = obj["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    fill(spec, {"parallelism": 1, "completionMode": "NonIndexed", "suspend": False, "manualSelector": False})
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    default_workload(obj)
    labels = spec["template"]["metadata"].get("labels") or {}
    if labels and not obj["metadata"].get("labels"):  # one that is too long is refused in the template
        obj["metadata"]["labels"] = {key: value for key, value in labels.items() if len(value) <= LONGEST_LABEL}


def default_cron_job(obj: Object) -> None:
    default_workload(obj["spec"]["jobTemplate"])


def _nothing(obj: Object) -> None:
    pass


def _no_status(obj: Object) -> None:
    obj.pop("status", None)


def _no_causes(obj: Object, old: Object | None) -> Causes:
    return []


class Strategy(NamedTuple):
    begin: Change = _nothing
    default: Change = _nothing
    causes: Check = _no_causes


_OF_VOLUMES = filled(spec={"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
_PLAIN = Strategy()
_WITH_STATUS = Strategy(begin=started())
_WITHOUT_STATUS = Strategy(begin=_no_status)

_TABLE = {
    "pods": Strategy(pod_defaults.begin, pod_defaults.default_pod, device_checks.charge_causes),
    "nodes": Strategy(default=default_node, causes=object_checks.node_causes),
    "namespaces": Strategy(started(phase="Active"), default_namespace, object_checks.namespace_causes),
    "services": Strategy(_no_status, default_service),
    "secrets": Strategy(default=default_secret),
    "persistentvolumes": Strategy(begin_volume, _OF_VOLUMES, object_checks.volume_causes),
    "persistentvolumeclaims": Strategy(started(phase="Pending"), causes=object_checks.claim_causes),
    "resourcequotas": Strategy(_no_status),
    "limitranges": Strategy(default=default_limit_range),
    "replicationcontrollers": Strategy(_no_status, default_controller, object_checks.workload_causes),
    "deployments.apps": Strategy(_no_status, default_workload, object_checks.workload_causes),
    "replicasets.apps": Strategy(_no_status, default_workload, object_checks.workload_causes),
    "statefulsets.apps": Strategy(_no_status, default_workload, object_checks.workload_causes),
    "daemonsets.apps": Strategy(_no_status, default_workload, object_checks.workload_causes),
    "jobs.batch": Strategy(begin_job, default_job),
    "cronjobs.batch": Strategy(_no_status, default_cron_job),
    "horizontalpodautoscalers.autoscaling": Strategy(_no_status, default_autoscaler, object_checks.autoscaler_causes),
    "poddisruptionbudgets.policy": Strategy(started(currentHealthy=0, desiredHealthy=0, disruptionsAllowed=0, expectedPods=0)),
    **dict.fromkeys(group_checks.GROUPS, Strategy(started())),
    group_checks.WORKLOADS: Strategy(),
    "ingresses.networking.k8s.io": Strategy(started()),
    signing.REQUESTS: Strategy(_no_status, causes=signing.request_causes),
    "deviceclasses.resource.k8s.io": Strategy(causes=device_checks.class_causes),
    "devicetaintrules.resource.k8s.io": Strategy(_no_status, causes=device_checks.taint_rule_causes),
    "resourceslices.resource.k8s.io": Strategy(_no_status, causes=slice_checks.slice_causes),
    "resourceclaims.resource.k8s.io": Strategy(started(), device_checks.default_claim, device_checks.claim_causes),
    "resourceclaimtemplates.resource.k8s.io": Strategy(
        _no_status, device_checks.default_claim_template, device_checks.claim_template_causes
    ),
    "rolebindings.rbac.authorization.k8s.io": Strategy(default=default_binding),
    "clusterrolebindings.rbac.authorization.k8s.io": Strategy(default=default_binding),
    policies.VALIDATING: Strategy(_no_status, causes=admission_checks.policy_causes),
    policies.MUTATING: Strategy(causes=admission_checks.policy_causes),
    **dict.fromkeys(policies.BINDINGS.values(), Strategy(causes=admission_checks.binding_causes)),
    CRDS: Strategy(_no_status, complete, definition_causes),
}


def default(kind: ServedKind, obj: Object) -> None:
    """Fill in the fields that are left out: first what the tables of types declare, then what follows from other fields."""
    if kind.to_stored is None:
        set_defaults(kind.shape, obj)
    strategy_of(kind).default(obj)


@lru_cache(maxsize=1024)
def strategy_of(kind: ServedKind) -> Strategy:
    found = _TABLE.get(kind.storage)
    if found is not None:
        return found
    if not kind.has_status:
        return _PLAIN
    status = kind.shape.fields.get("status")
    return _WITHOUT_STATUS if kind.custom or status is None or status.required else _WITH_STATUS


_PART_CAUSES = {"resize": pod_updates.resize_causes, "ephemeralcontainers": pod_updates.ephemeral_causes}


def causes_of(kind: ServedKind, obj: Object, old: Object | None, subresource: str) -> Causes:
    """What is wrong with the part of an object that a write to it, or through a subresource, may change."""
    if kind.storage in group_checks.KINDS:
        return group_checks.group_causes(kind, obj, old)
    causes = _PART_CAUSES.get(subresource, strategy_of(kind).causes)
    return causes(obj, old)
