"""Commands (bus.volcano.sh): a user's order to a job or a queue.

One to a job is deleted before it is followed, and whoever has seen it and finds it gone follows it too: an answer that says so may be about
a deletion of his own. One to a queue names the state that is wanted, so it is deleted when the queue has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pumice.api import kinds
from pumice.api.json_objects import Key, Object, name_of, namespace_of, terminating, uid_of
from pumice.api.kinds import kind_name, kind_of
from pumice.controllers.controller import Emit, Lister, ObjectChange


def target_of(kind: str) -> Callable[[ObjectChange, Lister], Iterable[Key]]:
    """The key of the object of this kind that a changed Command is for."""

    def keys(change: ObjectChange, lister: Lister) -> Iterable[Key]:
        target = (change.new or {}).get("target") or {}
        if change.new is not None and _kind(target) == kind and target.get("name"):
            yield Key("" if kind in kinds.CLUSTER_SCOPED else namespace_of(change.new), target["name"])

    return keys


def commands_for(subject: Object, lister: Lister) -> Iterator[Object]:
    """Commands that wait to be followed, in the order of their names."""
    kind = kind_of(subject)
    for command in lister.all(kinds.COMMAND, None if kind in kinds.CLUSTER_SCOPED else namespace_of(subject)):
        target = command.get("target") or {}
        same_uid = target.get("uid") in (None, "", uid_of(subject))
        named = _kind(target) == kind and target.get("name") == name_of(subject) and same_uid
        if named and command.get("action") and not terminating(command):
            yield command


def taken(command: Object, subject: Object, reason: str) -> Emit:
    """What is told of a Command that is followed."""
    text = f"Start to execute command {command['action']}, and clean it up to make sure executed not more than once."
    return Emit(subject, "Normal", reason, text)


def _kind(target: Object) -> str:
    return kind_name(target.get("apiVersion") or "", target.get("kind") or "")
