"""The seam between what we want of an API server and how it gets there.

`Transport` has a method for each verb, in Kubernetes' words, and no policy of its own. `Client` is the one over HTTP. Single objects come
back as the JSON they are, for the caller to decode into just the fields it reads; lists come page by page with their items undecoded, and
watches as batches of lines, so that one odd object spoils nothing but itself.

`repeatable` says that the write may reach the server twice without harm; see `Retry`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Protocol, TypeVar

import msgspec

from pumice.api.kinds import Kind, ObjectRef

as_dict = msgspec.json.Decoder(dict[str, Any]).decode


class ListScope(msgspec.Struct, frozen=True):
    """Which objects of a resource: all, or those of a namespace, or those that selectors choose."""

    resource: Kind
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Page(msgspec.Struct):
    """Part of a list. All pages of one list show the same instant, `resource_version`."""

    items: list[msgspec.Raw]
    resource_version: str


class PatchType(Enum):
    """The content types of the three patches that clients send."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Transport(Protocol):
    """Raises ApiError, NoAnswer and, for writes only, Fenced."""

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes: ...

    def pages(self, scope: ListScope, *, limit: int = 500) -> AsyncIterator[Page]:
        """The list as it is now. ApiError 410 if it took so long that the server forgot that instant. No limit with 0."""

    def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        """The lines of a watch from that version on, until the server ends it. NoAnswer after `idle_s` of silence."""

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes: ...

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes: ...

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes: ...

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        """Delete that very object: if `ref` has a uid, another of its name is left alone (409). ApiError 404 if somebody else did.
        `propagation` says what becomes of what it owns (Background, Foreground, Orphan); "": as the server does by default."""


# JSON that is nested deeper than a decoder can go: who may write an object may nest its managedFields as deep as a server lets them.

DEEPEST = 200  #: levels that are kept; what lies deeper reads as null

T = TypeVar("T", covariant=True)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{\]}]', re.DOTALL)


class Decoder(Protocol[T]):
    def decode(self, raw: bytes, /) -> T: ...


def decode(decoder: Decoder[T], raw: bytes) -> T:
    """What the decoder makes of it, without what lies too deep for it."""
    try:
        return decoder.decode(raw)
    except RecursionError:
        return decoder.decode(shallow(raw))


def shallow(raw: bytes) -> bytes:
    kept, begin, level = [], 0, 0
    for token in _TOKEN.finditer(raw):
        bracket = token[0]
        if bracket in (b"[", b"{"):
            level += 1
            if level == DEEPEST + 1:
                kept += [raw[begin : token.start()], b"null"]
        elif bracket in (b"]", b"}"):
            if level == DEEPEST + 1:
                begin = token.end()
            level -= 1
    return b"".join([*kept, raw[begin:]])


# What can come back from an API server instead of an answer.
#
# Four cases, because callers must act differently on them: the server refused (`ApiError`, nothing happened unless it is a 5xx), nothing
# came back (`NoAnswer`, it may have happened), or we did not send it at all: `Fenced`, the lease is no longer ours, and `NoCredentials`.


class KubeError(Exception):
    """A call to an API server that brought no result."""


class ApiError(KubeError):
    """The server answered with a failure. `reason` is Kubernetes' word for it (NotFound, Conflict, AlreadyExists, Expired, ...)."""

    def __init__(self, code: int, reason: str = "", message: str = "", retry_after_s: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s  #: the server asks to wait so long; with it, the request was not carried out
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")


class NoAnswer(KubeError):
    """The connection failed or time ran out. With `sent`, the server may have done what was asked."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


class Fenced(KubeError):
    """Not sent, because another replica may lead by now."""


class NoCredentials(KubeError):
    """Not sent, because there is nothing to prove who we are: a token file or an exec plugin fails. It may come back."""


class _Details(msgspec.Struct):
    retryAfterSeconds: float = 0.0


class _Status(msgspec.Struct):
    """The answer of kind Status, as far as it is read."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_status = msgspec.json.Decoder(_Status)


def api_error(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """The error in an answer or in an ERROR event of a watch, whoever wrote it: proxies answer with plain text."""
    try:
        status = _status.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = _Status(message=body[:200].decode("utf-8", "replace").strip())
    seconds = float(retry_after) if retry_after.isdecimal() else status.details.retryAfterSeconds if status.details else 0.0
    asked = bool(retry_after.isdecimal() or seconds)
    return ApiError(status.code or code, status.reason, status.message, seconds if asked else None)
