"""The admission that every API server has: namespace lifecycle, service account, limit ranges, priority, PodGroups, tolerations, quota.

Only the parts are here that matter to scheduling. Mutations come first, in this order; the quota is checked last.
"""

from __future__ import annotations

from typing import Any

from pumice.api.annotations import GROUP_PROTECTION
from pumice.cluster.apiserver import admission
from pumice.cluster.apiserver.admission import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule, limit_range_rules
from pumice.cluster.apiserver.crd import CRDS, with_settled_names
from pumice.cluster.apiserver.group_checks import GROUPS
from pumice.cluster.apiserver.kinds import ServedKind
from pumice.cluster.apiserver.metadata import name_suffix
from pumice.cluster.apiserver.policies import VALIDATING, with_type_checking
from pumice.cluster.apiserver.rbac import escalation_rules
from pumice.cluster.apiserver.schema import Object
from pumice.cluster.apiserver.signing import signing_rules

# The priority of a pod, and of Kubernetes' own groups of pods, is that of its PriorityClass. Who states another priority is refused.

CLASSES = "priorityclasses.scheduling.k8s.io"
_COMPUTED = ("priority", "preemptionPolicy")
_GROUPS = {"PodGroup": "pod group", "CompositePodGroup": "composite pod group"}  #: by kind: what texts call it


def priority_rules() -> list[AdmissionRule]:
    return [
        AdmissionRule(("pods", *GROUPS), ("CREATE",), mutate=_with_priority, validate=_says_its_class),
        AdmissionRule(("pods",), ("UPDATE",), mutate=_keeping_priority),
        AdmissionRule((CLASSES,), ("CREATE", "UPDATE"), validate=_one_default),
    ]


def _class_of(pod: Object, lister: AdmissionLister) -> Object | None:
    """The PriorityClass that a pod or group names, else the global default. None if it does not exist."""
    name = pod["spec"].get("priorityClassName")
    if name:
        return lister.find(CLASSES, "", name)
    return min(_defaults(lister), key=lambda one: int(one["value"]), default=None)


def _defaults(lister: AdmissionLister) -> list[Object]:
    return [one for one in lister.all(CLASSES) if one.get("globalDefault")]


def _computed(found: Object | None, kind: ServedKind) -> dict[str, Any]:
    known = found or {}
    computed = {"priority": known.get("value", 0), "preemptionPolicy": known.get("preemptionPolicy", "PreemptLowerPriority")}
    if kind.kind in _GROUPS and "PodGroupPreemptionPolicy" not in kind.gates:
        del computed["preemptionPolicy"]
    return computed


def _with_priority(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    spec, found = review.obj["spec"], _class_of(review.obj, lister)
    if found is not None:
        spec["priorityClassName"] = found["metadata"]["name"]
    for field, value in _computed(found, review.kind).items():
        spec.setdefault(field, value)
    return review.obj


def _says_its_class(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    spec, found = review.obj["spec"], _class_of(review.obj, lister)
    if found is None and spec.get("priorityClassName"):
        return AdmissionRefusal(f"no PriorityClass with name {spec['priorityClassName']} was found")
    for field, value in _computed(found, review.kind).items():
        if spec[field] != value and review.kind.kind in _GROUPS:
            subject, what = _GROUPS[review.kind.kind], "priority" if field == "priority" else "preemption policy"
            given = f"{what} set in the {subject} ({spec[field]}) must match the {what} computed ({value})"
            return AdmissionRefusal(f"{given} based on the priority class set in the spec")
        if spec[field] != value:
            what = "integer value of priority" if field == "priority" else "string value of PreemptionPolicy"
            text = f"the {what} ({spec[field]}) must not be provided in pod spec; "
            return AdmissionRefusal(f"{text}priority admission controller computed {value} from the given PriorityClass name")
    return None


def _keeping_priority(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The pod of an update, with its priority kept if the update leaves it out."""
    assert review.old is not None
    for field in _COMPUTED:
        if field in review.old["spec"]:
            review.obj["spec"].setdefault(field, review.old["spec"][field])
    return review.obj


def _protected(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The new PodGroup with the finalizer that keeps it while its pods run."""
    finalizers = review.obj["metadata"].get("finalizers") or []
    if GROUP_PROTECTION not in finalizers:
        review.obj["metadata"]["finalizers"] = [*finalizers, GROUP_PROTECTION]
    return review.obj


def _one_default(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    others = [one["metadata"]["name"] for one in _defaults(lister) if one["metadata"]["name"] != review.name]
    if not review.obj.get("globalDefault") or not others:
        return None
    return AdmissionRefusal(f"PriorityClass {others[0]} is already marked as default. Only one default can exist")


# A pod runs as a service account, and finds the account's token at the path where programs look for it.
#
# A namespace lacks the account `default` if no controller creates it: then pods run without a token. Any other account must exist.

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


def _account_exists(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    name = review.obj["spec"]["serviceAccountName"]
    if name == _DEFAULT or _account_of(review, lister) is not None:
        return None
    return AdmissionRefusal(f'error looking up service account {review.namespace}/{name}: serviceaccount "{name}" not found')


# A pod that names a RuntimeClass gets its overhead, and runs only on the nodes that the class is for.

_RUNTIME_CLASSES = "runtimeclasses.node.k8s.io"


def runtime_class_rules() -> list[AdmissionRule]:
    return [AdmissionRule(("pods",), ("CREATE",), mutate=_with_runtime_class, validate=_runtime_class_fits)]


def _runtime_class(review: AdmissionAttributes, lister: AdmissionLister) -> Object | None:
    name = review.obj["spec"].get("runtimeClassName")
    return lister.find(_RUNTIME_CLASSES, "", name) if name else None


def _with_runtime_class(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    spec = review.obj["spec"]
    found = _runtime_class(review, lister) if "runtimeClassName" in spec else None
    if found is not None:
        overhead, scheduling = (found.get("overhead") or {}).get("podFixed"), found.get("scheduling") or {}
        if overhead:
            spec.setdefault("overhead", dict(overhead))
        if scheduling.get("nodeSelector"):
            spec["nodeSelector"] = {**scheduling["nodeSelector"], **(spec.get("nodeSelector") or {})}
        if scheduling.get("tolerations"):
            own = spec.get("tolerations") or []
            spec["tolerations"] = [*own, *(one for one in scheduling["tolerations"] if one not in own)]
    return review.obj


def _runtime_class_fits(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    spec = review.obj["spec"]
    if "runtimeClassName" not in spec and "overhead" not in spec:
        return None
    found = _runtime_class(review, lister)
    name = spec.get("runtimeClassName")
    if name and found is None:
        return AdmissionRefusal(f'pod rejected: RuntimeClass "{name}" not found')
    wanted = ((found or {}).get("overhead") or {}).get("podFixed") or {}
    if (spec.get("overhead") or {}) != wanted:
        return AdmissionRefusal("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
    selector = ((found or {}).get("scheduling") or {}).get("nodeSelector") or {}
    if any((spec.get("nodeSelector") or {}).get(key) != value for key, value in selector.items()):
        return AdmissionRefusal("pod rejected: conflict: RuntimeClass.scheduling.nodeSelector and pod's nodeSelector differ")
    return None


_PERMANENT = ("default", "kube-system", "kube-public", "kube-node-lease")
_TOLERATED_S = 300


def own_rules() -> list[AdmissionRule]:
    return [
        AdmissionRule(("*",), ("CREATE",), validate=_namespace_lives),
        AdmissionRule(("namespaces",), ("DELETE",), validate=_namespace_may_go),
        AdmissionRule((CRDS,), ("CREATE", "UPDATE"), mutate=with_settled_names),
        AdmissionRule((VALIDATING,), ("CREATE", "UPDATE"), mutate=with_type_checking),
        *service_account_rules(),
        *signing_rules(),
        *runtime_class_rules(),
        *limit_range_rules(),
        *priority_rules(),
        AdmissionRule((GROUPS[0],), ("CREATE",), mutate=_protected),
        AdmissionRule(("pods",), ("CREATE", "UPDATE"), mutate=_with_tolerations),
        *escalation_rules(),
        AdmissionRule(("*",), ("CREATE",), validate=admission.within_quota),
        AdmissionRule(admission.GROWING, ("UPDATE",), validate=admission.within_quota),
    ]


def _namespace_lives(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    if not review.namespace:
        return None
    namespace = lister.find("namespaces", "", review.namespace)
    if namespace is not None and namespace["metadata"].get("deletionTimestamp"):
        return AdmissionRefusal(f"unable to create new content in namespace {review.namespace} because it is being terminated")
    return None


def _namespace_may_go(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    return AdmissionRefusal("this namespace may not be deleted") if review.name in _PERMANENT[:2] else None


def _with_tolerations(review: AdmissionAttributes, lister: AdmissionLister) -> Object:
    """The pod with tolerations that let it stay five minutes on a node that is not ready or not reachable."""
    spec = review.obj["spec"]
    tolerations = spec.get("tolerations") or []
    for taint in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            tolerations = [*tolerations, {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_S}]
    spec["tolerations"] = tolerations
    return review.obj


def _tolerates(toleration: Object, taint: str) -> bool:
    return toleration.get("key") in (None, "", taint) and toleration.get("effect") in (None, "", "NoExecute")
