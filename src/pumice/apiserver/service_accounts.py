"""A pod runs as a service account, and finds its token where programs look for it.

A namespace without the account `default` has nobody who makes it: its pods run without a token. Any other account must be there.
"""

from __future__ import annotations

from pumice.apiserver.admission import Refusal, Review, Rule, World
from pumice.apiserver.metadata import name_suffix
from pumice.apiserver.shapes import Object

ROOT_CERTIFICATE = "kube-root-ca.crt"  #: the ConfigMap that says whom to trust
_DEFAULT, _MOUNTED_AT, _VOLUME = "default", "/var/run/secrets/kubernetes.io/serviceaccount", "kube-api-access-"
_SOURCES = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": ROOT_CERTIFICATE, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
]
_PROJECTED = {"defaultMode": 420, "sources": _SOURCES}  #: shared by all pods: what is stored is never changed


def service_account_rules() -> list[Rule]:
    return [Rule(("pods",), ("CREATE",), mutate=_with_account, validate=_account_exists)]


def _account_of(review: Review, world: World) -> Object | None:
    return world.find("serviceaccounts", review.namespace, review.obj["spec"].get("serviceAccountName", _DEFAULT))


def _with_account(review: Review, world: World) -> Object:
    spec = review.obj["spec"]
    spec.setdefault("serviceAccountName", _DEFAULT)
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    account = _account_of(review, world)
    if account is None:
        return review.obj
    if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
        _mount_token(review.obj)
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    return review.obj


def _mount_token(pod: Object) -> None:
    spec = pod["spec"]
    volumes = spec.get("volumes") or []
    there = [volume["name"] for volume in volumes if str(volume.get("name", "")).startswith(_VOLUME)]
    name = there[0] if there else _VOLUME + name_suffix(pod["metadata"]["uid"])
    used = False
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        mounts = container.get("volumeMounts") or []
        if not any(mount.get("mountPath") == _MOUNTED_AT for mount in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": _MOUNTED_AT}]
            used = True
    if used and not there:
        spec["volumes"] = [*volumes, {"name": name, "projected": _PROJECTED}]


def _account_exists(review: Review, world: World) -> Refusal | None:
    name = review.obj["spec"]["serviceAccountName"]
    if name == _DEFAULT or _account_of(review, world) is not None:
        return None
    return Refusal(f'error looking up service account {review.namespace}/{name}: serviceaccount "{name}" not found')
