"""What a request says besides its object: options in the query, patches by content type, the name in the path."""

from __future__ import annotations

from typing import Any

from pumice.apiserver import bodies, status
from pumice.apiserver.admission import Options
from pumice.apiserver.patching import CONTENT_TYPES, Patch
from pumice.apiserver.routes import Target
from pumice.apiserver.shapes import Object
from pumice.web.messages import Request

_LONGEST_MANAGER = 128


def options_of(request: Request) -> Options:
    """What the query says about a write. Raises ApiError 400, 422."""
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
    return Options(dry_run == "All", manager, validation, request.flag("force"), request.user, tracked=True, owned=True)


def patch_of(request: Request) -> Patch:
    media = request.headers.get("content-type", "").partition(";")[0].strip()
    patch_type = CONTENT_TYPES.get(media)
    if patch_type is None:
        raise status.unsupported_media(media)
    return Patch(patch_type, bodies.read(request.body, "application/yaml" if media.endswith("yaml") else "application/json"))


def name_matches(obj: Object, target: Target) -> None:
    """A PUT's object must be the one of its path."""
    metadata: Any = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise status.bad_request("the object provided is unrecognized: it has no metadata")
    if metadata.get("name") != target.name:
        raise status.bad_request(f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL ({target.name})")
    if target.kind.namespaced and metadata.setdefault("namespace", target.namespace) != target.namespace:
        text = f"the namespace of the object ({metadata['namespace']}) does not match the namespace on the request ({target.namespace})"
        raise status.bad_request(text)
