"""The ClusterRoles for users that every cluster has: cluster-admin, and admin, edit and view, which are put together from parts.

The parts are those of Kubernetes but for the right to act as a service account, which `edit` does not have here, and parts for Volcano's
kinds and for metrics, as their makers add them. Parts are labelled as Kubernetes labels them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pumice.apiserver.shapes import Object

_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", "deletecollection", "patch", "update")
_LABEL = "rbac.authorization.k8s.io/aggregate-to-"
DEFAULTS = {"kubernetes.io/bootstrapping": "rbac-defaults"}  #: label of the roles that are kept as they are here
UPDATED = "rbac.authorization.kubernetes.io/autoupdate"  #: annotation; "false" keeps a role as somebody has changed it


def _rules(verbs: tuple[str, ...], resources: dict[str, str]) -> list[Object]:
    return [
        {"apiGroups": ["" if group == "core" else group], "resources": names.split(), "verbs": list(verbs)}
        for group, names in resources.items()
    ]


_VIEWED = {
    "core": "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
    "replicationcontrollers/scale serviceaccounts services services/status bindings events limitranges namespaces/status pods/log "
    "pods/status replicationcontrollers/status resourcequotas resourcequotas/status namespaces",
    "discovery.k8s.io": "endpointslices",
    "apps": "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
    "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
    "autoscaling": "horizontalpodautoscalers horizontalpodautoscalers/status",
    "batch": "cronjobs cronjobs/status jobs jobs/status",
    "policy": "poddisruptionbudgets poddisruptionbudgets/status",
    "networking.k8s.io": "ingresses ingresses/status networkpolicies",
    "resource.k8s.io": "resourceclaims resourceclaims/status resourceclaimtemplates",
}
_EDITED = {
    "core": "pods pods/attach pods/exec pods/portforward pods/proxy configmaps events persistentvolumeclaims replicationcontrollers "
    "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    "apps": "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "policy": "poddisruptionbudgets",
    "networking.k8s.io": "ingresses networkpolicies",
    "resource.k8s.io": "resourceclaims resourceclaimtemplates",
}
_VOLCANO_EDITED = {
    "batch.volcano.sh": "jobs cronjobs",
    "scheduling.volcano.sh": "podgroups",
    "bus.volcano.sh": "commands",
    "flow.volcano.sh": "jobflows jobtemplates",
}
_VOLCANO_VIEWED = {
    "batch.volcano.sh": "jobs jobs/status cronjobs cronjobs/status",
    "scheduling.volcano.sh": "podgroups podgroups/status queues queues/status",
    "flow.volcano.sh": "jobflows jobflows/status jobtemplates jobtemplates/status",
}

#: name, the role it is a part of, rules
_PARTS: tuple[tuple[str, str, list[Object]], ...] = (
    (
        "system:aggregate-to-admin",
        "admin",
        _rules(("create",), {"authorization.k8s.io": "localsubjectaccessreviews"})
        + _rules((*_READ, *_WRITE), {"rbac.authorization.k8s.io": "roles rolebindings"}),
    ),
    (
        "system:aggregate-to-edit",
        "edit",
        _rules(_READ, {"core": "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"})
        + _rules(_WRITE, _EDITED)
        + _rules(("create",), {"core": "pods/eviction serviceaccounts/token"})
        + _rules((*_READ, *_WRITE), {"coordination.k8s.io": "leases"}),
    ),
    ("system:aggregate-to-view", "view", _rules(_READ, _VIEWED)),
    ("system:aggregated-metrics-reader", "view", _rules(_READ, {"metrics.k8s.io": "pods nodes"})),
    ("volcano:aggregate-to-edit", "edit", _rules(_WRITE, _VOLCANO_EDITED)),
    ("volcano:aggregate-to-view", "view", _rules(_READ, _VOLCANO_VIEWED)),
)
_WHOLES = {"admin": (), "edit": ("admin",), "view": ("edit",)}  #: and the roles that they are parts of


def cluster_roles() -> Iterator[Object]:
    yield _role("cluster-admin", [*_rules(("*",), {"*": "*"}), {"nonResourceURLs": ["*"], "verbs": ["*"]}])
    for name, whole, rules in _PARTS:
        yield _role(name, rules, whole)
    for name, wholes in _WHOLES.items():
        selector = {"matchLabels": {f"{_LABEL}{name}": "true"}}
        yield _role(name, _gathered(name), *wholes) | {"aggregationRule": {"clusterRoleSelectors": [selector]}}


def _gathered(name: str) -> list[Object]:
    own = [rule for _, whole, rules in _PARTS if whole == name for rule in rules]
    return own + [rule for part, wholes in _WHOLES.items() if name in wholes for rule in _gathered(part)]


def _role(name: str, rules: list[Object], *wholes: str) -> Object:
    labels: dict[str, Any] = DEFAULTS | {f"{_LABEL}{whole}": "true" for whole in wholes}
    return {"metadata": {"name": name, "labels": labels, "annotations": {UPDATED: "true"}}, "rules": rules}
