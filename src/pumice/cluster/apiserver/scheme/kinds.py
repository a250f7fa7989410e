"""Kinds as data: which kinds are served under which paths, with which shape, subresources, columns and selectable fields.

A `KindTable` holds the kinds that every cluster has, one row each, and those of CustomResourceDefinitions, which are added and removed.
Objects of all versions of a kind are stored in one place, named by `storage` ("pods", "jobs.batch.volcano.sh"). A version that differs from
the stored form has a pair of conversions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from msgspec.structs import force_setattr

from pumice.api import Object, kinds
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.scheme.crd_rules import RuleTree
from pumice.cluster.apiserver.scheme.schema import ANY, Shape
from pumice.cluster.apiserver.validation.field_rules import Causes

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True)
class Scale:
    """Where a kind keeps the fields that its scale subresource shows, as paths of keys."""

    spec_replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`. `cell` returns its value for an object at the present time, in seconds since 1970."""

    name: str
    cell: Callable[[Object, float], Any]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


class Conversion(Protocol):
    """Makes one version of a custom kind from another. What waits for a webhook raises Pending."""

    def seen(self, api_version: str, obj: Object) -> Object: ...

    def prepare(self, api_version: str, objects: Iterable[Object]) -> None: ...

    def converted(self, api_version: str, obj: Object) -> Object: ...


class ServedKind(kinds.Kind, frozen=True, eq=False, kw_only=True):
    """One version of one kind, and how the server keeps and shows it."""

    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()  #: the subresources except status and scale
    has_status: bool = False
    scale: Scale | None = None
    verbs: tuple[str, ...] = ALL_VERBS
    shape: Shape = ANY
    schema: Object | None = None  #: the OpenAPI v3 schema of a custom kind
    rules: RuleTree | None = None  #: expressions that objects of a custom kind must satisfy
    columns: tuple[Column, ...] = ()
    fields: tuple[str, ...] = ()  #: the fields for field selectors, besides metadata.name and metadata.namespace
    storage: str = ""  #: the name of the place where objects are stored; by default `plural.group`
    to_stored: Callable[[Object], Object] | None = None
    from_stored: Callable[[Object], Object] | None = None
    convert: Conversion | None = None  #: makes one version of a custom kind from another
    stored_as: ServedKind | None = None  #: the version in which objects are stored, if it is another that must be converted to
    custom: bool = False
    gates: frozenset[str] = frozenset()  #: the feature gates that are on in the server
    deprecation: str = ""  #: the warning that every answer about the kind carries
    reviewed_only: bool = False  #: objects are answered and never stored (access reviews)
    versioned_update: bool = False  #: a PUT must state the resourceVersion that it replaces
    created_by_update: bool = False  #: a PUT creates the object if it does not exist
    shown_when_deleted: bool = False  #: a delete is answered with the object, not with a Status

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.storage:
            force_setattr(self, "storage", self.resource)
        if not self.singular:
            force_setattr(self, "singular", self.kind.lower())

    def not_found(self, name: str) -> status.StatusError:
        return status.not_found(self.plural, self.group, name)

    def invalid(self, name: str, causes: Causes) -> status.StatusError:
        return status.invalid(self.kind, self.group, name, causes)

    def forbidden(self, name: str, why: str) -> status.StatusError:
        return status.forbidden(self.plural, self.group, name, why)


_VERSION = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")


def priority_of(version: str) -> tuple[int, int, int]:
    """A key that orders the versions of a group, the one that clients are to prefer last: v1 comes after v1beta2, this after v1alpha3."""
    found = _VERSION.fullmatch(version)
    return (("alpha", "beta", None).index(found[2]), int(found[1]), int(found[3] or 0)) if found else (-1, 0, 0)


class KindTable:
    """All kinds that are served, by path and by name. The version of a kind that was added first is used when no version is named."""

    def __init__(self, served: Iterator[ServedKind] | list[ServedKind]) -> None:
        self._by_path: dict[tuple[str, str, str], ServedKind] = {}
        self._by_resource: dict[str, ServedKind] = {}
        self._by_kind: dict[tuple[str, str], ServedKind] = {}  #: by apiVersion and kind; empty after a change
        self.revision = 0  #: grows with every change; caches of discovery and OpenAPI follow it
        for kind in served:
            self.add(kind)

    def add(self, kind: ServedKind) -> None:
        self._by_path[(kind.group, kind.version, kind.plural)] = kind
        first = self._by_resource.get(kind.resource)
        if first is None or first.version == kind.version:
            self._by_resource[kind.resource] = kind
        self._by_kind.clear()
        self.revision += 1

    def remove(self, group: str, plural: str) -> None:
        """Remove every version of a custom kind."""
        for path in [path for path in self._by_path if (path[0], path[2]) == (group, plural)]:
            del self._by_path[path]
        self._by_resource.pop(f"{plural}.{group}" if group else plural, None)
        self._by_kind.clear()
        self.revision += 1

    def at(self, group: str, version: str, plural: str) -> ServedKind | None:
        return self._by_path.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        return any(path[:2] == (group, version) for path in self._by_path)

    def named(self, resource: str) -> ServedKind:
        """The kind called `plural` or `plural.group`. Raises KeyError."""
        return self._by_resource[resource]

    def known(self, resource: str) -> bool:
        return resource in self._by_resource

    def find(self, resource: str) -> ServedKind | None:
        return self._by_resource.get(resource)

    def of_object(self, api_version: str, kind_name: str) -> ServedKind | None:
        if not self._by_kind:
            self._by_kind = {(kind.api_version, kind.kind): kind for kind in reversed(list(self))}
        return self._by_kind.get((api_version, kind_name))

    def __iter__(self) -> Iterator[ServedKind]:
        return iter(list(self._by_path.values()))
