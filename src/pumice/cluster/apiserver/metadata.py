"""The metadata that every object has, and the fields of it that the server itself sets."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pumice.api import Object, rfc3339
from pumice.api.json_objects import same
from pumice.cluster.apiserver.scheme.kinds import ServedKind
from pumice.cluster.apiserver.status import bad_request, conflict, stale
from pumice.cluster.apiserver.validation.field_rules import Causes, compact, invalid, missing, repeated
from pumice.cluster.apiserver.validation.label_rules import annotation_causes, label_causes
from pumice.cluster.apiserver.validation.name_rules import named, named_object

_PATH_SEGMENT_KINDS = frozenset(
    {"rbac.authorization.k8s.io", "apiregistration.k8s.io"}
)  #: groups whose objects may have any name that is a path segment
_COLLECTING = ("orphan", "foregroundDeletion")  #: finalizers of the garbage collector
_KEPT = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "namespace", "generation", "selfLink")
_HEXADECIMAL = re.compile(r"[0-9a-f-]{12,}")
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def set_identity(kind: ServedKind, obj: Object, namespace: str, uid: str, now: float) -> str:
    """Set the metadata that a new object gets from the server. Returns the object's name."""
    metadata: dict[str, Any] = obj["metadata"]
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = metadata["generateName"][:58] + name_suffix(uid)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = _stamp(int(now // 1))
    for field in ("resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        metadata.pop(field, None)
    if kind.namespaced:
        metadata["namespace"] = namespace
    else:
        metadata.pop("namespace", None)
    if counts_generations(kind):
        metadata["generation"] = 1
    return str(metadata.get("name") or "")


@lru_cache(maxsize=16)
def _stamp(second: int) -> str:
    return rfc3339(second)


@lru_cache(maxsize=16)
def name_suffix(uid: str) -> str:
    """Five letters for generateName, computed from the uid, so that equal uids give equal names."""
    number = int(uid.replace("-", "")[-12:], 16) if _HEXADECIMAL.fullmatch(uid) else sum(map(ord, uid)) * 2654435761
    letters = ""
    for _ in range(5):
        number, index = divmod(number, len(_SUFFIX_LETTERS))
        letters += _SUFFIX_LETTERS[index]
    return letters


_COUNTED_GROUPS = frozenset(
    {"apps", "batch", "policy", "networking.k8s.io", "apiextensions.k8s.io"}
    | {"admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io"}
)
_COUNTED = frozenset(
    {"pods", "replicationcontrollers", "podtemplates", "endpointslices.discovery.k8s.io"}
    | {"resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io", "priorityclasses.scheduling.k8s.io"}
)


def counts_generations(kind: ServedKind) -> bool:
    return kind.custom or kind.resource in _COUNTED or (kind.group in _COUNTED_GROUPS and kind.kind != "ControllerRevision")


def count_generation(kind: ServedKind, obj: Object, old: Object) -> None:
    """Increase the generation of `obj` if more than metadata and status have changed; of a Deployment, also if annotations have."""
    if not counts_generations(kind):
        return
    before = old["metadata"].get("generation", 1)
    is_same = same_but_status(kind, obj, old)
    if kind.resource == "deployments.apps":
        is_same = is_same and (obj["metadata"].get("annotations") or {}) == (old["metadata"].get("annotations") or {})
    obj["metadata"]["generation"] = before if is_same else before + 1


def same_but_status(kind: ServedKind, one: Object, other: Object) -> bool:
    """Whether two states of an object differ at most in metadata and status, and so are of one generation. The status of a custom kind
    without the subresource counts like any other field."""
    ignored = ("metadata", "status") if kind.has_status or not kind.custom else ("metadata",)
    return all(same(one.get(key), other.get(key)) for key in {*one, *other} if key not in ignored)


def check_head(kind: ServedKind, obj: Object, namespace: str) -> None:
    """Check that the object has the kind and the namespace of its path. Raises StatusError 400."""
    given = obj.setdefault("apiVersion", kind.api_version), obj.setdefault("kind", kind.kind)
    if given != (kind.api_version, kind.kind):
        expected = f"the expected API version ({kind.api_version}, Kind={kind.kind})"
        raise bad_request(f"the API version in the data ({given[0]}, Kind={given[1]}) does not match {expected}")
    metadata = obj.setdefault("metadata", {})
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise bad_request(f"{kind.kind} in version {kind.version} cannot be handled as a {kind.kind}: metadata is not an object")
    inside = metadata.get("namespace")
    if kind.namespaced and inside and namespace and inside != namespace:
        raise bad_request(
            f"the namespace of the provided object does not match the namespace sent on the request ({inside} is not {namespace})"
        )


_CHECKED = ("name", "generateName", "labels", "annotations", "finalizers", "ownerReferences")
_NAMED_BY_LABELS = ("namespaces", "services", "statefulsets.apps")  #: whose names are parts of host names


def metadata_causes(kind: ServedKind, metadata: dict[str, Any], before: dict[str, Any] | None) -> Causes:
    """The causes for refusing the metadata: its name, labels, annotations and owner references, if they differ from those
    of a stored object in `before`."""
    if before is not None and all(metadata.get(field) == before.get(field) for field in _CHECKED):
        return []
    name, prefix = metadata.get("name"), metadata.get("generateName")
    causes: Causes = []
    if prefix:
        tried = f"{prefix[:-1]}a" if prefix[-1] == "-" else prefix
        wrong = _name_causes(kind, tried, "metadata.generateName")
        causes += [(place, text.replace(compact(tried), compact(prefix), 1)) for place, text in wrong]
    if name:
        causes += _name_causes(kind, name, "metadata.name")
    else:
        causes += missing("metadata", metadata, "name", rule="name or generateName is required")
    if before is not None and before.get("deletionTimestamp"):
        causes += _added_finalizers(metadata.get("finalizers") or (), before.get("finalizers") or ())
    if labels := metadata.get("labels"):
        causes += label_causes(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        causes += annotation_causes(annotations, "metadata.annotations")
    if finalizers := metadata.get("finalizers"):
        causes += finalizer_causes(finalizers, "metadata.finalizers", is_bare_refused=not kind.custom)
    if owners := metadata.get("ownerReferences"):
        causes += _owner_causes(owners, "metadata.ownerReferences")
    return causes


def _name_causes(kind: ServedKind, name: str, place: str) -> Causes:
    if kind.group in _PATH_SEGMENT_KINDS or kind.kind == "IPAddress":
        return named("segment", name, place)
    return named_object("short" if kind.resource in _NAMED_BY_LABELS else "long", name, place)


def _added_finalizers(names: Sequence[str], before: Sequence[str]) -> Causes:
    """The cause for refusing an object that gets finalizers while it is being deleted."""
    added = ", ".join(f'"{name}"' for name in sorted({*names} - {*before}))
    text = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers"
    return [("metadata.finalizers", f"{text} []string{{{added}}}")] if added else []


def finalizer_causes(names: Sequence[str], place: str, *, is_bare_refused: bool = True) -> Causes:
    found = [cause for name in names for cause in named("label", name, place)]
    if {*_COLLECTING} <= {*names}:
        found.append(invalid(place, names, f"finalizer {' and '.join(_COLLECTING)} cannot be both set"))
    bare = [index for index, name in enumerate(names) if "/" not in name and name not in (*_COLLECTING, "kubernetes")]
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return found + [invalid(f"{place}[{index}]", names[index], text) for index in bare if is_bare_refused]


def deduplicate_owners(metadata: dict[str, Any]) -> list[str]:
    """Keep the first of equal owner references. Returns the warning if there are any."""
    owners: list[Object] = metadata.get("ownerReferences") or []
    twice = repeated(repr(sorted(owner.items())) for owner in owners) if len(owners) > 1 else ()
    if not twice:
        return []
    metadata["ownerReferences"] = [owner for index, owner in enumerate(owners) if index not in twice]
    text = ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests"
    observed = ", ".join(dict.fromkeys(str(owners[index].get("uid")) for index in twice))
    return [f"{text} as early as 1.24; please fix your requests; duplicate UID(s) observed: {observed}"]


def _owner_causes(owners: list[Object], place: str) -> Causes:
    found: Causes = []
    for owner in owners:
        for field in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(field):
                found.append(invalid(f"{place}.{field}", "", f"{'version ' if field == 'apiVersion' else ''}must not be empty"))
        if (owner.get("apiVersion"), owner.get("kind")) == ("v1", "Event"):
            found.append(invalid(place, owner, "/v1, Kind=Event is disallowed from being an owner"))
    controllers = [f"{owner.get('kind')}/{owner.get('name')}" for owner in owners if owner.get("controller")]
    for other in controllers[1:]:
        both = f"{controllers[0]} and {other}"
        text = f'Only one reference can have Controller set to true. Found "true" in references for {both}'
        found.append(invalid(place, owners, text))
    return found


def check_version(kind: ServedKind, name: str, metadata: dict[str, Any], old: Object) -> None:
    """Raises StatusError 409 if a write was made for another version than the stored one."""
    wanted = metadata.get("resourceVersion")
    if wanted not in (None, "", "0", old["metadata"]["resourceVersion"]):
        raise stale(kind.plural, kind.group, name)


def keep_identity(kind: ServedKind, name: str, metadata: dict[str, Any], before: dict[str, Any]) -> None:
    """Give the metadata of an update what no update changes. Raises StatusError 409 if it is about another object of this name."""
    uid = metadata.get("uid")
    if uid and uid != before["uid"]:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}"
        raise conflict(kind.plural, kind.group, name, why)
    for field in _KEPT:
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
