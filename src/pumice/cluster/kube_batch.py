"""kube-batch's queues and PodGroups: Volcano's kinds under another API group, so that clients of both groups see the same objects."""

from msgspec.structs import replace

from pumice.api import Object
from pumice.api.defaults import KUBE_BATCH_GROUP
from pumice.cluster.apiserver import Store
from pumice.cluster.apiserver.scheme.kinds import ServedKind

VERSION = "v1alpha1"


def serve_kube_batch(store: Store) -> None:
    """Serve kube-batch's kinds. Call this once Volcano's are served, so that Volcano's are meant where no group is named."""
    for plural in ("queues", "podgroups"):
        store.kinds.add(_of_kube_batch(store.kind(f"{plural}.scheduling.volcano.sh")))


def _of_kube_batch(kind: ServedKind) -> ServedKind:
    def to_stored(obj: Object) -> Object:
        return {**obj, "apiVersion": kind.api_version}

    return replace(kind, group=KUBE_BATCH_GROUP, version=VERSION, short_names=(), storage=kind.storage, to_stored=to_stored)
