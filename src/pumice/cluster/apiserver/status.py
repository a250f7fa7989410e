"""Refusals as the API answers them: an exception that is a `Status` object on the wire.

`StatusError` is raised anywhere below the HTTP layer, by the store, too. The functions below choose codes, reasons and messages, so that
kubectl prints what its users know.
"""

from typing import Any

from pumice.http.messages import Response

LARGEST_OBJECT = 1536 * 1024  #: bytes of its JSON
LONGEST_CAUSE = 6000  #: characters of a cause that are told whole; the message of a rule of a CRD has up to 5,120
QUOTED = 300  #: characters that are told of the beginning and of the end of a longer one


class StatusError(Exception):
    """The refusal of a request. `details` has the parts that kubectl prints: name, group, kind, causes, retryAfterSeconds."""

    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.metadata: dict[str, str] = {}  #: of the Status

    def status(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        body["reason"] = self.reason
        if self.details:
            body["details"] = self.details
        body["code"] = self.code
        return body


def refusal(error: StatusError) -> Response:
    """The HTTP answer for an error."""
    seconds = (error.details or {}).get("retryAfterSeconds")
    return Response.json(error.status(), error.code, headers=(("Retry-After", str(seconds)),) if seconds else ())


def success(code: int = 200, details: dict[str, Any] | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = details
    return body if code == 200 else body | {"code": code}


def _resource(plural: str, group: str) -> str:
    return f"{plural}.{group}" if group else plural


def _details(plural: str, group: str, name: str) -> dict[str, Any]:
    details = {"name": name} if name else {}
    if group:
        details["group"] = group
    return details | {"kind": plural}


def not_found(plural: str, group: str, name: str) -> StatusError:
    return StatusError(404, "NotFound", f'{_resource(plural, group)} "{name}" not found', _details(plural, group, name))


def no_such_path() -> StatusError:
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(plural: str, group: str, name: str) -> StatusError:
    return StatusError(409, "AlreadyExists", f'{_resource(plural, group)} "{name}" already exists', _details(plural, group, name))


def conflict(plural: str, group: str, name: str, why: str) -> StatusError:
    text = f'Operation cannot be fulfilled on {_resource(plural, group)} "{name}": {why}'
    return StatusError(409, "Conflict", text, _details(plural, group, name))


def stale(plural: str, group: str, name: str) -> StatusError:
    return conflict(plural, group, name, "the object has been modified; please apply your changes to the latest version and try again")


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def invalid(kind: str, group: str, name: str, causes: list[tuple[str, str]]) -> StatusError:
    """The refusal of an invalid object. `causes` are pairs of a field path and a text, such as `Invalid value: -1: must be positive`."""
    name, causes = _quoted(name), [(_quoted(field), _quoted(message)) for field, message in causes]
    subject = f'{kind}.{group} "{name}"' if group else f'{kind} "{name}"'
    texts = [f"{field}: {message}" for field, message in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details = _details(kind, group, name)
    details["causes"] = [{"reason": _cause(message), "message": message, "field": field} for field, message in causes]
    return StatusError(422, "Invalid", f"{subject} is invalid: {text}", details)


def _quoted(text: str) -> str:
    """The text without its middle if it is very long: it has in it what was sent."""
    return text if len(text) <= LONGEST_CAUSE else f"{text[:QUOTED]}...{text[-QUOTED:]}"


def _cause(message: str) -> str:
    reason_text = {
        "Required value": "FieldValueRequired",
        "Duplicate value": "FieldValueDuplicate",
        "Unsupported value": "FieldValueNotSupported",
        "Forbidden": "FieldValueForbidden",
        "Too many": "FieldValueTooMany",
        "Too long": "FieldValueTooLong",
    }
    return reason_text.get(message.partition(":")[0], "FieldValueInvalid")


def forbidden(plural: str, group: str, name: str, why: str) -> StatusError:
    subject = f'{_resource(plural, group)} "{name}"' if name else _resource(plural, group)
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", _details(plural, group, name))


def unauthorized() -> StatusError:
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed(verb: str) -> StatusError:
    return StatusError(405, "MethodNotAllowed", f"the server does not allow this method on the requested resource ({verb})", {})


def expired(message: str = "The resourceVersion for the provided watch is too old.") -> StatusError:
    return StatusError(410, "Expired", message)


def unsupported_media(content_type: str) -> StatusError:
    return StatusError(415, "UnsupportedMediaType", f'the body of the request was in an unknown format: "{content_type}"', {})


def too_large(size: int, limit: int) -> StatusError:
    """The refusal of an object that is too large. `size` is that of the object, or of the part of it that was looked at."""
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: the object has {size} bytes in JSON, the limit is {limit}")


def full(size: int, limit: int) -> StatusError:
    """The refusal of a write because the store is full, as etcd refuses it. Its code is its own, so that it is not taken for a fault."""
    message = f"database space exceeded: all objects would have {size} bytes in JSON, the limit is {limit}; delete some of them"
    return StatusError(507, "InsufficientStorage", message)


def too_many_requests(message: str, retry_after_s: int = 0, causes: list[dict[str, str]] | None = None) -> StatusError:
    details: dict[str, Any] = {"causes": causes} if causes else {}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    return StatusError(429, "TooManyRequests", message, details)


def unavailable(message: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", message)
