"""Namespaces that are to go: everything in them is deleted first, then the namespace is let go.

A namespace waits on `spec.finalizers` (not on the metadata's): once nothing is left the list is emptied through the
subresource `finalize`, and its server removes it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pumice.controllers import kinds
from pumice.controllers.controller import EVERY, NOTHING, Change, Result, result
from pumice.controllers.kinds import kind_of
from pumice.controllers.objects import Key, Object, name_of, namespace_of, spec_of, status_of, terminating
from pumice.controllers.world import World
from pumice.controllers.writes import Write, delete, patch, status_change


class Namespaces:
    """Empties namespaces."""

    name = "namespace"

    def __init__(self) -> None:
        self.watches = {EVERY: _emptied}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        namespace = world.get(kinds.NAMESPACE, "", key.name)
        if namespace is None or not terminating(namespace):
            return NOTHING
        left = [subject for kind in world.kinds() for subject in world.all(kind, key.name) if namespace_of(subject)]
        if left:
            writes: list[Write] = [delete(subject) for subject in left if not terminating(subject)]
            return result([*status_change(namespace, {**status_of(namespace), "phase": "Terminating"}), *writes])
        return result([_let_go(namespace)] if spec_of(namespace).get("finalizers") else [])


def _let_go(namespace: Object) -> Write:
    return patch(namespace, {"spec": {"finalizers": None}}, "finalize")


def _emptied(change: Change, world: World) -> Iterable[Key]:
    """A namespace that is to go, or one that lost or gained an object meanwhile."""
    subject = change.object
    if kind_of(subject) == kinds.NAMESPACE:
        if change.new is not None and terminating(subject):
            yield Key("", name_of(subject))
    elif change.old is None or change.new is None:
        namespace = world.get(kinds.NAMESPACE, "", namespace_of(subject))
        if namespace is not None and terminating(namespace):
            yield Key("", name_of(namespace))
