"""Nobody gives away rights that they do not have: roles and bindings are accepted only from those whom their rules would allow nothing new,
or who may `escalate` the role, or `bind` it.
"""

from __future__ import annotations

from collections.abc import Iterator

from pumice.apiserver.admission import Refusal, Review, Rule, World
from pumice.apiserver.rbac import ADMINISTRATORS, Act, allowed
from pumice.apiserver.shapes import Object

GROUP = "rbac.authorization.k8s.io"
ROLES = (f"roles.{GROUP}", f"clusterroles.{GROUP}")
BINDINGS = (f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}")


def escalation_rules() -> list[Rule]:
    return [Rule(ROLES, ("CREATE", "UPDATE"), validate=_role), Rule(BINDINGS, ("CREATE", "UPDATE"), validate=_binding)]


def _role(review: Review, world: World) -> Refusal | None:
    if review.old is not None and review.old.get("rules") == review.obj.get("rules"):
        return None
    may = Act("escalate", GROUP, review.kind.plural, namespace=review.namespace, name=review.name)
    return _refusal(review, world, review.obj.get("rules") or (), may)


def _binding(review: Review, world: World) -> Refusal | None:
    if review.old is not None and all(review.old.get(field) == review.obj.get(field) for field in ("roleRef", "subjects")):
        return None
    reference = review.obj.get("roleRef") or {}
    plural = "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
    name = str(reference.get("name", ""))
    role = world.find(f"{plural}.{GROUP}", "" if plural == "clusterroles" else review.namespace, name)
    if role is None and ADMINISTRATORS not in review.user.groups:
        return Refusal(f'{plural}.{GROUP} "{name}" not found: only who may bind any role may bind one that is not there')
    may = Act("bind", GROUP, plural, namespace=review.namespace, name=name)
    return _refusal(review, world, (role or {}).get("rules") or (), may)


def _refusal(review: Review, world: World, rules: list[Object] | tuple[()], may: Act) -> Refusal | None:
    if allowed(world, review.user, may):
        return None
    for rule in rules:
        for act in _acts(rule, review.namespace):
            if not allowed(world, review.user, act):
                subject = act.path or "/".join(part for part in (f"{act.resource}.{act.group}".rstrip("."), act.subresource) if part)
                what = f"{act.verb} {subject} {act.name}".rstrip()
                return Refusal(f'user "{review.user.name}" is attempting to grant RBAC permissions not currently held: {what}')
    return None


def _acts(rule: Object, namespace: str) -> Iterator[Act]:
    """Everything that the rule allows; "*" stands for itself, and only "*" allows it."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Act(verb, path=path)
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                plural, _, subresource = resource.partition("/")
                for name in rule.get("resourceNames") or ("",):
                    yield Act(verb, group, plural, subresource, namespace, name)
