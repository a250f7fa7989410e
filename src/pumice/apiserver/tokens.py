"""Tokens: one for the administrator, and those of service accounts, signed with a key that only this server has."""

from __future__ import annotations

import base64
import hashlib
import hmac

import msgspec

from pumice.api.times import rfc3339
from pumice.apiserver.admission import User
from pumice.apiserver.shapes import Object

ADMIN = User("pumice-admin", ("system:masters", "system:authenticated"))
_PREFIX = "pumice."


class Tokens:
    """Tells users by their bearer tokens."""

    def __init__(self, admin_token: str, key: bytes, others: dict[str, User] | None = None) -> None:
        self.admin_token = admin_token
        self._key = key
        self._others = dict(others or {})

    def user(self, token: str, now: float) -> User | None:
        if hmac.compare_digest(token.encode(), self.admin_token.encode()):
            return ADMIN
        return self._others.get(token) or self._account(token, now)

    def issue(self, account: Object, seconds: int, now: float) -> tuple[str, str]:
        """A token of a service account, and when it ends."""
        metadata = account["metadata"]
        claims = msgspec.json.encode([metadata["namespace"], metadata["name"], metadata["uid"], now + seconds])
        body = base64.urlsafe_b64encode(claims).decode().rstrip("=")
        return f"{_PREFIX}{body}.{self._signature(body)}", rfc3339(now + seconds)

    def _signature(self, body: str) -> str:
        return hmac.new(self._key, body.encode(), hashlib.sha256).hexdigest()

    def _account(self, token: str, now: float) -> User | None:
        body, _, signature = token.removeprefix(_PREFIX).partition(".")
        if not token.startswith(_PREFIX) or not hmac.compare_digest(signature.encode(), self._signature(body).encode()):
            return None
        namespace, name, _, ends = msgspec.json.decode(
            base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=tuple[str, str, str, float]
        )
        if now > ends:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(f"system:serviceaccount:{namespace}:{name}", groups)
