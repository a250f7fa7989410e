"""From a path to what it means: which kind, which object, which subresource."""

from __future__ import annotations

from typing import NamedTuple

from pumice.apiserver.kinds import Kind, KindTable


class Target(NamedTuple):
    """What a request is about."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def target_of(kinds: KindTable, path: str) -> Target | None:
    """`/api/v1/...` and `/apis/group/version/...`; None for everything else."""
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
    kind = kinds.at(group, version, rest[0])
    if kind is None or len(rest) > 3 or (namespace and not kind.namespaced) or not all(rest):
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and not has_subresource(kind, subresource):
        return None
    return Target(kind, namespace, name, subresource)


def has_subresource(kind: Kind, subresource: str) -> bool:
    if subresource == "status":
        return kind.has_status
    if subresource == "scale":
        return kind.scale is not None
    return subresource in kind.subresources
