"""ServiceAccounts: every namespace has one called "default", for the pods that name none."""

from collections.abc import Hashable, Iterable

from pumice.api import Key, kinds, name_of, namespace_of
from pumice.api.json_objects import terminating
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, itself, result
from pumice.controllers.writes import Create

DEFAULT = "default"


class ServiceAccounts:
    name = "serviceaccount"

    def __init__(self) -> None:
        self.watches = {kinds.NAMESPACE: itself, kinds.SERVICE_ACCOUNT: _lost}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        namespace = lister.get(kinds.NAMESPACE, *key)
        if namespace is None or terminating(namespace) or lister.get(kinds.SERVICE_ACCOUNT, key.name, DEFAULT) is not None:
            return NOTHING
        return result([Create(kinds.new(kinds.SERVICE_ACCOUNT, key.name, DEFAULT))])


def _lost(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    if change.new is None and name_of(change.object) == DEFAULT:
        yield Key("", namespace_of(change.object))
