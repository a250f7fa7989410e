"""What a reconciler wants done, as values. Somebody else sends them to an API server or applies them to a store.

The writes of one result are applied in order; the first that fails ends it and the key is tried again, so what must happen at
most once (taking a job's Command) comes first, and `surely`. Patches are JSON merge patches and are made by comparing what is
with what should be (`status_change`, `change`): where nothing differs there is no write.
"""

from __future__ import annotations

from typing import NamedTuple

from pumice.api.json_objects import difference
from pumice.controllers.kinds import kind_of
from pumice.controllers.objects import Object, name_of, namespace_of, status_of, uid_of


class Create(NamedTuple):
    """Store a new object; it is no failure if one of this name exists."""

    object: Object
    about: Object | None = None  #: who is told in an Event if it is refused


class Patch(NamedTuple):
    """Merge `patch` into an object, if it still has the uid."""

    kind: str
    namespace: str
    name: str
    patch: Object
    subresource: str = ""  #: "status", or "" for the object itself
    uid: str = ""


class Delete(NamedTuple):
    """Delete an object, if it still has the uid; one that is gone already is well."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    propagation: str = "Background"  #: Background, Foreground or Orphan
    grace_s: int | None = None  #: None: as the object says
    surely: bool = False  #: what follows is not decided again: where it may have been carried out though it failed, ask on


class Emit(NamedTuple):
    """Tell about an object in an Event; repeats are counted where it is carried out."""

    about: Object
    type: str  #: Normal or Warning
    reason: str
    message: str


Write = Create | Patch | Delete | Emit


def delete(subject: Object, *, propagation: str = "Background", grace_s: int | None = None, surely: bool = False) -> Delete:
    return Delete(kind_of(subject), namespace_of(subject), name_of(subject), uid_of(subject), propagation, grace_s, surely)


def patch(subject: Object, content: Object, subresource: str = "") -> Patch:
    return Patch(kind_of(subject), namespace_of(subject), name_of(subject), content, subresource, uid_of(subject))


def change(subject: Object, wanted: Object) -> list[Write]:
    """Make `subject` equal to `wanted` (its status left alone), if it is not."""
    now, then = ({key: value for key, value in each.items() if key != "status"} for each in (subject, wanted))
    news = difference(now, then)
    return [patch(subject, news)] if news else []


def status_change(subject: Object, status: Object, subresource: str = "status") -> list[Write]:
    """Make the status of `subject` equal to `status`, if it is not."""
    news = difference(status_of(subject), status)
    return [patch(subject, {"status": news}, subresource)] if news else []
