"""The writes that a reconciler wants, as values. Its caller sends them to an API server or applies them to a store.

The writes of one result are applied in order. The first failure ends them, and the key is tried again. So a write that must happen at
most once (the deletion of a job's Command) comes first, and `surely`. Patches are JSON merge patches, made by comparing the present
object with the wanted one (`status_change`, `change`): if nothing differs, there is no write.
"""

from msgspec import Struct

from pumice.api import Object, name_of, namespace_of, status_of, uid_of
from pumice.api.json_objects import difference, finalizers_of
from pumice.api.kinds import kind_of


class Create(Struct, frozen=True):
    """Store a new object; it is no failure if an object of this name exists."""

    object: Object
    about: Object | None = None  #: the object that gets an Event if the creation is refused
    refused: tuple[str, str] = ("FailedCreate", "Error creating")  #: the reason of that Event, and how its text begins


class Patch(Struct, frozen=True):
    """Merge `patch` into an object, if it still has the uid."""

    kind: str
    namespace: str
    name: str
    patch: Object
    subresource: str = ""  #: "status", or "" for the object itself
    uid: str = ""


class Delete(Struct, frozen=True):
    """Delete an object, if it still has the uid; it is no failure if the object is gone already."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    propagation: str = "Background"  #: Background, Foreground or Orphan
    grace_s: int | None = None  #: None: the grace period of the object
    surely: bool = False  #: repeat it until the object is gone: a failed deletion may have been carried out, and is not decided again


class Emit(Struct, frozen=True):
    """Write an Event about an object; repeated Events are counted where this is carried out."""

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
    """The patch that makes `subject` equal to `wanted`, except for its status; no write if nothing differs."""
    now, then = ({key: value for key, value in each.items() if key != "status"} for each in (subject, wanted))
    changed = difference(now, then)
    return [patch(subject, changed)] if changed else []


def without_finalizer(subject: Object, finalizer: str) -> list[Write]:
    """The patch that takes a finalizer off; no write if the object has not got it."""
    left = [each for each in finalizers_of(subject) if each != finalizer]
    return [patch(subject, {"metadata": {"finalizers": left or None}})] if finalizer in finalizers_of(subject) else []


def status_change(subject: Object, status: Object) -> list[Write]:
    """The patch that makes the status of `subject` equal to `status`; no write if nothing differs."""
    changed = difference(status_of(subject), status)
    return [patch(subject, {"status": changed}, "status")] if changed else []
