"""Tokens: one for the administrator, and tokens of service accounts, signed with a key that only this server has.

A service account's token is a JWT with the claims that Kubernetes gives it. It is valid until it expires, and only while its account, and
the pod, secret or node that it is bound to, exist with the uids that they had when it was made.
"""

import base64
import hashlib
import hmac
from typing import Any, NamedTuple

import msgspec

from pumice.api import Object
from pumice.cluster.apiserver.admission.attributes import AdmissionLister, UserInfo, account_groups

ADMIN = UserInfo("pumice-admin", ("system:masters", "system:authenticated"))
AUDIENCE = "https://kubernetes.default.svc.cluster.local"  #: of tokens for this server; also their issuer
BOUND = {"pod": "pods", "secret": "secrets", "node": "nodes"}  #: what a token may be bound to, and the resource of it
_KEY_LENGTH = 16
_HEAD = b'{"alg":"HS256","typ":"JWT"}'
_EXTRA = "authentication.kubernetes.io"


class TokenHolder(NamedTuple):
    user: UserInfo
    audiences: tuple[str, ...]


class _Reference(msgspec.Struct):
    name: str
    uid: str


class _Subject(msgspec.Struct, omit_defaults=True):
    namespace: str
    serviceaccount: _Reference
    pod: _Reference | None = None
    secret: _Reference | None = None
    node: _Reference | None = None


class _Claims(msgspec.Struct):
    aud: list[str]
    exp: int
    iat: int
    iss: str
    jti: str
    nbf: int
    sub: str
    subject: _Subject = msgspec.field(name="kubernetes.io")


class Tokens:
    """Finds users by their bearer tokens, and issues tokens. Raises ValueError for a key that is too short or an empty token."""

    def __init__(self, admin_token: str, key: bytes, others: dict[str, UserInfo] | None = None) -> None:
        if len(key) < _KEY_LENGTH or not admin_token.strip():
            raise ValueError(f"a signing key has {_KEY_LENGTH} bytes at least, and the administrator's token is not empty")
        self.admin_token = admin_token
        self._key = key
        self._others = {token: user for token, user in (others or {}).items() if token}

    def holder(self, token: str, now: float, lister: AdmissionLister) -> TokenHolder | None:
        """The user and the audiences of a token, for whatever audience it is meant; None if it is not valid."""
        if hmac.compare_digest(token.encode(), self.admin_token.encode()):
            return TokenHolder(ADMIN, (AUDIENCE,))
        other = self._others.get(token)
        return TokenHolder(other, (AUDIENCE,)) if other is not None else self._account(token, now, lister)

    def user(self, token: str, now: float, lister: AdmissionLister) -> UserInfo | None:
        """The user of a token; None if it is not valid, or not meant for this server."""
        holder = self.holder(token, now, lister)
        return holder.user if holder is not None and AUDIENCE in holder.audiences else None

    def issue(self, account: Object, seconds: int, now: float, serial: str, audiences: list[str], bound: dict[str, Object]) -> str:
        """A token of a service account. `bound` are the objects that must exist for it to be valid, by their names in `BOUND`."""
        metadata = account["metadata"]
        references: dict[str, Any] = {name: _reference(obj) for name, obj in bound.items()}
        claims = _Claims(
            aud=audiences or [AUDIENCE],
            exp=int(now) + seconds,
            iat=int(now),
            iss=AUDIENCE,
            jti=serial,
            nbf=int(now),
            sub=f"system:serviceaccount:{metadata['namespace']}:{metadata['name']}",
            subject=_Subject(metadata["namespace"], _reference(account), **references),
        )
        body = f"{_text(_HEAD)}.{_text(msgspec.json.encode(claims))}"
        return f"{body}.{self._signature(body)}"

    def _signature(self, body: str) -> str:
        return _text(hmac.new(self._key, body.encode(), hashlib.sha256).digest())

    def _account(self, token: str, now: float, lister: AdmissionLister) -> TokenHolder | None:
        body, _, signature = token.rpartition(".")
        if not body or not hmac.compare_digest(signature.encode(), self._signature(body).encode()):
            return None
        claims = msgspec.json.decode(_bytes(body.partition(".")[2]), type=_Claims)
        subject, account = claims.subject, claims.subject.serviceaccount
        if not claims.nbf <= now < claims.exp or not _is_there(lister, "serviceaccounts", subject.namespace, account):
            return None
        extra = [("credential-id", f"JTI={claims.jti}")]
        for name, resource in BOUND.items():
            reference = getattr(subject, name)
            if reference is None:
                continue
            if not _is_there(lister, resource, "" if name == "node" else subject.namespace, reference):
                return None
            if name != "secret":
                extra += [(f"{name}-name", reference.name), (f"{name}-uid", reference.uid)]
        groups = (*account_groups(subject.namespace), "system:authenticated")
        return TokenHolder(
            UserInfo(claims.sub, groups, account.uid, tuple((f"{_EXTRA}/{key}", (value,)) for key, value in extra)), tuple(claims.aud)
        )


def _reference(obj: Object) -> _Reference:
    return _Reference(obj["metadata"]["name"], obj["metadata"]["uid"])


def _is_there(lister: AdmissionLister, resource: str, namespace: str, reference: _Reference) -> bool:
    obj = lister.find(resource, namespace, reference.name)
    return obj is not None and obj["metadata"]["uid"] == reference.uid


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
