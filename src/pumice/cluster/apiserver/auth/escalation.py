"""No user can grant rights that the user does not have. A role or binding is accepted only from a user who already has all rights in its
rules, or who may `escalate` the role, or `bind` it.
"""

from pumice.api import Object
from pumice.cluster.apiserver.admission.attributes import AdmissionAttributes, AdmissionLister, AdmissionRefusal, AdmissionRule
from pumice.cluster.apiserver.auth.grants import Attributes, Grants, TooMuchToCompare
from pumice.cluster.apiserver.auth.rbac import allowed, rules_of

GROUP = "rbac.authorization.k8s.io"
ROLES = (f"roles.{GROUP}", f"clusterroles.{GROUP}")
BINDINGS = (f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}")
#: the rights that a change of `aggregationRule` needs: whoever chooses the parts of a role chooses rights that are not known yet
EVERYTHING: list[Object] = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]


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
    may = Attributes("bind", GROUP, plural, namespace=review.namespace, name=name)
    if role is not None:
        return _refusal(review, lister, role.get("rules") or (), may)
    if allowed(lister, review.user, may):
        return None
    return AdmissionRefusal(f'{plural}.{GROUP} "{name}" not found: only who may bind any role may bind one that is not there')


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
