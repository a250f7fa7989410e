"""RBAC: whether a user may do something. Roles and bindings are read from the store at each check, except for administrators."""

from collections.abc import Iterator

from pumice.api import Object
from pumice.cluster.apiserver.admission.attributes import AdmissionLister, UserInfo
from pumice.cluster.apiserver.auth.grants import Attributes, permits

_GROUP = "rbac.authorization.k8s.io"
ADMINISTRATORS = "system:masters"


def allowed(lister: AdmissionLister, user: UserInfo, act: Attributes) -> bool:
    if ADMINISTRATORS in user.groups:
        return True
    return any(permits(rule, act) for rule in rules_of(lister, user, act.namespace))


def rules_of(lister: AdmissionLister, user: UserInfo, namespace: str = "") -> Iterator[Object]:
    """The rules that apply to a user in a namespace, those of the whole cluster first."""
    for binding in lister.all(f"clusterrolebindings.{_GROUP}"):
        if _is_subject(binding, user, ""):
            yield from _role_rules(lister, binding, "")
    if namespace:
        for binding in lister.all(f"rolebindings.{_GROUP}", namespace):
            if _is_subject(binding, user, namespace):
                yield from _role_rules(lister, binding, namespace)


def _role_rules(lister: AdmissionLister, binding: Object, namespace: str) -> list[Object]:
    reference = binding.get("roleRef") or {}
    name = str(reference.get("name", ""))
    clusterwide = reference.get("kind") == "ClusterRole"
    role = lister.find(f"clusterroles.{_GROUP}", "", name) if clusterwide else lister.find(f"roles.{_GROUP}", namespace, name)
    return (role or {}).get("rules") or []


def _is_subject(binding: Object, user: UserInfo, namespace: str) -> bool:
    for subject in binding.get("subjects") or ():
        match subject.get("kind"):
            case "User" if subject.get("name") == user.name:
                return True
            case "Group" if subject.get("name") in user.groups:
                return True
            case "ServiceAccount" if user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject.get('name')}":
                return True
    return False
