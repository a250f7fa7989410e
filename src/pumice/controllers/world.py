"""The read-only view of a cluster that reconcilers and admission rules have.

The embedded store, a live cache and `memory.Memory` implement it. Lists are in the order of (namespace, name), so that equal
worlds give equal writes. Objects are shared and must not be changed. What is asked for often has an index: by owner, and by
the fields named in `INDEXED`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pumice.controllers import kinds
from pumice.controllers.objects import Object

INDEXED = {
    kinds.POD: ("spec.nodeName",),
    kinds.POD_GROUP: ("spec.queue",),
    kinds.JOB: ("spec.queue",),
    kinds.QUEUE: ("spec.parent",),
}  #: fields that `by_field` can be asked for, by kind
ADOPTABLE = (kinds.POD, kinds.REPLICA_SET)


class World(Protocol):
    """A cluster as it is known at this moment."""

    def get(self, kind: str, namespace: str, name: str) -> Object | None: ...

    def all(self, kind: str, namespace: str | None = None) -> Iterable[Object]:
        """All objects of a kind, or those of one namespace. Unknown kinds have none."""
        ...

    def by_field(self, kind: str, field: str, value: str) -> Iterable[Object]:
        """Objects of all namespaces with this value in a field of `INDEXED`; "" finds those without the field."""
        ...

    def dependents(self, uid: str, kind: str | None = None) -> Iterable[Object]:
        """Objects with an owner reference (controlling or not) to this uid."""
        ...

    def strays(self, kind: str, namespace: str) -> Iterable[Object]:
        """Objects of a kind of `ADOPTABLE` that nobody controls."""
        ...

    def kinds(self) -> Iterable[str]:
        """Every kind of which there may be objects."""
        ...
