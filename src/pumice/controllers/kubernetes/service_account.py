"""ServiceAccounts: every namespace has one called "default", for the pods that name none."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from pumice.api import kinds
from pumice.api.json_objects import Key, name_of, namespace_of, terminating
from pumice.controllers.controller import NOTHING, Create, Lister, ObjectChange, Result, Write, itself, patch, result

DEFAULT = "default"


class ServiceAccounts:
    """Makes the missing ServiceAccounts."""

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


# The certificate that pods trust: every namespace has it in the ConfigMap `kube-root-ca.crt`, which pods see in their token volumes.

ROOT_CERTIFICATE, FIELD = "kube-root-ca.crt", "ca.crt"
_NOTE = {"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver."}


class RootCertificates:
    """Makes the missing ConfigMaps, and restores those that were changed."""

    name = "root-ca-certificate-publisher"

    def __init__(self, certificate: Callable[[], str]) -> None:
        self._certificate = certificate
        self.watches = {kinds.NAMESPACE: itself, kinds.CONFIG_MAP: _touched}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        namespace = lister.get(kinds.NAMESPACE, *key)
        if namespace is None or terminating(namespace):
            return NOTHING
        found, data = lister.get(kinds.CONFIG_MAP, key.name, ROOT_CERTIFICATE), {FIELD: self._certificate()}
        writes: list[Write] = []
        if found is None:
            fresh = kinds.new(kinds.CONFIG_MAP, key.name, ROOT_CERTIFICATE)
            writes.append(Create({**fresh, "metadata": {**fresh["metadata"], "annotations": _NOTE}, "data": data}))
        elif found.get("data") != data:
            writes.append(patch(found, {"data": dict.fromkeys(found.get("data") or {}) | data}))
        return result(writes)


def _touched(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    if name_of(change.object) == ROOT_CERTIFICATE:
        yield Key("", namespace_of(change.object))
