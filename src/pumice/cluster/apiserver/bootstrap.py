"""The objects of a new cluster: namespaces, the API server's Service, PriorityClasses, the usual roles, Volcano's custom kinds.

The ClusterRoles for users that every cluster has: cluster-admin, and admin, edit and view, which are aggregated from parts.
The parts are those of Kubernetes, except the right to impersonate service accounts, which `edit` does not have here. Further parts are
for Volcano's kinds and for metrics, as Volcano and metrics-server add them. Parts are labelled as in Kubernetes.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent
from typing import Any

import yaml

from pumice.api import Object, rfc3339
from pumice.api.defaults import SYSTEM_CLASSES
from pumice.cluster.apiserver.patches.patch import PatchRequest
from pumice.cluster.apiserver.service_allocator import CIDR
from pumice.cluster.apiserver.store import Store

_VERBS = {"read": ["get", "list", "watch"], "write": ["create", "delete", "deletecollection", "patch", "update"]}
_LABEL = "rbac.authorization.k8s.io/aggregate-to-"
DEFAULTS = {"kubernetes.io/bootstrapping": "rbac-defaults"}  #: the label of roles that this module has made
_INCLUDED = re.compile(r"^( *)# include (\w+)\n", re.MULTILINE)  #: in a definition: the name of a part in crds/parts
UPDATED = "rbac.authorization.kubernetes.io/autoupdate"  #: annotation; "false" protects a role that a user has changed


SCHEDULER = "system:kube-scheduler"
_SCHEDULING = "scheduling.k8s.io"
_WHOLES = {"admin": (), "edit": ("admin",), "view": ("edit",)}  #: aggregated roles, and the roles that each is a part of


_Part = tuple[str, list[str], list[Object]]


def cluster_roles(store: Store) -> Iterator[Object]:
    parts = list(_parts(store))
    everything: list[Object] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
    yield _role("cluster-admin", everything)
    for name, whole, rules in parts:
        yield _role(name, rules, *whole)
    for name, wholes in _WHOLES.items():
        selector = {"matchLabels": {f"{_LABEL}{name}": "true"}}
        yield _role(name, _gathered(name, parts), *wholes) | {"aggregationRule": {"clusterRoleSelectors": [selector]}}


def _parts(store: Store) -> Iterator[_Part]:
    """The roles in `roles.txt`: name, the aggregated role that each is a part of, if it is of one, and rules."""
    text = (Path(__file__).parent / "roles.txt").read_text().partition("\n\n")[2]
    for role in text.replace("\n    ", " ").split("\n\n"):
        heading, *lines = role.splitlines()
        name, *whole = heading.split()
        yield name, whole, [rule for line in lines if (rule := _rule(store, *line.split()))["resources"]]


def _rule(store: Store, verbs: str, group: str, *resources: str) -> Object:
    served = [name for name in resources if group != _SCHEDULING or store.kinds.known(f"{name.partition('/')[0]}.{group}")]
    named = [verb for word in verbs.split(",") for verb in _VERBS.get(word, [word])]
    return {"apiGroups": ["" if group == "core" else group], "resources": served, "verbs": named}


def _gathered(name: str, parts: list[_Part]) -> list[Object]:
    """The rules of an aggregated role, as its controller would gather them."""
    found = {part: rules for part, whole, rules in parts if name in whole}
    found |= {part: _gathered(part, parts) for part, wholes in _WHOLES.items() if name in wholes}
    rules: list[Object] = []
    for part in sorted(found):
        rules += [rule for rule in found[part] if rule not in rules]
    return rules


def _role(name: str, rules: list[Object], *wholes: str) -> Object:
    labels: dict[str, Any] = DEFAULTS | {f"{_LABEL}{whole}": "true" for whole in wholes}
    return {"metadata": {"name": name, "labels": labels, "annotations": {UPDATED: "true"}}, "rules": rules}


_RBAC = "rbac.authorization.k8s.io"
_PRIORITY_TEXTS = {
    "system-cluster-critical": "For system pods that must run in the cluster, on whichever node.",
    "system-node-critical": "For system pods that must not be moved from their node.",
}


_CIDRS = "servicecidrs.networking.k8s.io"
_OWN_SERVICE = {
    "metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
    "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "targetPort": 6443}]},
}


def bootstrap(store: Store) -> None:
    """Create the objects of a new cluster that the store does not have yet."""
    for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
        _ensure(store, "namespaces", {"metadata": {"name": name}})
    _ensure(store, "services", _OWN_SERVICE, "default")
    store.services.note_all()
    if store.find(_CIDRS, "", "kubernetes") is None:
        store.create(_CIDRS, {"metadata": {"name": "kubernetes"}, "spec": {"cidrs": [CIDR]}})
        ready = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes default Service CIDR is ready"}
        status = {"conditions": [ready | {"lastTransitionTime": rfc3339(store.now())}]}
        store.patch(_CIDRS, "kubernetes", PatchRequest("merge", {"status": status}), subresource="status")
    for name, value in SYSTEM_CLASSES.items():
        priority = {"metadata": {"name": name}, "value": value, "description": _PRIORITY_TEXTS[name]}
        _ensure(store, "priorityclasses.scheduling.k8s.io", priority)
    for role in cluster_roles(store):
        _ensure_role(store, role)
    for name, kind, user in (("cluster-admin", "Group", "system:masters"), (SCHEDULER, "User", SCHEDULER)):
        subject, reference = {"kind": kind, "name": user, "apiGroup": _RBAC}, {"kind": "ClusterRole", "name": name, "apiGroup": _RBAC}
        _ensure(store, f"clusterrolebindings.{_RBAC}", {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
    for definition in volcano_definitions():
        _ensure(store, "customresourcedefinitions.apiextensions.k8s.io", definition)


def own_endpoints(store: Store, host: str, port: int) -> None:
    """Write where this server listens as the endpoints of its service."""
    address, ports = {"ip": host}, [{"name": "https", "port": port, "protocol": "TCP"}]
    labels = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    whole = {"metadata": {"name": "kubernetes", "labels": labels}, "subsets": [{"addresses": [address], "ports": ports}]}
    listed = [{"addresses": [host], "conditions": {"ready": True}}]
    part = {"metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}}, "addressType": "IPv4"}
    for resource, obj in (("endpoints", whole), ("endpointslices.discovery.k8s.io", part | {"endpoints": listed, "ports": ports})):
        if store.find(resource, "default", "kubernetes") is None:
            store.create(resource, obj, "default")
        else:
            store.patch(resource, "kubernetes", PatchRequest("merge", obj), "default")


def _ensure_role(store: Store, role: Object) -> None:
    """Create a role, or bring the role of a cluster that was made otherwise up to date, unless its annotation forbids that."""
    name, resource = role["metadata"]["name"], f"clusterroles.{_RBAC}"
    found = store.find(resource, "", name)
    if found is None:
        store.create(resource, role)
        return
    is_ours = DEFAULTS.items() <= found["metadata"].get("labels", {}).items()
    missing = [rule for rule in role["rules"] if rule not in (found.get("rules") or ())]
    if found["metadata"].get("annotations", {}).get(UPDATED) != "false" and not (is_ours and not missing):
        store.update(resource, role | {"rules": [*found["rules"], *missing]} if is_ours else role)


def volcano_definitions() -> list[Object]:
    """The CustomResourceDefinitions of Volcano's kinds, which suit this server and any other API server."""
    return [yaml.load(text, yaml.CSafeLoader) for _, text in sorted(definition_texts().items())]


def definition_texts() -> dict[str, str]:
    """The files of the definitions by name, with the parts that several of them share in their places."""
    folder = Path(__file__).parent / "scheme" / "crds"
    parts = {entry.stem: entry.read_text() for entry in (folder / "parts").iterdir()}

    def whole(text: str) -> str:
        return _INCLUDED.sub(lambda found: indent(whole(parts[found[2]]), found[1]), text)

    return {entry.name: whole(entry.read_text()) for entry in folder.glob("*.yaml")}


def _ensure(store: Store, resource: str, obj: Object, namespace: str = "") -> None:
    if store.find(resource, namespace, obj["metadata"]["name"]) is None:
        store.create(resource, obj, namespace)
