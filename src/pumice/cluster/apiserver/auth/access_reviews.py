"""Reviews of access, which are answered and not stored: SubjectAccessReviews and the like, SelfSubjectRulesReview, TokenReview."""

from pumice.api import Object
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import UserInfo
from pumice.cluster.apiserver.auth.access_control import may
from pumice.cluster.apiserver.auth.grants import Attributes
from pumice.cluster.apiserver.auth.rbac import ADMINISTRATORS, rules_of
from pumice.cluster.apiserver.auth.tokens import AUDIENCE, Tokens
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.validation.field_rules import invalid


def reviewed(store: Store, tokens: Tokens, user: UserInfo, kind: ServedKind, body: Object, namespace: str) -> Object:
    """The answer to a review, which is not stored."""
    spec = body.get("spec") or {}
    if not isinstance(spec, dict):
        raise status.bad_request("spec: not an object")
    head = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {}, "spec": spec}
    match kind.kind:
        case "SelfSubjectReview":
            return head | {"status": {"userInfo": _user_info(user)}}
        case "SelfSubjectAccessReview":
            _check_attributes(kind, spec)
            return head | {"status": _verdict(store, user, spec)}
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            asked = UserInfo(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
            _check_asked(kind, spec, namespace)
            return head | {"status": _verdict(store, asked, spec)}
        case "TokenReview":
            if not spec.get("token"):
                raise status.bad_request("token is required for TokenReview in authentication")
            return head | {"status": _token_status(store, tokens, spec)}
        case _:
            return head | {"status": _rules(store, user, str(spec.get("namespace") or ""))}


def _token_status(store: Store, tokens: Tokens, spec: Object) -> Object:
    """The status of a TokenReview: the user of the token, if the token is meant for one of the audiences that the review names, or for
    this server if it names none."""
    holder = tokens.holder(str(spec.get("token") or ""), store.now(), store)
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
    """Raise StatusError if a SubjectAccessReview names no user or group, or if a local review asks about another namespace."""
    _check_attributes(kind, spec)
    if not spec.get("user") and not spec.get("groups"):
        raise kind.invalid("", [("spec.user", 'Invalid value: "": at least one of user or group must be specified')])
    where = (spec.get("resourceAttributes") or {}).get("namespace")
    if kind.kind == "LocalSubjectAccessReview" and where != namespace:
        text = f'Invalid value: "{where or ""}": must match metadata.namespace'
        raise kind.invalid("", [("spec.resourceAttributes.namespace", text)])


def _check_attributes(kind: ServedKind, spec: Object) -> None:
    """Raise StatusError if a review does not ask about one thing."""
    wanted, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if wanted is None and path is None:
        text = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise kind.invalid("", [("spec.resourceAttributes", text)])
    if wanted is not None and path is not None:
        cause = invalid("spec.nonResourceAttributes", path, "cannot be specified in combination with resourceAttributes")
        raise kind.invalid("", [cause])


def _verdict(store: Store, user: UserInfo, spec: Object) -> Object:
    wanted, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
    if not isinstance(wanted, dict) or not isinstance(path, dict):
        raise status.bad_request("spec: not an access review")
    if path:
        act = Attributes(str(path.get("verb", "")), path=str(path.get("path", "")))
    else:
        fields = ("verb", "group", "resource", "subresource", "namespace", "name")
        act = Attributes(*(str(wanted.get(field) or "") for field in fields))
    return {"allowed": True} if may(store, user, act) else {"allowed": False, "reason": "no RBAC rule allows it"}


def _rules(store: Store, user: UserInfo, namespace: str) -> Object:
    rules = list(rules_of(store, user, namespace))
    if ADMINISTRATORS in user.groups:
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
