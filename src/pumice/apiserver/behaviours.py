"""What the API server itself does with an object of a kind when it is written: begin, default, check.

`begin` sets what a new object starts with, whatever its maker says; `default` fills in what was left out; `causes` names what is wrong.
All three are given an object of the right shape that nobody else holds. Kinds without an entry in the table need nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pumice.apiserver import data_checks, object_checks, object_defaults, pod_defaults, pod_updates, rbac_checks, workload_defaults
from pumice.apiserver.custom_kinds import CRDS, complete, definition_causes
from pumice.apiserver.kinds import Kind
from pumice.apiserver.shapes import Object

Change = Callable[[Object], None]
Causes = Callable[[Object, Object | None], list[tuple[str, str]]]


def _nothing(obj: Object) -> None:
    pass


def _no_status(obj: Object) -> None:
    obj.pop("status", None)


def _no_causes(obj: Object, old: Object | None) -> list[tuple[str, str]]:
    return []


class Behaviour(NamedTuple):
    """The three steps of one kind."""

    begin: Change = _nothing
    default: Change = _nothing
    causes: Causes = _no_causes


_PLAIN = Behaviour()
_WITH_STATUS = Behaviour(begin=_no_status)

_TABLE = {
    "pods": Behaviour(pod_defaults.begin, pod_defaults.default_pod, pod_updates.causes),
    "nodes": Behaviour(default=object_defaults.default_node, causes=object_checks.node_causes),
    "namespaces": Behaviour(object_defaults.begin_namespace, object_defaults.default_namespace),
    "services": Behaviour(_no_status, object_defaults.default_service, object_checks.service_causes),
    "secrets": Behaviour(default=object_defaults.default_secret, causes=data_checks.secret_causes),
    "configmaps": Behaviour(causes=data_checks.config_map_causes),
    "persistentvolumes": Behaviour(object_defaults.begin_volume, object_defaults.default_volume),
    "persistentvolumeclaims": Behaviour(object_defaults.begin_claim, object_defaults.default_claim),
    "resourcequotas": Behaviour(_no_status, causes=object_checks.quota_causes),
    "limitranges": Behaviour(default=object_defaults.default_limit_range, causes=object_checks.limit_range_causes),
    "replicationcontrollers": Behaviour(_no_status, workload_defaults.default_controller, object_checks.workload_causes),
    "deployments.apps": Behaviour(_no_status, workload_defaults.default_deployment, object_checks.workload_causes),
    "replicasets.apps": Behaviour(_no_status, workload_defaults.default_replica_set, object_checks.workload_causes),
    "statefulsets.apps": Behaviour(_no_status, workload_defaults.default_stateful_set, object_checks.workload_causes),
    "daemonsets.apps": Behaviour(_no_status, workload_defaults.default_daemon_set, object_checks.workload_causes),
    "jobs.batch": Behaviour(workload_defaults.begin_job, workload_defaults.default_job, object_checks.job_causes),
    "cronjobs.batch": Behaviour(_no_status, workload_defaults.default_cron_job, object_checks.cron_job_causes),
    "poddisruptionbudgets.policy": Behaviour(_no_status, causes=object_checks.budget_causes),
    "priorityclasses.scheduling.k8s.io": Behaviour(
        default=object_defaults.default_priority_class, causes=object_checks.priority_class_causes
    ),
    "storageclasses.storage.k8s.io": Behaviour(default=object_defaults.default_storage_class),
    "leases.coordination.k8s.io": Behaviour(causes=object_checks.lease_causes),
    "roles.rbac.authorization.k8s.io": Behaviour(causes=rbac_checks.role_causes),
    "clusterroles.rbac.authorization.k8s.io": Behaviour(causes=rbac_checks.role_causes),
    "rolebindings.rbac.authorization.k8s.io": Behaviour(default=rbac_checks.default_binding, causes=rbac_checks.binding_causes),
    "clusterrolebindings.rbac.authorization.k8s.io": Behaviour(default=rbac_checks.default_binding, causes=rbac_checks.binding_causes),
    CRDS: Behaviour(_no_status, complete, definition_causes),
}


def behaviour_of(kind: Kind) -> Behaviour:
    found = _TABLE.get(kind.storage)
    if found is not None:
        return found
    return _WITH_STATUS if kind.has_status else _PLAIN
