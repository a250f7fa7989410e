"""The reasons for which the API server refuses a role or a binding, whichever user writes it."""

from pumice.api import Object
from pumice.cluster.apiserver.object_checks import Causes

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
        if not rule.get("verbs"):
            found.append((f"{place}.verbs", "Required value: verbs must contain at least one value"))
        if rule.get("nonResourceURLs"):
            if role["kind"] == "Role":
                found.append((f"{place}.nonResourceURLs", "Invalid value: namespaced rules cannot apply to non-resource URLs"))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                text = "Invalid value: rules cannot apply to both regular resources and non-resource URLs"
                found.append((f"{place}.nonResourceURLs", text))
            continue
        if not rule.get("apiGroups"):
            found.append((f"{place}.apiGroups", "Required value: resource rules must supply at least one api group"))
        if not rule.get("resources"):
            found.append((f"{place}.resources", "Required value: resource rules must supply at least one resource"))
    return found


def binding_causes(binding: Object, old: Object | None) -> Causes:
    reference = binding.get("roleRef") or {}
    if old is not None and reference != old.get("roleRef"):
        return [("roleRef", f"Invalid value: {reference}: cannot change roleRef")]
    found: Causes = []
    kinds = ("Role", "ClusterRole") if binding["kind"] == "RoleBinding" else ("ClusterRole",)
    if reference.get("kind") not in kinds:
        text = ", ".join(f'"{kind}"' for kind in kinds)
        found.append(("roleRef.kind", f'Unsupported value: "{reference.get("kind", "")}": supported values: {text}'))
    if reference.get("apiGroup") != _GROUP:
        found.append(("roleRef.apiGroup", f'Unsupported value: "{reference.get("apiGroup", "")}": supported values: "{_GROUP}"'))
    if not reference.get("name"):
        found.append(("roleRef.name", "Required value"))
    for index, subject in enumerate(binding.get("subjects") or ()):
        found += _subject_causes(subject, f"subjects[{index}]", binding["kind"] == "RoleBinding")
    return found


def _subject_causes(subject: Object, place: str, namespaced: bool) -> Causes:
    kind, found = subject.get("kind"), list[tuple[str, str]]()
    if kind not in _SUBJECTS:
        text = ", ".join(f'"{each}"' for each in _SUBJECTS)
        return [(f"{place}.kind", f'Unsupported value: "{kind or ""}": supported values: {text}')]
    if not subject.get("name"):
        found.append((f"{place}.name", "Required value"))
    group = "" if kind == "ServiceAccount" else _GROUP
    if subject.get("apiGroup", "") != group:
        found.append((f"{place}.apiGroup", f'Unsupported value: "{subject.get("apiGroup", "")}": supported values: "{group}"'))
    if kind == "ServiceAccount" and not subject.get("namespace") and not namespaced:
        found.append((f"{place}.namespace", "Required value"))
    return found
