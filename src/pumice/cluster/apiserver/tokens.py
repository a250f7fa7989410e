"""Tokens: one for the administrator, and those of service accounts, signed with a key that only this server has.

A service account's token is a JWT with the claims that Kubernetes gives it. It holds as long as it says, and as long as its account, and
the pod or secret that it was made for, are there with the uids that they had then.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any, NamedTuple

import msgspec

from pumice.api.times import rfc3339
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission import AdmissionLister, UserInfo
from pumice.cluster.apiserver.decoding import WrongType, conformed
from pumice.cluster.apiserver.schema import Object, object_shape
from pumice.cluster.apiserver.store import Store

ADMIN = UserInfo("pumice-admin", ("system:masters", "system:authenticated"))
AUDIENCE = "https://kubernetes.default.svc.cluster.local"  #: of tokens for this server; also who made them
BOUND = {"pod": "pods", "secret": "secrets", "node": "nodes"}  #: what a token may be bound to, and where it lives
_KEY_LENGTH = 16
_HEAD = b'{"alg":"HS256","typ":"JWT"}'
_EXTRA = "authentication.kubernetes.io"


class TokenHolder(NamedTuple):
    """Whose token it is, and whom it is for."""

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
    """Tells users by their bearer tokens. Raises ValueError for a key or token that anybody could guess."""

    def __init__(self, admin_token: str, key: bytes, others: dict[str, UserInfo] | None = None) -> None:
        if len(key) < _KEY_LENGTH or not admin_token.strip():
            raise ValueError(f"a signing key has {_KEY_LENGTH} bytes at least, and the administrator's token is not empty")
        self.admin_token = admin_token
        self._key = key
        self._others = {token: user for token, user in (others or {}).items() if token}

    def holder(self, token: str, now: float, lister: AdmissionLister) -> TokenHolder | None:
        """Whom the token stands for, whoever it is meant for."""
        if hmac.compare_digest(token.encode(), self.admin_token.encode()):
            return TokenHolder(ADMIN, (AUDIENCE,))
        other = self._others.get(token)
        return TokenHolder(other, (AUDIENCE,)) if other is not None else self._account(token, now, lister)

    def user(self, token: str, now: float, lister: AdmissionLister) -> UserInfo | None:
        """Who speaks to this server with that token."""
        holder = self.holder(token, now, lister)
        return holder.user if holder is not None and AUDIENCE in holder.audiences else None

    def issue(self, account: Object, seconds: int, now: float, serial: str, audiences: list[str], bound: dict[str, Object]) -> str:
        """A token of a service account. `bound` are objects without which it does not hold, by their names in `BOUND`."""
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


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of a namespace's service accounts."""
    return "system:serviceaccounts", f"system:serviceaccounts:{namespace}"


def _reference(obj: Object) -> _Reference:
    return _Reference(obj["metadata"]["name"], obj["metadata"]["uid"])


def _is_there(lister: AdmissionLister, resource: str, namespace: str, reference: _Reference) -> bool:
    obj = lister.find(resource, namespace, reference.name)
    return obj is not None and obj["metadata"]["uid"] == reference.uid


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


# TokenRequests: a service account's token, made for as long, for whom, and bound to what the request says.

_USUAL_S, _SHORTEST_S, _LONGEST_S = 3600, 600, 2**32


def answer(store: Store, tokens: Tokens, namespace: str, name: str, body: Object) -> Object:
    """The request with its token. Raises StatusError."""
    account = store.get("serviceaccounts", name, namespace)
    try:
        request, _ = conformed(object_shape("authentication.v1.TokenRequest"), body, "TokenRequest")
    except WrongType as wrong:
        raise status.bad_request(f'TokenRequest in version "v1" cannot be handled as a TokenRequest: {wrong}') from None
    spec = request.get("spec") or {}
    seconds = spec.get("expirationSeconds", _USUAL_S)
    _check(seconds)
    audiences = spec.get("audiences") or [AUDIENCE]
    bound = _bound(store, account, spec.get("boundObjectRef"))
    now = store.now()
    token = tokens.issue(account, seconds, now, store.new_uid(), audiences, bound)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": rfc3339(now)},
        "spec": spec | {"audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": rfc3339(int(now) + seconds)},
    }


def _check(seconds: int) -> None:
    if not _SHORTEST_S <= seconds <= _LONGEST_S:
        word = "less than 10 minutes" if seconds < _SHORTEST_S else "larger than 2^32 seconds"
        text = f"Invalid value: {seconds}: may not specify a duration {word}"
        raise status.invalid("TokenRequest", "authentication.k8s.io", "", [("spec.expirationSeconds", text)])


def _bound(store: Store, account: Object, reference: Object | None) -> dict[str, Object]:
    """What the token is bound to, by its name in `BOUND`; a pod's node besides."""
    if not reference:
        return {}
    word, name, uid = str(reference.get("kind", "")).lower(), reference.get("name", ""), reference.get("uid")
    if word not in BOUND or reference.get("apiVersion", "v1") != "v1":
        raise status.bad_request(f"cannot bind token to object of type {reference.get('apiVersion', '')}, Kind={reference.get('kind', '')}")
    obj = store.get(BOUND[word], name, account["metadata"]["namespace"])
    if uid and uid != obj["metadata"]["uid"]:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record. "
        raise status.conflict(BOUND[word], "", name, why + "The object might have been deleted and then recreated")
    if word != "pod":
        return {word: obj}
    if obj["spec"].get("serviceAccountName") != account["metadata"]["name"]:
        runs_as = account["metadata"]["name"]
        raise status.bad_request(f'cannot bind token for serviceaccount "{runs_as}" to pod running with different serviceaccount name.')
    node = store.find("nodes", "", obj["spec"].get("nodeName", ""))
    return {"pod": obj} | ({"node": node} if node is not None else {})
