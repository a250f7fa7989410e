"""ServiceAccounts: every namespace has one called "default", which pods have that name none."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pumice.controllers import kinds
from pumice.controllers.controller import NOTHING, Change, Result, itself, result
from pumice.controllers.objects import Key, name_of, namespace_of, terminating
from pumice.controllers.world import World
from pumice.controllers.writes import Create

DEFAULT = "default"


class ServiceAccounts:
    """Makes what is missing."""

    name = "serviceaccount"

    def __init__(self) -> None:
        self.watches = {kinds.NAMESPACE: itself, kinds.SERVICE_ACCOUNT: _lost}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        namespace = world.get(kinds.NAMESPACE, *key)
        if namespace is None or terminating(namespace) or world.get(kinds.SERVICE_ACCOUNT, key.name, DEFAULT) is not None:
            return NOTHING
        return result([Create(kinds.new(kinds.SERVICE_ACCOUNT, key.name, DEFAULT))])


def _lost(change: Change, world: World) -> Iterable[Key]:
    if change.new is None and name_of(change.object) == DEFAULT:
        yield Key("", namespace_of(change.object))
