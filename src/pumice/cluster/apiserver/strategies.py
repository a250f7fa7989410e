"""What the API server itself does with an object of a kind when it is written: begin, default, check.

`begin` sets what a new object starts with, whatever its maker says; `default` fills in what was left out; `causes` names what is wrong.
All three are given an object of the right shape that nobody else holds. Kinds without an entry in the table need nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pumice.cluster.apiserver import object_checks, object_defaults, pod_defaults, pod_updates
from pumice.cluster.apiserver.crd import CRDS, complete, definition_causes
from pumice.cluster.apiserver.kinds import Kind
from pumice.cluster.apiserver.metadata import clone
from pumice.cluster.apiserver.schema import Object

Change = Callable[[Object], None]
Causes = list[tuple[str, str]]
Check = Callable[[Object, Object | None], Causes]


def _nothing(obj: Object) -> None:
    pass


def _no_status(obj: Object) -> None:
    obj.pop("status", None)


def _no_causes(obj: Object, old: Object | None) -> Causes:
    return []


class Strategy(NamedTuple):
    """The three steps of one kind."""

    begin: Change = _nothing
    default: Change = _nothing
    causes: Check = _no_causes


_PLAIN = Strategy()
_WITH_STATUS = Strategy(begin=_no_status)

_TABLE = {
    "pods": Strategy(pod_defaults.begin, pod_defaults.default_pod, pod_updates.causes),
    "nodes": Strategy(default=object_defaults.default_node, causes=object_checks.node_causes),
    "namespaces": Strategy(object_defaults.begin_namespace, object_defaults.default_namespace),
    "services": Strategy(_no_status, object_defaults.default_service, object_checks.service_causes),
    "secrets": Strategy(default=object_defaults.default_secret, causes=object_checks.secret_causes),
    "configmaps": Strategy(causes=object_checks.config_map_causes),
    "persistentvolumes": Strategy(object_defaults.begin_volume, object_defaults.default_volume),
    "persistentvolumeclaims": Strategy(object_defaults.begin_claim, object_defaults.default_claim),
    "resourcequotas": Strategy(_no_status, causes=object_checks.quota_causes),
    "limitranges": Strategy(default=object_defaults.default_limit_range, causes=object_checks.limit_range_causes),
    "replicationcontrollers": Strategy(_no_status, object_defaults.default_controller, object_checks.workload_causes),
    "deployments.apps": Strategy(_no_status, object_defaults.default_deployment, object_checks.workload_causes),
    "replicasets.apps": Strategy(_no_status, object_defaults.default_replica_set, object_checks.workload_causes),
    "statefulsets.apps": Strategy(_no_status, object_defaults.default_stateful_set, object_checks.workload_causes),
    "daemonsets.apps": Strategy(_no_status, object_defaults.default_daemon_set, object_checks.workload_causes),
    "jobs.batch": Strategy(object_defaults.begin_job, object_defaults.default_job, object_checks.job_causes),
    "cronjobs.batch": Strategy(_no_status, object_defaults.default_cron_job, object_checks.cron_job_causes),
    "poddisruptionbudgets.policy": Strategy(_no_status, causes=object_checks.budget_causes),
    "priorityclasses.scheduling.k8s.io": Strategy(
        default=object_defaults.default_priority_class, causes=object_checks.priority_class_causes
    ),
    "storageclasses.storage.k8s.io": Strategy(default=object_defaults.default_storage_class),
    "leases.coordination.k8s.io": Strategy(causes=object_checks.lease_causes),
    "roles.rbac.authorization.k8s.io": Strategy(causes=object_checks.role_causes),
    "clusterroles.rbac.authorization.k8s.io": Strategy(causes=object_checks.role_causes),
    "rolebindings.rbac.authorization.k8s.io": Strategy(default=object_checks.default_binding, causes=object_checks.binding_causes),
    "clusterrolebindings.rbac.authorization.k8s.io": Strategy(default=object_checks.default_binding, causes=object_checks.binding_causes),
    CRDS: Strategy(_no_status, complete, definition_causes),
}


def strategy_of(kind: Kind) -> Strategy:
    found = _TABLE.get(kind.storage)
    if found is not None:
        return found
    return _WITH_STATUS if kind.has_status else _PLAIN


# What a write through a subresource may change: its part of the object, and nothing else.
#
# `kept` makes the object that is written: the part from the new state, all else from the stored one, in copies, since what is stored is
# nobody's to change. `causes_of` tells what is wrong with the part. A write to the object itself changes all but the status, and of a
# namespace not what holds it.

_RESIZED = ("resources", "resizePolicy")
_PART_CAUSES = {"resize": pod_updates.resize_causes, "ephemeralcontainers": pod_updates.ephemeral_causes}


def kept(kind: Kind, obj: Object, old: Object, subresource: str) -> Object:
    """The object to write. `obj` is the caller's own and may be changed."""
    match subresource:
        case "status":
            return _with_status(kind, obj, old)
        case "":
            if kind.has_status:
                _keep_field(obj, old, "status")
            if kind.resource == "namespaces":
                _keep_field(obj.setdefault("spec", {}), old.get("spec") or {}, "finalizers")
            return obj
    changed: Object = clone(old)
    spec, wanted = changed.setdefault("spec", {}), obj.get("spec") or {}
    match subresource:
        case "finalize":
            _keep_field(spec, wanted, "finalizers")
        case "ephemeralcontainers":
            _keep_field(spec, wanted, "ephemeralContainers")
        case "resize":
            _keep_field(spec, wanted, "resources")
            for field in ("containers", "initContainers"):
                named = {container.get("name"): container for container in wanted.get(field) or ()}
                for container in spec.get(field) or ():
                    for part in _RESIZED:
                        _keep_field(container, named.get(container["name"], container), part)
    if "managedFields" in obj["metadata"]:
        changed["metadata"]["managedFields"] = obj["metadata"]["managedFields"]
    return changed


def _with_status(kind: Kind, obj: Object, old: Object) -> Object:
    """The status; of built-in kinds labels, annotations and finalizers too."""
    for field in {*obj, *old} - {"status", "metadata"}:
        _keep_field(obj, old, field)
    if kind.custom:
        managed = obj["metadata"].get("managedFields")
        obj["metadata"] = clone(old["metadata"]) | ({} if managed is None else {"managedFields": managed})
    else:
        _keep_field(obj["metadata"], old["metadata"], "ownerReferences")
    return obj


def causes_of(kind: Kind, obj: Object, old: Object | None, subresource: str) -> Causes:
    causes = _PART_CAUSES.get(subresource, strategy_of(kind).causes)
    return causes(obj, old)


def _keep_field(obj: Object, old: Object, field: str) -> None:
    if field in old:
        obj[field] = clone(old[field])
    else:
        obj.pop(field, None)
