"""kube-batch's queues and PodGroups: Volcano's under another API group, so that both see the same objects."""

from __future__ import annotations

from msgspec.structs import replace

from pumice.apiserver import Store
from pumice.apiserver.kinds import Kind
from pumice.apiserver.shapes import Object
from pumice.config.volcano import KUBE_BATCH_GROUP

VERSION = "v1alpha1"


def serve_kube_batch(store: Store) -> None:
    """After Volcano's, so that these are meant where no group is named."""
    for plural in ("queues", "podgroups"):
        store.kinds.add(_of_kube_batch(store.kind(f"{plural}.scheduling.volcano.sh")))


def _of_kube_batch(kind: Kind) -> Kind:
    def to_stored(obj: Object) -> Object:
        return {**obj, "apiVersion": kind.api_version}

    return replace(kind, group=KUBE_BATCH_GROUP, version=VERSION, short_names=(), storage=kind.storage, to_stored=to_stored)
