"""The four kinds of patches, told apart by content type."""

from __future__ import annotations

from typing import Any, NamedTuple

from pumice.api.json_objects import merged
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission import Options
from pumice.cluster.apiserver.decoding import shaped
from pumice.cluster.apiserver.json_patch import PatchError, json_patch
from pumice.cluster.apiserver.kinds import Kind
from pumice.cluster.apiserver.metadata import check_head
from pumice.cluster.apiserver.schema import Object
from pumice.cluster.apiserver.server_side_apply import apply
from pumice.cluster.apiserver.strategic_merge_patch import strategic_merge
from pumice.cluster.apiserver.watch import Key

CONTENT_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
    "application/apply-patch+json": "apply",
}


class Patch(NamedTuple):
    """`type` is one of json, merge, strategic, apply."""

    type: str
    body: Any


def patched(kind: Kind, live: Object | None, patch: Patch, key: Key, options: Options, now: float, subresource: str = "") -> Object:
    """The object as the patch would have it. It may share parts with `live`. Raises ApiError."""
    if patch.type == "apply":
        return _applied(kind, live, patch.body, key, options, now, subresource)
    assert live is not None
    return changed(kind, live, patch)


def changed(kind: Kind, live: Object, patch: Patch) -> Object:
    """One of the three patches that need no memory. Raises ApiError."""
    try:
        if patch.type == "json":
            result = json_patch(live, patch.body)
        elif patch.type == "merge":
            if not isinstance(patch.body, dict):
                raise PatchError("a merge patch is an object")
            result = merged(live, patch.body)
        elif kind.custom:
            raise status.unsupported_media("application/strategic-merge-patch+json")
        else:
            result = strategic_merge(kind.shape, live, patch.body)
    except PatchError as error:
        malformed = patch.type != "json" or not isinstance(patch.body, list)
        raise status.bad_request(str(error)) if malformed else status.ApiError(422, "Invalid", str(error), {}) from None
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise status.bad_request("the patch leaves no object")
    return result


def _applied(kind: Kind, live: Object | None, body: Any, key: Key, options: Options, now: float, subresource: str) -> Object:
    if not options.manager:
        raise status.invalid("PatchOptions", "meta.k8s.io", "", [("fieldManager", "Required value: is required for apply patch")])
    if not isinstance(body, dict):
        raise status.bad_request("an apply is an object")
    check_head(kind, body, key[0])
    metadata = body["metadata"]
    if metadata.get("managedFields"):
        raise status.bad_request("metadata.managedFields must be nil")
    if metadata.setdefault("name", key[1]) != key[1]:
        raise status.bad_request("the name of the object does not match the name on the URL")
    if not kind.custom:
        body = shaped(kind, body, options)
    return apply(kind, live, body, options.manager, options.force, now, subresource)
