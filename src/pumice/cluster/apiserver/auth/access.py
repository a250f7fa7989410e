"""Authentication and authorization of requests: bearer tokens, impersonation where it is allowed, RBAC, and reviews of access.

Impersonation: user, uid, groups and extra come from the headers, and the requesting user must be allowed to impersonate each of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from pumice.api import Object
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import AdmissionLister, UserInfo, account_groups
from pumice.cluster.apiserver.auth.grants import Attributes, Grants, TooMuchToCompare
from pumice.cluster.apiserver.auth.rbac import ADMINISTRATORS, allowed, rules_of
from pumice.cluster.apiserver.auth.tokens import AUDIENCE, Tokens
from pumice.cluster.apiserver.requests import Target
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.store import Store
from pumice.cluster.apiserver.validation.field_rules import invalid
from pumice.http.messages import Request

_EXTRA, _GROUP = "impersonate-extra-", "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"
_ANONYMOUS, _UNAUTHENTICATED, _AUTHENTICATED = "system:anonymous", "system:unauthenticated", "system:authenticated"


def wanted(headers: Mapping[str, str]) -> UserInfo | None:
    """The user that the request impersonates, as the headers state it; None if they state none. Raises StatusError 400 if they have groups,
    a uid or extra but no user."""
    if not [name for name in headers if name[:12] == "impersonate-"]:
        return None
    groups = _values(headers.get("impersonate-group", ""))
    extra = tuple(
        (unquote(name.removeprefix(_EXTRA)), _values(value)) for name, value in sorted(headers.items()) if name.startswith(_EXTRA)
    )
    name, uid = headers.get("impersonate-user", ""), headers.get("impersonate-uid", "")
    if not name:
        if groups or extra or uid:
            raise status.bad_request("a request that impersonates groups, a uid or extra must impersonate a user too")
        return None
    return UserInfo(name, groups, uid, extra)


def _values(text: str) -> tuple[str, ...]:
    """The values of a header that may have been sent several times."""
    return tuple(value for value in text.split("\n") if value)


def acting(lister: AdmissionLister, user: UserInfo, as_: UserInfo) -> UserInfo:
    """The user that `user` becomes by impersonating `as_`. Raises StatusError 403 for the first part that is not allowed."""
    if ADMINISTRATORS not in user.groups:
        _require_each(lister, user, as_)
    groups = as_.groups
    account = account_of(as_.name)
    if account is not None and not groups:
        groups = account_groups(account[0])
    known = _UNAUTHENTICATED if as_.name == _ANONYMOUS else _AUTHENTICATED
    return as_._replace(groups=groups if known in groups else (*groups, known))


def _require_each(lister: AdmissionLister, user: UserInfo, as_: UserInfo) -> None:
    """Raise StatusError 403 for the first part of `as_` that the user may not impersonate."""
    for group, resource, names, namespace in _parts(as_):
        wanted = {"verbs": ["impersonate"], "apiGroups": [group], "resources": [resource], "resourceNames": names}
        try:
            act = Grants(rules_of(lister, user, namespace)).lacking([wanted], namespace)
        except TooMuchToCompare:
            raise status.bad_request(f"the request impersonates too many {resource} at once") from None
        if act is not None:
            where = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
            why = f'User "{user.name}" cannot impersonate resource "{resource}" in API group "{act.group}" {where}'
            raise status.forbidden(resource, act.group, act.name, why)


def _parts(as_: UserInfo) -> Iterator[tuple[str, str, Sequence[str], str]]:
    """What is impersonated: API group, resource, names, and namespace."""
    account = account_of(as_.name)
    if account is None:
        yield "", "users", [as_.name], ""
    else:
        yield "", "serviceaccounts", [account[1]], account[0]
    if as_.groups:
        yield "", "groups", as_.groups, ""
    if as_.uid:
        yield _GROUP, "uids", [as_.uid], ""
    for key, values in as_.extra:
        if values:
            yield _GROUP, f"userextras/{key}", values, ""


def account_of(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user's name stands for; None if it is no service account's."""
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    is_account = name.startswith(_ACCOUNT) and namespace and account and ":" not in account
    return (namespace, account) if is_account else None


ANONYMOUS = UserInfo("system:anonymous", ("system:unauthenticated",))
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_DISCOVERY = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")


class AccessControl:
    def __init__(self, store: Store, tokens: Tokens) -> None:
        self._store = store
        self.tokens = tokens

    def user_of(self, request: Request) -> UserInfo:
        """The user that a request acts as, after impersonation. Raises StatusError: 401 without a valid token (open paths need no token),
        403 or 400 for an impersonation that is not allowed or not complete."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not token and request.client is None:
            if request.path in _OPEN_PATHS:
                return ANONYMOUS
            raise status.unauthorized()
        if not token:
            user = _of_certificate(request)
        else:
            user = self.tokens.user(token.strip(), self._store.now(), self._store) if scheme.lower() == "bearer" else None
        if user is None:
            raise status.unauthorized()
        other = wanted(request.headers)
        return acting(self._store, user, other) if other is not None else user

    def require(self, user: UserInfo, verb: str, target: Target) -> None:
        """Raise StatusError 403 if the user may not do this."""
        if ADMINISTRATORS in user.groups or (target.kind.reviewed_only and target.kind.kind.startswith("SelfSubject")):
            return
        kind = target.kind
        if allowed(self._store, user, Attributes(verb, kind.group, kind.plural, target.subresource, target.namespace, target.name)):
            return
        resource = f"{kind.plural}/{target.subresource}" if target.subresource else kind.plural
        where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
        raise kind.forbidden(target.name, f'User "{user.name}" cannot {verb} resource "{resource}" in API group "{kind.group}" {where}')

    def require_path(self, user: UserInfo, path: str) -> None:
        """Raise StatusError 403 if the user may not get a path. Any user may get the discovery paths; other paths need a rule."""
        if not _may(self._store, user, Attributes("get", path=path)):
            raise status.StatusError(403, "Forbidden", f'forbidden: User "{user.name}" cannot get path "{path}"', {})

    def review(self, user: UserInfo, kind: ServedKind, body: Object, namespace: str) -> Object:
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
                return head | {"status": _verdict(self._store, user, spec)}
            case "SubjectAccessReview" | "LocalSubjectAccessReview":
                asked = UserInfo(str(spec.get("user") or ""), tuple(spec.get("groups") or ()))
                _check_asked(kind, spec, namespace)
                return head | {"status": _verdict(self._store, asked, spec)}
            case "TokenReview":
                if not spec.get("token"):
                    raise status.bad_request("token is required for TokenReview in authentication")
                return head | {"status": self._token_status(spec)}
            case _:
                return head | {"status": _rules(self._store, user, str(spec.get("namespace") or ""))}

    def _token_status(self, spec: Object) -> Object:
        """The status of a TokenReview: the user of the token, if the token is meant for one of the audiences that the review names, or for
        this server if it names none."""
        holder = self.tokens.holder(str(spec.get("token") or ""), self._store.now(), self._store)
        if holder is None:
            return {"authenticated": False, "error": "invalid bearer token"}
        asked = spec.get("audiences") or [AUDIENCE]
        audiences = [audience for audience in asked if audience in holder.audiences]
        if not audiences:
            return {"authenticated": False, "error": "the token is not meant for any of these audiences"}
        return {"authenticated": True, "user": _user_info(holder.user), "audiences": audiences}


def _may(store: Store, user: UserInfo, act: Attributes) -> bool:
    """Whether a user may do this; any user may get the discovery paths."""
    is_discovery = any(act.path == path or act.path.startswith(f"{path}/") for path in _DISCOVERY)
    return (is_discovery and act.verb == "get") or allowed(store, user, act)


def _of_certificate(request: Request) -> UserInfo | None:
    return UserInfo(request.client[0], (*request.client[1], "system:authenticated")) if request.client is not None else None


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
    return {"allowed": True} if _may(store, user, act) else {"allowed": False, "reason": "no RBAC rule allows it"}


def _rules(store: Store, user: UserInfo, namespace: str) -> Object:
    rules = list(rules_of(store, user, namespace))
    if ADMINISTRATORS in user.groups:
        rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return {
        "resourceRules": [rule for rule in rules if rule.get("resources")],
        "nonResourceRules": [rule for rule in rules if rule.get("nonResourceURLs")],
        "incomplete": False,
    }
