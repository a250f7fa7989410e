"""The interface to an API server, apart from how requests get there.

`Transport` has a method for each of Kubernetes' verbs, and no policy of its own. `Client` implements it over HTTP. A single object is
returned as JSON, and the caller decodes just the fields that it reads. A list comes page by page with its items undecoded, and a watch
as batches of lines, so that one malformed object does not affect the others.

`repeatable` says that the write may reach the server twice without harm; see `Retry`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Protocol, TypeVar

import msgspec

from pumice.api.kinds import Kind, ObjectRef
from pumice.http.parser import LONGEST_WAIT_S, waiting_time_s

as_dict = msgspec.json.Decoder(dict[str, Any]).decode


class ListScope(msgspec.Struct, frozen=True):
    """The objects of a resource to list or watch: all objects, or those of one namespace, or those that selectors choose."""

    resource: Kind
    namespace: str = ""
    field_selector: str = ""
    label_selector: str = ""


class Page(msgspec.Struct):
    """A part of a list. All pages of one list show the state at the same `resource_version`."""

    items: list[msgspec.Raw]
    resource_version: str


class PatchType(Enum):
    """The content types of the three patches that clients send."""

    JSON = "application/json-patch+json"
    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"


class Transport(Protocol):
    """The calls to an API server. They raise ApiError, NoAnswer, NoCredentials and, for writes only, Fenced."""

    async def get(self, resource: Kind, ref: ObjectRef) -> bytes: ...

    def pages(self, scope: ListScope, *, limit: int = 500, not_older: int = 0) -> AsyncIterator[Page]:
        """The pages of the list as it is now; one page if `limit` is 0. ApiError 410 if reading took so long that the server forgot it, and
        504 if it has not come to the version `not_older` (`ApiError.is_too_large`)."""

    def watch(self, scope: ListScope, *, resource_version: str, timeout_s: int, idle_s: float) -> AsyncIterator[list[bytes]]:
        """The lines of a watch from that version on, until the server ends it. Raises NoAnswer after `idle_s` seconds of silence."""

    async def create(
        self, resource: Kind, body: Any, namespace: str = "", *, name: str = "", subresource: str = "", repeatable: bool = False
    ) -> bytes: ...

    async def update(self, resource: Kind, ref: ObjectRef, body: Any, *, subresource: str = "", repeatable: bool = False) -> bytes: ...

    async def patch(
        self, resource: Kind, ref: ObjectRef, body: Any, patch_type: PatchType, *, subresource: str = "", repeatable: bool = False
    ) -> bytes: ...

    async def delete(self, resource: Kind, ref: ObjectRef, *, propagation: str = "", grace_s: int | None = None) -> None:
        """Delete the object. If `ref` has a uid, an object with another uid is left alone (ApiError 409). ApiError 404 if it is gone.
        `propagation` says what happens to its dependents (Background, Foreground, Orphan); "" leaves this to the server."""


# JSON that is nested too deeply for a decoder: a user who may write an object may nest its managedFields as deeply as the server allows.

DEEPEST = 200  #: the levels that are kept; a value that lies deeper reads as null

T = TypeVar("T", covariant=True)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{\]}]', re.DOTALL)


class Decoder(Protocol[T]):
    def decode(self, raw: bytes, /) -> T: ...


def decode(decoder: Decoder[T], raw: bytes) -> T:
    """The decoded value; parts that are nested too deeply for the decoder read as null."""
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


# The failures of a call to an API server.
#
# There are four, because callers must act differently on them. `ApiError`: the server refused the call; nothing happened unless it is a
# 5xx. `NoAnswer`: no answer came; the call may have been carried out. `Fenced` and `NoCredentials`: the call was not sent at all, because
# the lease is no longer ours, or for want of credentials.


class KubeError(Exception):
    """A call to an API server that brought no result."""


class ApiError(KubeError):
    """The server answered with a failure. `reason` is Kubernetes' word for it (NotFound, Conflict, AlreadyExists, Expired, ...)."""

    def __init__(self, code: int, reason: str = "", message: str = "", retry_after_s: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_s = retry_after_s  #: the seconds that the server asks to wait; if set, the request was not carried out
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")

    @property
    def is_too_large(self) -> bool:
        """Whether the server has not come to the resource version that it was asked about."""
        return self.code == 504 and "Too large resource version" in self.message


class NoAnswer(KubeError):
    """The connection failed or timed out. If `sent`, the server may have carried out the call."""

    def __init__(self, message: str, *, sent: bool) -> None:
        self.sent = sent
        super().__init__(message)


class Fenced(KubeError):
    """The write was not sent, because another replica may be the leader by now."""


class NoCredentials(KubeError):
    """The call was not sent, because our credentials cannot be had: a token file or an exec plugin fails. A later call may succeed."""


class _Details(msgspec.Struct):
    retryAfterSeconds: float = 0.0


class _Status(msgspec.Struct):
    """An answer of kind Status: the fields that are read."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_status = msgspec.json.Decoder(_Status)


def api_error(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """The error in an answer or in an ERROR event of a watch. The body need not be JSON: proxies answer with plain text."""
    try:
        status = _status.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = _Status(message=body[:200].decode("utf-8", "replace").strip())
    seconds = waiting_time_s(retry_after)
    if seconds is None and status.details is not None and status.details.retryAfterSeconds > 0:
        seconds = min(status.details.retryAfterSeconds, LONGEST_WAIT_S)
    return ApiError(status.code or code, status.reason, status.message, seconds)
