"""The pods, PodGroups and claims that controllers make of the workloads in files. The controllers themselves are run to make them.

A workload that comes from a server (it has a uid) is left out: its controllers ran there, and what they made is in the same dump. Volcano's
controllers make no pods before a job's PodGroup is enqueued. Here the pods exist from the start, and the cycle's enqueue action decides
whether they may run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import msgspec

from pumice.api import kinds
from pumice.api.errors import InputError
from pumice.api.json_objects import Object, controller_of, namespace_of
from pumice.api.kinds import kind_of
from pumice.api.manifests import Manifest
from pumice.api.meta import LabelSelector, Wire
from pumice.api.quota import why_refused
from pumice.api.selectors import matches
from pumice.api.structs import API_VERSIONS, KINDS, convert, encode
from pumice.controllers import admission
from pumice.controllers.controller import Controller, Create
from pumice.controllers.in_memory import InMemoryLoop, Memory
from pumice.controllers.volcano.job.plugins import SshKeyPair

NO_KEYS = SshKeyPair("", "")
MADE = (kinds.POD_GROUP, kinds.POD, kinds.CLAIM, kinds.REPLICA_SET)
CHARGED = {kinds.POD: "pods", kinds.CLAIM: "persistentvolumeclaims"}  #: the kinds in `MADE` that quotas count, with their resources
MOST_PODS = 150_000  #: the most pods of one workload: as many as Kubernetes supports in a whole cluster
LOOKED_UP = ("Node", "PersistentVolumeClaim", "Queue", "PodGroup")


def expanded(
    manifests: Iterable[Manifest], present: Sequence[tuple[str, Wire]], now: float, tell: Callable[[str], None] | None = None
) -> list[tuple[str, Wire]]:
    """The objects that controllers make of the manifests in a cluster that holds `present` (with defaults). Raises InputError for a wrong
    manifest. With `tell`, all objects exist at the same time: those that a ResourceQuota refuses are left out, and `tell` gets a line
    about them."""
    wanted = [manifest for manifest in manifests if not manifest.obj["metadata"].get("uid")]
    if not wanted:
        return []
    cluster = Memory((_plain(kind, item) for kind, item in present if kind in LOOKED_UP), now)
    known = {kind: {subject["metadata"]["uid"] for subject in cluster.all(kind)} for kind in MADE}
    loop = InMemoryLoop(cluster, _controllers({kind_of(manifest.obj) for manifest in wanted}))
    for manifest in wanted:
        obj = _selecting_its_own(_admitted(manifest, cluster), manifest)
        if (count := pods_asked(obj)) > MOST_PODS:
            told = f"asks for {count} pods; write at most {MOST_PODS}, as many as Kubernetes supports in a cluster"
            raise InputError(told, where=manifest.where, subject=f"{obj['kind']} {obj['metadata'].get('name')}")
        loop.observe(cluster.apply(Create(obj)))
    loop.settle(now)
    for group in list(cluster.all(kinds.POD_GROUP)):
        loop.observe(cluster.put({**group, "status": {"phase": "Inqueue"}}))
    loop.settle(now)
    made = [subject for kind in MADE for subject in cluster.all(kind) if subject["metadata"]["uid"] not in known[kind]]
    return [_wire(subject) for subject in (_within_quotas(made, present, tell) if tell is not None else made)]


def _selecting_its_own(obj: Object, manifest: Manifest) -> Object:
    """The object; if it is a Kubernetes Job, without the selector that a server adds: that names the pods by a uid, which the Job does not
    have here. Raises InputError if a Job's own selector does not match its pods, as it would make pods for ever."""
    if (obj["apiVersion"], obj["kind"]) != ("batch/v1", "Job"):
        return obj
    spec = obj.get("spec") or {}
    if not spec.get("manualSelector"):
        return {**obj, "spec": {key: value for key, value in spec.items() if key != "selector"}}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not matches(convert(spec.get("selector") or {}, LabelSelector).requirements, labels):
        told = "its selector does not match the labels of its template; leave out selector and manualSelector"
        raise InputError(told, where=manifest.where, subject=f"Job {obj['metadata'].get('name')}")
    return obj


def pods_asked(workload: Object) -> int:
    """The number of pods that a workload requests at a time."""
    spec = workload.get("spec") or {}
    counts = [part.get("replicas", part.get("parallelism", 1)) for part in spec.get("tasks") or [spec]]
    return sum(count for count in counts if isinstance(count, int) and count > 0)


def _controllers(wanted: set[str]) -> list[Controller]:
    """The controllers that a cluster has. If Volcano Jobs are the only workloads, just their controller is loaded: it makes all objects,
    and to load the others would take longer than everything else."""
    if wanted == {kinds.JOB}:
        from pumice.controllers.volcano.job.controller import Jobs

        return [Jobs(lambda: NO_KEYS)]
    from pumice.controllers.registry import kubernetes_controllers, volcano_controllers

    return [*volcano_controllers(lambda: NO_KEYS), *kubernetes_controllers()]


def _within_quotas(made: Iterable[Object], present: Iterable[tuple[str, Wire]], tell: Callable[[str], None]) -> list[Object]:
    """The objects that no quota of their namespace refuses. They are added one after the other to what is present."""
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


def _admitted(manifest: Manifest, cluster: Memory) -> Object:
    """The manifest's object with Volcano's defaults. Raises InputError if Volcano's admission refuses it."""
    problems = admission.validate(admission.CREATE, obj := admission.mutate(admission.CREATE, manifest.obj, cluster), None, cluster)
    if problems:
        raise InputError("; ".join(map(str, problems)), where=manifest.where, subject=f"{obj['kind']} {obj['metadata'].get('name')}")
    return obj


def _wire(subject: Object) -> tuple[str, Wire]:
    """The kind and the object as the scheduler reads it, without a status: a PodGroup is not enqueued yet."""
    kind, _, group = kinds.kind_of(subject).partition(".")
    return kind, convert({**subject, "status": {}}, KINDS[group, kind])
