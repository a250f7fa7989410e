"""Acting as another: user, uid, groups and extra of the headers, each of which the one who asks must be allowed to take on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from pumice.apiserver import status
from pumice.apiserver.admission import User, World
from pumice.apiserver.rbac import Act, allowed
from pumice.apiserver.tokens import account_groups

_EXTRA, _GROUP = "impersonate-extra-", "authentication.k8s.io"
_ACCOUNT = "system:serviceaccount:"
_ANONYMOUS, _UNAUTHENTICATED, _AUTHENTICATED = "system:anonymous", "system:unauthenticated", "system:authenticated"


def wanted(headers: Mapping[str, str]) -> User | None:
    """Whom the request wants to act as, as it says it; None if it does not. Raises ApiError 400 for parts without a user."""
    groups = _values(headers.get("impersonate-group", ""))
    extra = tuple(
        (unquote(name.removeprefix(_EXTRA)), _values(value)) for name, value in sorted(headers.items()) if name.startswith(_EXTRA)
    )
    name, uid = headers.get("impersonate-user", ""), headers.get("impersonate-uid", "")
    if not name:
        if groups or extra or uid:
            raise status.bad_request("a request that impersonates groups, a uid or extra must impersonate a user too")
        return None
    return User(name, groups, uid, extra)


def _values(text: str) -> tuple[str, ...]:
    """Of a header that may have stood there several times."""
    return tuple(value.strip() for value in text.split(",") if value.strip())


def acting(world: World, user: User, as_: User) -> User:
    """The user that the request acts as. Raises ApiError 403 for the first part that is not allowed."""
    for act in _acts(as_):
        if not allowed(world, user, act):
            where = f'in the namespace "{act.namespace}"' if act.namespace else "at the cluster scope"
            resource = f"{act.resource}/{act.subresource}" if act.subresource else act.resource
            why = f'User "{user.name}" cannot impersonate resource "{resource}" in API group "{act.group}" {where}'
            raise status.forbidden(resource, act.group, act.name, why)
    groups = as_.groups
    account = account_of(as_.name)
    if account is not None and not groups:
        groups = account_groups(account[0])
    known = _UNAUTHENTICATED if as_.name == _ANONYMOUS else _AUTHENTICATED
    return as_._replace(groups=groups if known in groups else (*groups, known))


def _acts(as_: User) -> Iterator[Act]:
    account = account_of(as_.name)
    if account is None:
        yield Act("impersonate", "", "users", name=as_.name)
    else:
        yield Act("impersonate", "", "serviceaccounts", namespace=account[0], name=account[1])
    for group in as_.groups:
        yield Act("impersonate", "", "groups", name=group)
    if as_.uid:
        yield Act("impersonate", _GROUP, "uids", name=as_.uid)
    for key, values in as_.extra:
        for value in values:
            yield Act("impersonate", _GROUP, "userextras", key, name=value)


def account_of(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user's name stands for."""
    namespace, _, account = name.removeprefix(_ACCOUNT).partition(":")
    is_account = name.startswith(_ACCOUNT) and namespace and account and ":" not in account
    return (namespace, account) if is_account else None
