"""Commands (bus.volcano.sh): an action that a user requests for a job or a queue.

A Command to a job is deleted before it is carried out. If the controller then finds it gone already, it carries it out too: an earlier
try of its own may have deleted it. A Command to a queue names the wanted state, so it is deleted when the queue has this state.
"""

from collections.abc import Callable, Iterable, Iterator

from pumice.api import Key, Object, kinds, name_of, namespace_of, uid_of
from pumice.api.integers import integer
from pumice.api.json_objects import created_at, terminating
from pumice.api.kinds import kind_name, kind_of
from pumice.controllers.controller import Lister, ObjectChange
from pumice.controllers.writes import Emit


def target_of(kind: str) -> Callable[[ObjectChange, Lister], Iterable[Key]]:
    """A function from a changed Command to the key of its target, if the target is of this kind."""

    def keys(change: ObjectChange, lister: Lister) -> Iterable[Key]:
        target = (change.new or {}).get("target") or {}
        if change.new is not None and _kind(target) == kind and target.get("name"):
            yield Key("" if kind in kinds.CLUSTER_SCOPED else namespace_of(change.new), target["name"])

    return keys


def commands_for(subject: Object, lister: Lister) -> Iterator[Object]:
    """The Commands for an object that wait to be carried out, in the order in which they were created."""
    kind = kind_of(subject)
    for command in sorted(lister.all(kinds.COMMAND, None if kind in kinds.CLUSTER_SCOPED else namespace_of(subject)), key=_age):
        target = command.get("target") or {}
        same_uid = target.get("uid") in (None, "", uid_of(subject))
        named = _kind(target) == kind and target.get("name") == name_of(subject) and same_uid
        if named and command.get("action") and not terminating(command):
            yield command


def _age(command: Object) -> tuple[float, int]:
    return created_at(command), integer(command["metadata"].get("resourceVersion") or "")


def taken(command: Object, subject: Object, reason: str) -> Emit:
    """The Event about a Command that is carried out."""
    text = f"Start to execute command {command['action']}, and clean it up to make sure executed not more than once."
    return Emit(subject, "Normal", reason, text)


def _kind(target: Object) -> str:
    return kind_name(target.get("apiVersion") or "", target.get("kind") or "")
