"""The parts of a request: its body, the options in its query, the type of a patch by content type, the target that its path names."""

import json
from typing import Any, NamedTuple

import msgspec

from pumice.api import InputError, Object
from pumice.api.yaml import DoubledKey, documents
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import WriteOptions
from pumice.cluster.apiserver.patches.patch import PatchRequest
from pumice.cluster.apiserver.patches.strategic_merge import CONTENT_TYPES
from pumice.cluster.apiserver.scheme import protobuf
from pumice.cluster.apiserver.scheme.kinds import KindTable, ServedKind
from pumice.cluster.apiserver.status import StatusError, bad_request, unsupported_media
from pumice.http.messages import Request

MAX_DEPTH = 100
LARGEST_YAML = 128 * 1024  #: bytes; YAML takes a hundred times as long to read as JSON
_decode = msgspec.json.decode


def read(body: bytes, content_type: str, kind: str = "") -> Any:
    """The value in a body, which is JSON, YAML or protobuf. Raises StatusError; `kind` is the kind of object that it should be."""
    media = content_type.partition(";")[0].strip().lower()
    if media in ("", "application/json") or media.endswith("+json"):
        return _read_json(body, kind)
    if media.endswith("yaml"):
        return _read_yaml(body)
    if media == protobuf.CONTENT_TYPE:
        value = protobuf.decode(body)
        _refuse_depth(value)
        return value
    raise unsupported_media(media)


def read_object(body: bytes, content_type: str, kind: str = "") -> dict[str, Any]:
    value = read(body, content_type, kind)
    if not isinstance(value, dict):
        raise bad_request("the body of the request is not an object")
    return value


def _read_json(body: bytes, kind: str = "") -> Any:
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        what = f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; " if kind else ""
        raise bad_request(f"{what}json parse error: {error}") from None
    except RecursionError:
        raise _too_deep() from None
    if body.count(b"{") + body.count(b"[") > MAX_DEPTH:
        _refuse_depth(value)
    return value


def _read_yaml(body: bytes) -> Any:
    if body.lstrip()[:1] == b"{":
        try:
            return _read_json(body)
        except StatusError:
            pass
    if len(body) > LARGEST_YAML:
        raise bad_request(f"the body of the request is YAML of {len(body)} bytes; more than {LARGEST_YAML} may come as JSON only")
    try:
        found = [document.value for document in documents(body, "body")]
    except DoubledKey as error:
        raise bad_request(f'error converting YAML to JSON: yaml: line {error.line}: key "{error.key}" already set in map') from None
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


def _too_deep() -> StatusError:
    return bad_request(f"the body of the request nests more than {MAX_DEPTH} levels deep")


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as its fields, which may stand twice."""


def doubled_fields(body: bytes) -> list[str]:
    """The paths of fields that occur more than once in one JSON object, of which decoders silently keep the last value."""
    try:
        read = json.loads(body, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return []
    doubled: dict[str, None] = {}
    left = [("", read)]
    while left:
        path, value = left.pop()
        if isinstance(value, _Pairs):
            seen: set[str] = set()
            for key, inner in value:
                place = f"{path}.{key}" if path else key
                if key in seen:
                    doubled[place] = None
                seen.add(key)
                left.append((place, inner))
        elif isinstance(value, list):
            left += [(f"{path}[{index}]", inner) for index, inner in enumerate(value)]
    return list(doubled)


class Target(NamedTuple):
    """What a request is about: a kind, and an object or a subresource of it. A part that the path does not have is empty."""

    kind: ServedKind
    namespace: str
    name: str
    subresource: str


def place_of(path: str) -> tuple[str, str, str, str, str, str] | None:
    """Group, version, plural, namespace, name and subresource of a path `/api/v1/...` or `/apis/group/version/...`; None for others."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and not (len(rest) == 3 and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3 or not all(rest):
        return None
    name = rest[1] if len(rest) > 1 else ""
    return group, version, rest[0], namespace, name, rest[2] if len(rest) > 2 else ""


def target_of(kinds: KindTable, path: str) -> Target | None:
    """The target of a path; None if nothing is served there."""
    place = place_of(path)
    if place is None:
        return None
    group, version, plural, namespace, name, subresource = place
    kind = kinds.at(group, version, plural)
    if (
        kind is None
        or (namespace and not kind.namespaced)
        or (name and kind.namespaced and not namespace)
        or (subresource and not has_subresource(kind, subresource))
    ):
        return None
    return Target(kind, namespace, name, subresource)


def has_subresource(kind: ServedKind, subresource: str) -> bool:
    if subresource == "status":
        return kind.has_status
    if subresource == "scale":
        return kind.scale is not None
    return subresource in kind.subresources


_LONGEST_MANAGER = 128


def options_of(request: Request) -> WriteOptions:
    """The options of a write, from the query of its request. Raises StatusError 422."""
    query = request.query
    dry_run = query.get("dryRun")
    if dry_run not in (None, "", "All"):
        raise status.invalid("CreateOptions", "meta.k8s.io", "", [("dryRun", f'Unsupported value: "{dry_run}": supported values: "All"')])
    validation = query.get("fieldValidation") or "Warn"
    if validation not in ("Strict", "Warn", "Ignore"):
        text = f'Unsupported value: "{validation}": supported values: "Ignore", "Strict", "Warn"'
        raise status.invalid("CreateOptions", "meta.k8s.io", "", [("fieldValidation", text)])
    manager = query.get("fieldManager", "")
    if len(manager) > _LONGEST_MANAGER or not manager.isprintable():
        rule = f"may have at most {_LONGEST_MANAGER} characters, all of them printable"
        raise status.invalid("PatchOptions", "meta.k8s.io", "", [("fieldManager", f'Invalid value: "{manager[:20]}": {rule}')])
    if not manager and "apply" not in request.headers.get("content-type", ""):
        manager = request.headers.get("user-agent", "").split("/")[0][:_LONGEST_MANAGER]
    return WriteOptions(dry_run == "All", manager, validation, request.flag("force"), request.user, tracked=True, owned=True)


def patch_of(request: Request, options: WriteOptions) -> PatchRequest:
    media = request.headers.get("content-type", "").partition(";")[0].strip()
    patch_type = CONTENT_TYPES.get(media)
    if patch_type is None:
        raise status.unsupported_media(media)
    if options.force and patch_type != "apply":
        text = "Forbidden: may not be specified for non-apply patch"
        raise status.invalid("PatchOptions", "meta.k8s.io", "", [("force", text)])
    if "fieldValidation" in request.query and patch_type != "json":
        options.doubled += doubled_fields(request.body)
    return PatchRequest(patch_type, read(request.body, "application/yaml" if media.endswith("yaml") else "application/json"))


def name_matches(obj: Object, target: Target) -> None:
    """Check that the object of a PUT is the one that its path names. Raises StatusError 400."""
    metadata: Any = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise status.bad_request("the object provided is unrecognized: it has no metadata")
    if metadata.get("name") != target.name:
        raise status.bad_request(f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL ({target.name})")
    if target.kind.namespaced and metadata.setdefault("namespace", target.namespace) != target.namespace:
        text = f"the namespace of the object ({metadata['namespace']}) does not match the namespace on the request ({target.namespace})"
        raise status.bad_request(text)
