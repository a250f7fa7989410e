"""The reasons for which the API server refuses a role or a binding, whichever user writes it."""

from pumice.api import Object
from pumice.cluster.apiserver.validation.field_rules import Causes, invalid, missing, unsupported

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("User", "Group", "ServiceAccount")


def default_binding(binding: Object) -> None:
    """Give references to roles, users and groups the API group of RBAC if they have none."""
    if binding.get("roleRef"):
        binding["roleRef"]["apiGroup"] = binding["roleRef"].get("apiGroup") or _GROUP
    for subject in binding.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or _GROUP


def role_causes(role: Object, old: Object | None) -> Causes:
    found: Causes = []
    for index, rule in enumerate(role.get("rules") or ()):
        place = f"rules[{index}]"
        found += missing(place, rule, "verbs", rule="verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if role["kind"] == "Role":
                found.append((f"{place}.nonResourceURLs", "Invalid value: namespaced rules cannot apply to non-resource URLs"))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "Invalid value: rules cannot apply to both regular resources and non-resource URLs"
                found.append((f"{place}.nonResourceURLs", text))
            continue
        found += missing(place, rule, "apiGroups", rule="resource rules must supply at least one api group")
        found += missing(place, rule, "resources", rule="resource rules must supply at least one resource")
    return found


def binding_causes(binding: Object, old: Object | None) -> Causes:
    reference = binding.get("roleRef") or {}
    if old is not None and reference != old.get("roleRef"):
        return [invalid("roleRef", reference, "cannot change roleRef")]
    kinds = ("Role", "ClusterRole") if binding["kind"] == "RoleBinding" else ("ClusterRole",)
    found = unsupported("roleRef.kind", reference.get("kind", ""), kinds)
    found += unsupported("roleRef.apiGroup", reference.get("apiGroup", ""), (_GROUP,)) + missing("roleRef", reference, "name")
    for index, subject in enumerate(binding.get("subjects") or ()):
        found += _subject_causes(subject, f"subjects[{index}]", binding["kind"] == "RoleBinding")
    return found


def _subject_causes(subject: Object, place: str, namespaced: bool) -> Causes:
    kind = subject.get("kind")
    if kind not in _SUBJECTS:
        return unsupported(f"{place}.kind", kind or "", _SUBJECTS)
    group = "" if kind == "ServiceAccount" else _GROUP
    found = missing(place, subject, "name") + unsupported(f"{place}.apiGroup", subject.get("apiGroup", ""), (group,))
    return found + (missing(place, subject, "namespace") if kind == "ServiceAccount" and not namespaced else [])
