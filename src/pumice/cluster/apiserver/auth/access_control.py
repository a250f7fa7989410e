"""Authentication and authorization of requests: bearer tokens, impersonation where it is allowed, RBAC."""

from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import UserInfo
from pumice.cluster.apiserver.auth.grants import Attributes
from pumice.cluster.apiserver.auth.impersonation import acting, wanted
from pumice.cluster.apiserver.auth.rbac import ADMINISTRATORS, allowed
from pumice.cluster.apiserver.auth.tokens import Tokens
from pumice.cluster.apiserver.requests import Target
from pumice.cluster.apiserver.store import Store
from pumice.http.messages import Request

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
        if not may(self._store, user, Attributes("get", path=path)):
            raise status.StatusError(403, "Forbidden", f'forbidden: User "{user.name}" cannot get path "{path}"', {})


def may(store: Store, user: UserInfo, act: Attributes) -> bool:
    """Whether a user may do this; any user may get the discovery paths."""
    is_discovery = any(act.path == path or act.path.startswith(f"{path}/") for path in _DISCOVERY)
    return (is_discovery and act.verb == "get") or allowed(store, user, act)


def _of_certificate(request: Request) -> UserInfo | None:
    return UserInfo(request.client[0], (*request.client[1], "system:authenticated")) if request.client is not None else None
