"""What can come back from an API server instead of an answer.

Four cases, because callers must act differently on them: the server refused (`ApiError`, nothing happened unless it is a 5xx), nothing
came back (`NoAnswer`, it may have happened), or we did not send it at all: `Fenced`, the lease is no longer ours, and `NoCredentials`.
"""

from __future__ import annotations

import msgspec


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
