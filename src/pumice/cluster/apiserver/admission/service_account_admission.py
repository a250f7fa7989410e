"""A pod runs as a service account, and finds the account's token at the path where programs look for it.

A namespace lacks the account `default` if no controller creates it: then pods run without a token. Any other account must exist.
"""

from msgspec.json import encode

from pumice.api import Object
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule
from pumice.cluster.apiserver.metadata import name_suffix

ROOT_CERTIFICATE = "kube-root-ca.crt"  #: the ConfigMap with the certificate that pods trust
_DEFAULT, _MOUNTED_AT, _VOLUME = "default", "/var/run/secrets/kubernetes.io/serviceaccount", "kube-api-access-"
_SOURCES = [
    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
    {"configMap": {"name": ROOT_CERTIFICATE, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
]
_PROJECTED = {"defaultMode": 420, "sources": _SOURCES}  #: shared by all pods, as stored objects are never changed


def service_account_rules() -> list[AdmissionRule]:
    return [AdmissionRule(("pods",), ("CREATE",), mutate=_with_account, validate=_account_exists)]


def _account_of(review: AdmissionAttributes, lister: AdmissionLister) -> Object | None:
    return lister.find("serviceaccounts", review.namespace, review.obj["spec"].get("serviceAccountName", _DEFAULT))


def _with_account(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    spec = review.obj["spec"]
    spec.setdefault("serviceAccountName", _DEFAULT)
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    account = _account_of(review, lister)
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


def impersonal(pod: Object) -> bytes:
    """The JSON of a pod's spec, with a sign for the name of the volume of its token, which is the pod's own: no JSON has it in it."""
    return encode(pod["spec"]).replace((_VOLUME + name_suffix(pod["metadata"]["uid"])).encode(), b"\0")


def _account_exists(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    name = review.obj["spec"]["serviceAccountName"]
    if name == _DEFAULT or _account_of(review, lister) is not None:
        return None
    return AdmissionRefusal(f'error looking up service account {review.namespace}/{name}: serviceaccount "{name}" not found')
