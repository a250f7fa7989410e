"""Bodies of requests: JSON, YAML and the protobuf of `kubectl create`, with a limit on how deep they nest."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pumice.api.errors import InputError
from pumice.api.yaml import documents
from pumice.apiserver import protobuf
from pumice.apiserver.status import ApiError, bad_request, unsupported_media

MAX_DEPTH = 100
LARGEST_YAML = 128 * 1024  #: it takes a hundred times as long to read as JSON
_decode = msgspec.json.decode


def read(body: bytes, content_type: str) -> Any:
    """The value a body holds. Raises ApiError."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", "application/json") or media.endswith("+json"):
        return _read_json(body)
    if media.endswith("yaml"):
        return _read_yaml(body)
    if media == protobuf.CONTENT_TYPE:
        return protobuf.decode(body)
    raise unsupported_media(media)


def read_object(body: bytes, content_type: str) -> dict[str, Any]:
    value = read(body, content_type)
    if not isinstance(value, dict):
        raise bad_request("the body of the request is not an object")
    return value


def _read_json(body: bytes) -> Any:
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _refuse_depth(value)
    return value


def _read_yaml(body: bytes) -> Any:
    if body.lstrip()[:1] == b"{":
        try:
            return _read_json(body)
        except ApiError:
            pass
    if len(body) > LARGEST_YAML:
        raise bad_request(f"the body of the request is YAML of {len(body)} bytes; more than {LARGEST_YAML} may come as JSON only")
    try:
        found = [document.value for document in documents(body, "body")]
    except InputError as error:
        raise bad_request(f"the body of the request is not YAML: {error}") from None
    if len(found) != 1:
        raise bad_request(f"the body of the request has {len(found)} documents, not one")
    _refuse_depth(found[0])
    return found[0]


def _refuse_depth(value: Any) -> None:
    layer = [value]
    for _ in range(MAX_DEPTH):
        layer = [item for one in layer for item in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())]
        if not layer:
            return
    raise _too_deep()


def _too_deep() -> ApiError:
    return bad_request(f"the body of the request nests more than {MAX_DEPTH} levels deep")


def doubled_fields(body: bytes) -> list[str]:
    """Keys that stand twice in one JSON object, which decoders silently resolve."""
    doubled: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            doubled.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return found

    try:
        json.loads(body, object_pairs_hook=look)
    except (ValueError, RecursionError):
        return []
    return doubled
