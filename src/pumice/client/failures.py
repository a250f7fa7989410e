"""The failures of a call to an API server.

There are four, because callers must act differently on them. `ApiError`: the server refused the call; nothing happened unless it is a
5xx. `NoAnswer`: no answer came; the call may have been carried out. `Fenced` and `NoCredentials`: the call was not sent at all, because
the lease is no longer ours, or for want of credentials.
"""

from types import TracebackType

import msgspec

from pumice.http.parser import LONGEST_WAIT_S, waiting_time_s


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


class despite:
    """A context that goes on quietly after a refusal with one of these codes or reasons."""

    def __init__(self, *refusals: int | str) -> None:
        self._refusals = refusals

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        return isinstance(error, ApiError) and (error.code in self._refusals or error.reason in self._refusals)


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
