"""The four types of patches, distinguished by content type.

The patched object is left alone; the result is a new object. The cost of a JSON patch (RFC 6902), a list of operations, is bounded: the
number of operations and the bytes that they copy, as in Kubernetes, and the items that they shift in long lists.
"""

from typing import Any, NamedTuple

from pumice.api import Object
from pumice.api.json_objects import merged
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.admission.attributes import WriteOptions
from pumice.cluster.apiserver.decoding import as_applied
from pumice.cluster.apiserver.metadata import check_head
from pumice.cluster.apiserver.patches.json_patch import PatchError, json_patch
from pumice.cluster.apiserver.patches.server_side_apply import apply
from pumice.cluster.apiserver.patches.strategic_merge import strategic_merge
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.storage.watch import Key


class PatchRequest(NamedTuple):
    """A patch. `type` is one of json, merge, strategic, apply."""

    type: str
    body: Any


def patched(
    kind: ServedKind, live: Object | None, patch: PatchRequest, key: Key, options: WriteOptions, now: float, subresource: str = ""
) -> Object:
    """The object after the patch. It may share parts with `live`. Raises StatusError."""
    if patch.type == "apply":
        return _applied(kind, live, patch.body, key, options, now, subresource)
    assert live is not None
    return changed(kind, live, patch)


def changed(kind: ServedKind, live: Object, patch: PatchRequest) -> Object:
    """The object after a patch of one of the three types that do not depend on managedFields. Raises StatusError."""
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
        raise status.bad_request(str(error)) if malformed else status.StatusError(422, "Invalid", str(error), {}) from None
    if not isinstance(result, dict) or not isinstance(result.get("metadata"), dict):
        raise status.bad_request("the patch leaves no object")
    return result


def _applied(kind: ServedKind, live: Object | None, body: Any, key: Key, options: WriteOptions, now: float, subresource: str) -> Object:
    if not options.manager:
        raise status.invalid("PatchOptions", "meta.k8s.io", "", [("fieldManager", "Required value: is required for apply patch")])
    if not isinstance(body, dict):
        raise status.bad_request("an apply is an object")
    if not (body.get("apiVersion") and body.get("kind")):
        raise status.bad_request(f"invalid object type: {body.get('apiVersion') or '/'}, Kind={body.get('kind') or ''}")
    check_head(kind, body, key[0])
    metadata = body["metadata"]
    if metadata.get("managedFields"):
        raise status.bad_request("metadata.managedFields must be nil")
    if metadata.setdefault("name", key[1]) != key[1]:
        raise status.bad_request("the name of the object does not match the name on the URL")
    if live is None and metadata.get("uid"):
        why = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
        raise status.conflict(kind.plural, kind.group, key[1], why)
    return apply(kind, live, as_applied(kind, body), options.manager, options.force, now, subresource)
