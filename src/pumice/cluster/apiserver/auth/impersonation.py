"""Impersonation: user, uid, groups and extra come from the headers, and the requesting user must be allowed to impersonate each of them."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import AdmissionLister, UserInfo, account_groups
from pumice.cluster.apiserver.auth.grants import Grants, TooMuchToCompare
from pumice.cluster.apiserver.auth.rbac import ADMINISTRATORS, rules_of

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
