"""Reviews: questions about access that are answered and not stored. Bindings by the legacy path are of the same kind."""

from __future__ import annotations

from pumice.cluster.apiserver.access import AccessControl
from pumice.cluster.apiserver.admission import UserInfo, WriteOptions
from pumice.cluster.apiserver.kinds import ServedKind
from pumice.cluster.apiserver.rbac import ADMINISTRATORS, Attributes, allowed, rules_of
from pumice.cluster.apiserver.schema import Object
from pumice.cluster.apiserver.status import bad_request, success
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.subresources import bind
from pumice.cluster.apiserver.tokens import AUDIENCE


def answer(store: Store, access: AccessControl, user: UserInfo, kind: ServedKind, body: Object, namespace: str) -> Object:
    spec = body.get("spec") or {}
    if not isinstance(spec, dict):
        raise bad_request("spec: not an object")
    head = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": spec}
    match kind.kind:
        case "Binding":
            bind(store, body, namespace, str((body.get("metadata") or {}).get("name") or ""), WriteOptions(user=user))
            return success(201)
        case "SelfSubjectReview":
            return head | {"status": {"userInfo": _user_info(user)}}
        case "SelfSubjectAccessReview":
            return head | {"status": _verdict(store, user, spec)}
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            asked = UserInfo(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
            _check_asked(kind, spec, namespace)
            return head | {"status": _verdict(store, asked, spec)}
        case "TokenReview":
            return head | {"status": _token_status(store, access, spec)}
        case _:
            return head | {"status": _rules(store, user, str(spec.get("namespace") or ""))}


def _token_status(store: Store, access: AccessControl, spec: Object) -> Object:
    """Whose token it is, if it is meant for one of those who are asked for; for this server, if nobody is."""
    holder = access.tokens.holder(str(spec.get("token") or ""), store.now(), store)
    if holder is None:
        return {"authenticated": False, "error": "invalid bearer token"}
    asked = spec.get("audiences") or [AUDIENCE]
    audiences = [audience for audience in asked if audience in holder.audiences]
    if not audiences:
        return {"authenticated": False, "error": "the token is not meant for any of these audiences"}
    return {"authenticated": True, "user": _user_info(holder.user), "audiences": audiences}


def _user_info(user: UserInfo) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    return info | ({"extra": {name: list(values) for name, values in user.extra}} if user.extra else {})


def _check_asked(kind: ServedKind, spec: Object, namespace: str) -> None:
    """A review of somebody's access names him, and one in a namespace asks about that namespace."""
    if not spec.get("user") and not spec.get("groups"):
        raise kind.invalid("", [("spec.user", 'Invalid value: "": at least one of user or group must be specified')])
    where = (spec.get("resourceAttributes") or {}).get("namespace")
    if kind.kind == "LocalSubjectAccessReview" and where != namespace:
        text = f'Invalid value: "{where or ""}": must match metadata.namespace'
        raise kind.invalid("", [("spec.resourceAttributes.namespace", text)])


def _verdict(store: Store, user: UserInfo, spec: Object) -> Object:
    wanted, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
    if not isinstance(wanted, dict) or not isinstance(path, dict):
        raise bad_request("spec: not an access review")
    if path:
        act = Attributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    else:
        fields = ("verb", "group", "resource", "subresource", "namespace", "name")
        act = Attributes(*(str(wanted.get(field) or "") for field in fields))
    return {"allowed": True} if allowed(store, user, act) else {"allowed": False, "reason": "no RBAC rule allows it"}


def _rules(store: Store, user: UserInfo, namespace: str) -> Object:
    rules = list(rules_of(store, user, namespace))
    if ADMINISTRATORS in user.groups:
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
