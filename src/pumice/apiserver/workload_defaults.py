"""Defaults of the kinds that make pods."""

from __future__ import annotations

from pumice.apiserver.pod_defaults import default_spec
from pumice.apiserver.shapes import Object

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
