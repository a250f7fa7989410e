"""Workloads of files as the pods, PodGroups and claims that their controllers would make of them: the controllers themselves make these.

A workload that comes from a server (it has a uid) has been looked after there, and what its controllers made is in the same dump.
Volcano's controllers make no pods before a job is let in; here they are there from the start, and enqueue decides in the cycle whether
they may run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from pumice.api.errors import InputError
from pumice.api.manifests import Manifest
from pumice.api.meta import Wire
from pumice.api.quota import why_refused
from pumice.api.structs import API_VERSIONS, KINDS, convert, encode
from pumice.controllers import admission, kinds
from pumice.controllers.controller import Create
from pumice.controllers.in_memory import InMemoryLoop, Memory
from pumice.controllers.objects import Object, controller_of, namespace_of
from pumice.controllers.registry import kubernetes_controllers, volcano_controllers
from pumice.controllers.volcano.job.plugins import SshKeyPair

NO_KEYS = SshKeyPair("", "")
MADE = (kinds.POD_GROUP, kinds.POD, kinds.CLAIM, kinds.REPLICA_SET)
CHARGED = {kinds.POD: "pods", kinds.CLAIM: "persistentvolumeclaims"}  #: what quotas count of it
LOOKED_UP = ("Node", "PersistentVolumeClaim", "Queue", "PodGroup")


def expanded(
    manifests: Iterable[Manifest], present: Sequence[tuple[str, Wire]], now: float, tell: Callable[[str], None] | None = None
) -> list[tuple[str, Wire]]:
    """What controllers make of the manifests in a cluster that holds `present` (with defaults). Raises InputError for a wrong manifest.
    With `tell`, all of it is there at a time: what a ResourceQuota keeps from being made is left out, and told."""
    wanted = [manifest for manifest in manifests if not manifest.obj["metadata"].get("uid")]
    if not wanted:
        return []
    world = Memory((_plain(kind, item) for kind, item in present if kind in LOOKED_UP), now)
    known = {kind: {subject["metadata"]["uid"] for subject in world.all(kind)} for kind in MADE}
    controllers = [*volcano_controllers(lambda: NO_KEYS), *kubernetes_controllers()]
    loop = InMemoryLoop(world, controllers)
    for manifest in wanted:
        loop.observe(world.apply(Create(_admitted(manifest, world))))
    loop.settle(now)
    for group in list(world.all(kinds.POD_GROUP)):
        loop.observe(world.put({**group, "status": {"phase": "Inqueue"}}))
    loop.settle(now)
    made = [subject for kind in MADE for subject in world.all(kind) if subject["metadata"]["uid"] not in known[kind]]
    return [_wire(subject) for subject in (_within_quotas(made, present, tell) if tell is not None else made)]


def _within_quotas(made: Iterable[Object], present: Iterable[tuple[str, Wire]], tell: Callable[[str], None]) -> list[Object]:
    """Those that no quota of their namespace refuses, one after the other, beside what is there."""
    there = [_plain(kind, item) for kind, item in present if kind in CHARGED or kind == kinds.RESOURCE_QUOTA]
    quotas = [subject for subject in there if subject["kind"] == kinds.RESOURCE_QUOTA]
    held: dict[tuple[str, str], list[Object]] = {}
    for subject in there:
        held.setdefault((namespace_of(subject), CHARGED.get(subject["kind"], "")), []).append(subject)
    kept: list[Object] = []
    refused: dict[str, list[str]] = {}
    for subject in made:
        namespace, resource = namespace_of(subject), CHARGED.get(subject["kind"], "")
        existing = partial(_existing, held, namespace)
        own = (quota for quota in quotas if resource and namespace_of(quota) == namespace)
        why = next((text for quota in own if (text := why_refused(quota, resource, subject, None, existing))), "")
        if why:
            owner = controller_of(subject) or subject
            refused.setdefault(f"{subject['kind']}s of {owner['kind']} {namespace}/{owner.get('name')}", []).append(why)
        else:
            kept.append(subject)
            held.setdefault((namespace, resource), []).append(subject)
    for whose, reasons in refused.items():
        tell(f"{len(reasons)} {whose} are not made: {reasons[0]}")
    return kept


def _existing(held: Mapping[tuple[str, str], list[Object]], namespace: str, resource: str) -> list[Object]:
    return held.get((namespace, resource), [])


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
