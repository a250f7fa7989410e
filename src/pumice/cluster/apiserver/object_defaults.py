"""Defaults of the other built-in kinds."""

from __future__ import annotations

import base64
import zlib

from pumice.api.annotations import NAMESPACE_NAME
from pumice.cluster.apiserver.pod_defaults import default_spec
from pumice.cluster.apiserver.schema import Object, shape_of


def begin_namespace(namespace: Object) -> None:
    namespace["status"] = {"phase": "Active"}


def default_namespace(namespace: Object) -> None:
    metadata = namespace["metadata"]
    if "deletionTimestamp" not in metadata:
        namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    if metadata.get("name"):
        metadata.setdefault("labels", {})[NAMESPACE_NAME] = metadata["name"]


def default_node(node: Object) -> None:
    node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    status["nodeInfo"] = dict.fromkeys(shape_of("core.v1.NodeSystemInfo").required, "") | (status.get("nodeInfo") or {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})


def default_service(service: Object) -> None:
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
    if spec["type"] == "ExternalName":
        return
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if not spec.get("clusterIP"):
        spec["clusterIP"] = _address(service["metadata"].get("uid", ""))
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
        for number, port in enumerate(spec.get("ports", ())):
            port["nodePort"] = port.get("nodePort") or _node_port(service["metadata"].get("uid", ""), number)
    service.setdefault("status", {"loadBalancer": {}})


def _address(uid: str) -> str:
    """An address in 10.96.0.0/12 drawn from the uid: nothing routes to it, it has only to look like one."""
    number = zlib.crc32(uid.encode()) % (2**20 - 512) + 256
    return f"10.{96 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def _node_port(uid: str, number: int) -> int:
    """A port of 30000 to 32767 drawn from the uid; two services may have the same, since nobody listens."""
    return 30000 + (zlib.crc32(uid.encode()) + number) % 2768


def default_secret(secret: Object) -> None:
    secret.setdefault("type", "Opaque")
    plain = secret.pop("stringData", None)
    if plain:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def begin_volume(volume: Object) -> None:
    volume["status"] = {"phase": "Pending"}


def default_volume(volume: Object) -> None:
    spec = volume.setdefault("spec", {})
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")


def begin_claim(claim: Object) -> None:
    claim["status"] = {"phase": "Pending"}


def default_claim(claim: Object) -> None:
    claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")


def default_limit_range(limits: Object) -> None:
    """A container's maximum is its default limit, its default limit its default request."""
    for limit in (limits.get("spec") or {}).get("limits", ()):
        if limit.get("type") != "Container":
            continue
        default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
        if default:
            limit["default"] = default
        request = {**(limit.get("min") or {}), **default, **(limit.get("defaultRequest") or {})}
        if request:
            limit["defaultRequest"] = request


def default_priority_class(priority_class: Object) -> None:
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")


def default_storage_class(storage_class: Object) -> None:
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")


# Defaults of the kinds that make pods.

_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "controller-uid")
_JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")


def _default_template(spec: Object) -> Object:
    template: Object = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_spec(template.setdefault("spec", {}))
    return template


def default_controller(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    template = _default_template(spec)
    spec.setdefault("selector", dict(template["metadata"].get("labels") or {}))
    obj["metadata"].setdefault("labels", dict(template["metadata"].get("labels") or {}))
    obj.setdefault("status", {"replicas": 0})


def default_replica_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _default_template(spec)
    obj.setdefault("status", {"replicas": 0})


def default_deployment(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    _default_template(spec)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    obj.setdefault("status", {})


def default_stateful_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("serviceName", "")
    _default_template(spec)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        strategy.setdefault("rollingUpdate", {}).setdefault("partition", 0)
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    obj.setdefault("status", {"replicas": 0, "availableReplicas": 0})


def default_daemon_set(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("revisionHistoryLimit", 10)
    _default_template(spec)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    obj.setdefault("status", {"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0})


def begin_job(obj: Object) -> None:
    """A job that does not choose its own selector gets one by its uid, and its pods the labels that belong to it."""
    obj.pop("status", None)
    spec, metadata = obj.setdefault("spec", {}), obj["metadata"]
    if spec.get("manualSelector"):
        return
    template_metadata = spec.setdefault("template", {}).setdefault("metadata", {})
    labels = template_metadata.setdefault("labels", {})
    labels |= dict.fromkeys(_JOB_LABELS, metadata["uid"]) | dict.fromkeys(_JOB_NAMES, metadata.get("name", ""))
    spec.setdefault("selector", {}).setdefault("matchLabels", {})[_JOB_LABELS[0]] = metadata["uid"]


def default_job(obj: Object) -> None:
    _default_job_spec(obj.setdefault("spec", {}))
    obj.setdefault("status", {})


def _default_job_spec(spec: Object) -> None:
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    if "backoffLimitPerIndex" not in spec:
        spec.setdefault("backoffLimit", 6)
    else:
        spec.setdefault("backoffLimit", 2**31 - 1)
    _default_template(spec)


def default_cron_job(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    _default_template(spec.setdefault("jobTemplate", {}).setdefault("spec", {}))
    obj.setdefault("status", {})
