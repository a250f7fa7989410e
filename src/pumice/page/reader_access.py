"""Who may read a page that is served beyond this machine. As in kube-rbac-proxy, a TokenReview finds the user of a bearer token, and a
SubjectAccessReview finds whether that user may get the non-resource URL /pumice/page.

An answer is kept for ten seconds, for all requests with that token. Unknown users cost the API server little: the number of reviews under
way at a time is limited, and so is the number of answers that are kept.
"""

import asyncio
import hashlib
from collections.abc import Awaitable
from functools import partial
from typing import Any

import msgspec

from pumice.api.kinds import SUBJECT_ACCESS_REVIEWS, TOKEN_REVIEWS, Kind
from pumice.client.failures import KubeError
from pumice.client.transport import Transport
from pumice.http.listener import Handler
from pumice.http.messages import Request, Response, Stream
from pumice.page.files import UNCACHED

PATH = "/pumice/page"  #: a path of its own: `/api/*` is open to every user by system:discovery
HELD_S = 10.0
HELD = 1000  #: answers
MOST_UNDER_WAY = 16
NO_TOKEN = "who reads this page shows a bearer token, such as that of `kubectl create token NAME`"
STRANGER = "the cluster does not know this token; it may have run out: `kubectl create token NAME` makes another"


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class _TokenStatus(msgspec.Struct):
    authenticated: bool = False
    user: _User = _User()


class _AccessStatus(msgspec.Struct):
    allowed: bool = False


class _TokenReview(msgspec.Struct):
    status: _TokenStatus


class _AccessReview(msgspec.Struct):
    status: _AccessStatus


_token_review = msgspec.json.Decoder(_TokenReview).decode
_access_review = msgspec.json.Decoder(_AccessReview).decode


class ReaderRefusal(msgspec.Struct, frozen=True):
    code: int
    line: str

    def respond(self) -> Response:
        asks = (("WWW-Authenticate", "Bearer"),) if self.code == 401 else ()
        return Response.json({"error": self.line}, self.code, headers=(*UNCACHED, *asks))


class Readers:
    """Reviews of bearer tokens, kept for a while. The user of the transport must be allowed to create both kinds of reviews."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._asked: dict[bytes, asyncio.Task[ReaderRefusal | None]] = {}  #: by the token's hash
        self._under_way = 0

    def only(self, answer: Handler) -> Handler:
        """The handler, for requests of users who may read; other requests are refused."""

        async def guarded(request: Request) -> Response | Stream:
            refusal = await self.refusal(request)
            if refusal is not None:
                return refusal.respond()
            found = answer(request)
            return await found if isinstance(found, Awaitable) else found

        return guarded

    async def refusal(self, request: Request) -> ReaderRefusal | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return ReaderRefusal(401, NO_TOKEN)
        key = hashlib.sha256(token.encode()).digest()
        if key not in self._asked:
            if self._under_way >= MOST_UNDER_WAY:
                return ReaderRefusal(429, "too many ask who they are at once; try again in a second")
            self._under_way += 1
            self._asked[key] = asyncio.ensure_future(self._refuses(token))
            self._asked[key].add_done_callback(partial(self._hold, key))
        return await asyncio.shield(self._asked[key])

    def _hold(self, key: bytes, asked: asyncio.Task[ReaderRefusal | None]) -> None:
        self._under_way -= 1
        unanswered = (refusal := asked.result()) is not None and refusal.code == 503
        asyncio.get_running_loop().call_later(0 if unanswered else HELD_S, self._asked.pop, key, None)
        while len(self._asked) > HELD:
            del self._asked[next(iter(self._asked))]

    async def _refuses(self, token: str) -> ReaderRefusal | None:
        try:
            whose = _review(TOKEN_REVIEWS, {"token": token})
            found = _token_review(await self._transport.create(TOKEN_REVIEWS, whose, repeatable=True)).status
            if not found.authenticated:
                return ReaderRefusal(401, STRANGER)
            user = found.user
            wanted = {"nonResourceAttributes": {"path": PATH, "verb": "get"}}
            about = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
            may = _review(SUBJECT_ACCESS_REVIEWS, about | wanted)
            allowed = _access_review(await self._transport.create(SUBJECT_ACCESS_REVIEWS, may, repeatable=True)).status.allowed
        except KubeError as error:
            return ReaderRefusal(503, f"the API server did not tell who you are: {error}")
        except msgspec.DecodeError as error:
            return ReaderRefusal(503, f"the API server told who you are in words that are not understood: {error}")
        line = f'"{user.username}" may not read this page: its role must allow to get the non-resource URL {PATH}'
        return None if allowed else ReaderRefusal(403, line)


def _review(kind: Kind, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
