"""What a cluster holds before anybody writes to it: namespaces, its own service, priorities, the usual roles, Volcano's custom kinds."""

from __future__ import annotations

from importlib.resources import files

import yaml

from pumice.apiserver.bootstrap_roles import DEFAULTS, UPDATED, cluster_roles
from pumice.apiserver.shapes import Object
from pumice.apiserver.store import Store

_RBAC = "rbac.authorization.k8s.io"
_PRIORITIES = (
    ("system-cluster-critical", 2_000_000_000, "For system pods that must run in the cluster, on whichever node."),
    ("system-node-critical", 2_000_001_000, "For system pods that must not be moved from their node."),
)


_OWN_SERVICE = {
    "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
    "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
}


def bootstrap(store: Store) -> None:
    """Only what is not there yet."""
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        _ensure(store, "namespaces", {"metadata": {"name": name}})
    _ensure(store, "services", _OWN_SERVICE, "default")
    for name, value, text in _PRIORITIES:
        _ensure(store, "priorityclasses.scheduling.k8s.io", {"metadata": {"name": name}, "value": value, "description": text})
    for role in cluster_roles():
        _ensure_role(store, role)
    subject = {"kind": "Group", "name": "system:masters", "apiGroup": _RBAC}
    reference = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": _RBAC}
    _ensure(store, f"clusterrolebindings.{_RBAC}", {"metadata": {"name": "cluster-admin"}, "roleRef": reference, "subjects": [subject]})
    for definition in volcano_definitions():
        _ensure(store, "customresourcedefinitions.apiextensions.k8s.io", definition)


def _ensure_role(store: Store, role: Object) -> None:
    """A role of a cluster that was made by an older version is brought up to date, unless somebody keeps it as it is."""
    name, resource = role["metadata"]["name"], f"clusterroles.{_RBAC}"
    found = store.find(resource, "", name)
    if found is None:
        store.create(resource, role)
    elif (
        found["metadata"].get("annotations", {}).get(UPDATED) != "false"
        and not DEFAULTS.items() <= found["metadata"].get("labels", {}).items()
    ):
        store.update(resource, role)


def volcano_definitions() -> list[Object]:
    """The CustomResourceDefinitions of Volcano's kinds, fit for this server and for any other."""
    folder = files(__package__) / "crds"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".yaml"))
    return [yaml.load((folder / name).read_text(), yaml.CSafeLoader) for name in names]


def _ensure(store: Store, resource: str, obj: Object, namespace: str = "") -> None:
    if store.find(resource, namespace, obj["metadata"]["name"]) is None:
        store.create(resource, obj, namespace)
