"""RBAC: whether a user may do something. Roles and bindings are read from the store at each check, except for administrators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pumice.cluster.apiserver.admission import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule, UserInfo
from pumice.cluster.apiserver.grants import Attributes, Grants, TooMuchToCompare
from pumice.cluster.apiserver.schema import Object

_GROUP = "rbac.authorization.k8s.io"
ADMINISTRATORS = "system:masters"


def allowed(lister: AdmissionLister, user: UserInfo, act: Attributes) -> bool:
    if ADMINISTRATORS in user.groups:
        return True
    return any(_permits(rule, act) for rule in rules_of(lister, user, act.namespace))


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


def _permits(rule: Object, act: Attributes) -> bool:
    if not _has(rule.get("verbs"), act.verb):
        return False
    if act.path:
        return any(
            path == "*" or path == act.path or (path.endswith("*") and act.path.startswith(path[:-1]))
            for path in rule.get("nonResourceURLs") or ()
        )
    names = rule.get("resourceNames") or ()
    return _has(rule.get("apiGroups"), act.group) and _has_resource(rule.get("resources") or (), act) and (not names or act.name in names)


def _has(allowed_values: list[str] | None, wanted: str) -> bool:
    return allowed_values is not None and ("*" in allowed_values or wanted in allowed_values)


def _has_resource(resources: Sequence[str], act: Attributes) -> bool:
    wanted = f"{act.resource}/{act.subresource}" if act.subresource else act.resource
    return "*" in resources or wanted in resources or (bool(act.subresource) and f"*/{act.subresource}" in resources)


# No user can grant rights that the user does not have. A role or binding is accepted only from a user who already has all rights in its
# rules, or who may `escalate` the role, or `bind` it.

GROUP = "rbac.authorization.k8s.io"
ROLES = (f"roles.{GROUP}", f"clusterroles.{GROUP}")
BINDINGS = (f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}")
#: the rights that a change of `aggregationRule` needs: whoever chooses the parts of a role chooses rights that are not known yet
EVERYTHING: list[Object] = [
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
]


def escalation_rules() -> list[AdmissionRule]:
    return [AdmissionRule(ROLES, ("CREATE", "UPDATE"), validate=_role), AdmissionRule(BINDINGS, ("CREATE", "UPDATE"), validate=_binding)]


def _role(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    old, new = review.old or {}, review.obj
    if review.old is not None and old.get("rules") == new.get("rules") and old.get("aggregationRule") == new.get("aggregationRule"):
        return None
    may = Attributes("escalate", GROUP, review.kind.plural, namespace=review.namespace, name=review.name)
    aggregated = EVERYTHING if old.get("aggregationRule") != new.get("aggregationRule") else []
    return _refusal(review, lister, [*(new.get("rules") or ()), *aggregated], may)


def _binding(review: AdmissionAttributes, lister: AdmissionLister) -> AdmissionRefusal | None:
    if review.old is not None and all(review.old.get(field) == review.obj.get(field) for field in ("roleRef", "subjects")):
        return None
    reference = review.obj.get("roleRef") or {}
    plural = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
    name = str(reference.get("name", ""))
    role = lister.find(f"{plural}.{GROUP}", "" if plural == "clusterroles" else review.namespace, name)
    if role is None and ADMINISTRATORS not in review.user.groups:
        return AdmissionRefusal(f'{plural}.{GROUP} "{name}" not found: only who may bind any role may bind one that is not there')
    may = Attributes("bind", GROUP, plural, namespace=review.namespace, name=name)
    return _refusal(review, lister, (role or {}).get("rules") or (), may)


def _refusal(
    review: AdmissionAttributes, lister: AdmissionLister, rules: list[Object] | tuple[()], may: Attributes
) -> AdmissionRefusal | None:
    if allowed(lister, review.user, may):
        return None
    try:
        act = Grants(rules_of(lister, review.user, review.namespace)).lacking(rules, review.namespace)
    except TooMuchToCompare:
        return AdmissionRefusal("its rules are too many to compare with the rights of their author; write fewer, or smaller ones")
    if act is None:
        return None
    subject = act.path or "/".join(part for part in (f"{act.resource}.{act.group}".rstrip("."), act.subresource) if part)
    what = f"{act.verb} {subject} {act.name}".rstrip()
    return AdmissionRefusal(f'user "{review.user.name}" is attempting to grant RBAC permissions not currently held: {what}')
