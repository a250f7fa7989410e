"""What an API server's collector does, in the theatre: what is owned goes with its owner."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pumice.api.json_objects import Object, key_of, owners_of, terminating, uid_of
from pumice.api.kinds import kind_of
from pumice.controllers.controller import EVERY, NOTHING, Lister, ObjectChange, Result, result
from pumice.controllers.writes import delete, patch


class Collected:
    """Deletes what was owned, and lets those go that waited for it."""

    name = "collected"

    def __init__(self) -> None:
        self.watches = {EVERY: _touched}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, tuple)
        subject = lister.get(*key)
        if subject is None:
            return NOTHING
        if terminating(subject):
            done = subject["metadata"].get("finalizers") and not list(lister.dependents(uid_of(subject)))
            return result([patch(subject, {"metadata": {"finalizers": None}})] if done else [])
        owners = owners_of(subject)
        return result([delete(subject)] if owners and not any(_lives(owner, subject, lister) for owner in owners) else [])


def _lives(owner: Object, subject: Object, lister: Lister) -> bool:
    found = lister.get(kind_of(owner), key_of(subject).namespace, owner["name"])
    return found is not None and uid_of(found) == owner["uid"] and not terminating(found)


def _touched(change: ObjectChange, lister: Lister) -> Iterable[tuple[str, str, str]]:
    subject = change.object
    if change.new is None or terminating(subject):
        yield from ((kind_of(each), *key_of(each)) for each in lister.dependents(uid_of(subject)))
        yield from ((kind_of(owner), key_of(subject).namespace, owner["name"]) for owner in owners_of(subject))
    if change.new is not None and terminating(subject):
        yield kind_of(subject), *key_of(subject)
