"""Workloads of files as the pods, PodGroups and claims that their controllers would make of them: the controllers themselves make these.

A workload that comes from a server (it has a uid) has been looked after there, and what its controllers made is in the same dump. Volcano's
controllers make no pods before a job is let in; here they are there from the start, and enqueue decides in the cycle whether they may run.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pumice.api.codec import convert, encode
from pumice.api.errors import InputError
from pumice.api.meta import Wire
from pumice.api.read import Manifest
from pumice.api.structs import API_VERSIONS, KINDS
from pumice.controllers import admission, kinds
from pumice.controllers.job.plugins import KeyPair
from pumice.controllers.memory import Memory
from pumice.controllers.objects import Object
from pumice.controllers.registry import kubernetes_controllers, volcano_controllers
from pumice.controllers.settle import Loop
from pumice.controllers.writes import Create

NO_KEYS = KeyPair("", "")
MADE = (kinds.POD_GROUP, kinds.POD, kinds.CLAIM, kinds.REPLICA_SET)
LOOKED_UP = ("Node", "PersistentVolumeClaim", "Queue", "PodGroup")


def expanded(manifests: Iterable[Manifest], present: Iterable[tuple[str, Wire]], now: float) -> list[tuple[str, Wire]]:
    """What controllers make of the manifests in a cluster that holds `present` (with defaults). Raises InputError for a wrong manifest."""
    wanted = [manifest for manifest in manifests if not manifest.obj["metadata"].get("uid")]
    if not wanted:
        return []
    world = Memory((_plain(kind, item) for kind, item in present if kind in LOOKED_UP), now)
    known = {kind: {subject["metadata"]["uid"] for subject in world.all(kind)} for kind in MADE}
    controllers = [*volcano_controllers(lambda: NO_KEYS), *kubernetes_controllers()]
    loop = Loop(world, controllers)
    for manifest in wanted:
        loop.observe(world.apply(Create(_admitted(manifest, world))))
    loop.settle(now)
    for group in list(world.all(kinds.POD_GROUP)):
        loop.observe(world.put({**group, "status": {"phase": "Inqueue"}}))
    loop.settle(now)
    made = (subject for kind in MADE for subject in world.all(kind) if subject["metadata"]["uid"] not in known[kind])
    return [_wire(subject) for subject in made]


def _plain(kind: str, item: Wire) -> Object:
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, **msgspec.json.decode(encode(item))}


def _admitted(manifest: Manifest, world: Memory) -> Object:
    """The object with Volcano's defaults."""
    problems = admission.validate(admission.CREATE, obj := admission.mutate(admission.CREATE, manifest.obj, world), None, world)
    if problems:
        raise InputError("; ".join(map(str, problems)), where=manifest.where, subject=f"{obj['kind']} {obj['metadata'].get('name')}")
    return obj


def _wire(subject: Object) -> tuple[str, Wire]:
    """The object as scheduling reads it, not let in yet."""
    kind, _, group = kinds.kind_of(subject).partition(".")
    return kind, convert({**subject, "status": {}}, KINDS[group, kind])
