"""Who asks, and may they? Bearer tokens, impersonation by those who may, and RBAC."""

from __future__ import annotations

from pumice.apiserver import impersonation, status
from pumice.apiserver.admission import User
from pumice.apiserver.rbac import ADMINISTRATORS, Act, allowed
from pumice.apiserver.routes import Target
from pumice.apiserver.store import Store
from pumice.apiserver.tokens import Tokens
from pumice.web.messages import Request

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_DISCOVERY = ("/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz")


class Access:
    """Authentication and authorization of one server."""

    def __init__(self, store: Store, tokens: Tokens) -> None:
        self._store = store
        self.tokens = tokens

    def user_of(self, request: Request) -> User:
        """Raises ApiError 401 without a token that is known."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not token:
            if request.path in _OPEN_PATHS:
                return ANONYMOUS
            raise status.unauthorized()
        user = self.tokens.user(token.strip(), self._store.now(), self._store) if scheme.lower() == "bearer" else None
        if user is None:
            raise status.unauthorized()
        wanted = impersonation.wanted(request.headers)
        return impersonation.acting(self._store, user, wanted) if wanted is not None else user

    def require(self, user: User, verb: str, target: Target) -> None:
        """Raises ApiError 403."""
        if ADMINISTRATORS in user.groups or (target.kind.reviewed_only and target.kind.kind.startswith("SelfSubject")):
            return
        kind = target.kind
        if allowed(self._store, user, Act(verb, kind.group, kind.plural, target.subresource, target.namespace, target.name)):
            return
        resource = f"{kind.plural}/{target.subresource}" if target.subresource else kind.plural
        where = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
        raise kind.forbidden(target.name, f'User "{user.name}" cannot {verb} resource "{resource}" in API group "{kind.group}" {where}')

    def require_path(self, user: User, path: str) -> None:
        """Everybody who is somebody may discover what there is; other paths need a rule."""
        if (
            ADMINISTRATORS in user.groups
            or path in _OPEN_PATHS
            or any(path == open_path or path.startswith(open_path + "/") for open_path in _DISCOVERY)
        ):
            return
        if not allowed(self._store, user, Act("get", path=path)):
            raise status.ApiError(403, "Forbidden", f'forbidden: User "{user.name}" cannot get path "{path}"', {})
