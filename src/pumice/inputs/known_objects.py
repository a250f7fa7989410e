"""Objects that a scheduler itself does not read, and that answers look up: Volcano's Jobs, which say what pods their controller will make;
other owners of pods, which may be suspended or ask for no pods; and what admission gives to new pods."""

from collections.abc import Iterable
from typing import Protocol

from pumice.api import Object, name_of, namespace_of
from pumice.api.gang_dialects import READ
from pumice.api.kinds import JOBS, KINDS, Kind, kind_of
from pumice.api.manifests import WorkloadManifest
from pumice.scheduler.model import Cluster, Job

MEMORY = "objects"  #: its key in the cluster's memory


class KnownObjects(Protocol):
    """Objects by the name of their collection, such as jobs.batch. The store of an API server is one of these."""

    def find(self, resource: str, namespace: str, name: str) -> Object | None: ...

    def all(self, resource: str, namespace: str = "") -> Iterable[Object]: ...


class FromManifests:
    """The objects of files, or of a list."""

    def __init__(self, manifests: Iterable[WorkloadManifest]) -> None:
        self._objects = {(kind_of(each.obj), namespace_of(each.obj), name_of(each.obj)): each.obj for each in manifests}

    def find(self, resource: str, namespace: str, name: str) -> Object | None:
        return self._objects.get((_NAMES.get(resource, ""), namespace, name))

    def all(self, resource: str, namespace: str = "") -> Iterable[Object]:
        wanted = _NAMES.get(resource, "")
        return [obj for (kind, space, _), obj in self._objects.items() if kind == wanted and namespace in ("", space)]


_NAMES = {kind.resource: kind.name for kind in (*KINDS, *READ)}


def know_objects(cluster: Cluster, known: KnownObjects) -> None:
    cluster.memory[MEMORY] = known


def known_objects(cluster: Cluster) -> KnownObjects | None:
    found: KnownObjects | None = cluster.memory.get(MEMORY)
    return found


def known_object(cluster: Cluster, kind: Kind, namespace: str, name: str) -> Object | None:
    known = known_objects(cluster)
    return known.find(kind.resource, namespace, name) if known is not None else None


def owner_of(cluster: Cluster, job: Job) -> Object | None:
    """The Volcano Job that a PodGroup belongs to, if it is known."""
    owner = job.group.metadata.controller if job.group is not None else None
    if owner is None or owner.kind != "Job" or not owner.api_version.startswith("batch.volcano.sh/"):
        return None
    return known_object(cluster, JOBS, job.namespace, owner.name)
