"""The certificate that pods trust: every namespace has it in the ConfigMap `kube-root-ca.crt`, which pods see in their token volumes."""

from collections.abc import Callable, Hashable, Iterable

from pumice.api import Key, kinds, name_of, namespace_of
from pumice.api.json_objects import terminating
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, itself, result
from pumice.controllers.writes import Create, Write, patch

ROOT_CERTIFICATE, FIELD = "kube-root-ca.crt", "ca.crt"
_NOTE = {"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver."}


class RootCertificates:
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
