"""The pods, PodGroups and claims that controllers make of the workloads in files. The controllers themselves are run to make them.

A workload that an API server or Volcano's admission would refuse has no pods. Volcano's controllers make no pods before a job's PodGroup
is enqueued. Here the pods exist from the start, and the cycle's enqueue action decides whether they may run.

Commands pass only workloads that no server has looked after: the controllers of others ran there, and what they made is in the
same dump. Pods that are missing there are not invented, unless the user asks for them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from pumice.api import InputError, Object, kinds, namespace_of
from pumice.api.json_objects import controller_of
from pumice.api.kinds import group_of, kind_of
from pumice.api.manifests import WorkloadManifest
from pumice.api.meta import Wire
from pumice.api.structs import KINDS, convert, document
from pumice.controllers import admission
from pumice.controllers.controller import Controller
from pumice.controllers.in_memory import Memory
from pumice.controllers.in_memory_loop import InMemoryLoop, Unsettled
from pumice.controllers.volcano.job.plugins import SshKeyPair
from pumice.controllers.writes import Create

NO_KEYS = SshKeyPair("", "")
MADE = (kinds.POD_GROUP, kinds.POD, kinds.CLAIM, kinds.REPLICA_SET)
CHARGED = {kinds.POD: "pods", kinds.CLAIM: "persistentvolumeclaims"}  #: the kinds in `MADE` that quotas count, with their resources
MOST_PODS = 150_000  #: the most pods of one workload: as many as Kubernetes supports in a whole cluster
SETTLED_AFTER, STEPS_EACH = 10_000, 10  #: reconciliations in which controllers settle: in any case, and for each object
OF_VOLCANO = (kinds.JOBS.group, kinds.JOB_FLOWS.group)
LOOKED_UP = ("Node", "PersistentVolumeClaim", "Queue", "PodGroup")


def expanded(
    manifests: Iterable[WorkloadManifest],
    present: Sequence[tuple[str, Wire]],
    now: float,
    tell: Callable[[str], None] | None = None,
    omit: bool = False,
) -> list[tuple[str, Wire]]:
    """The objects that controllers make of the manifests in a cluster that holds `present` (with defaults). With `tell`, all objects exist
    at the same time: those that a ResourceQuota refuses are left out, and `tell` gets a line about them.

    A manifest that would be refused raises InputError; with `omit` and `tell` it has no pods, and `tell` gets a line about it. Of a
    workload that a server has looked after, only the pods that are not present are made."""
    wanted = list(manifests)
    looked_up = (*LOOKED_UP, "Pod") if any(manifest.is_served for manifest in wanted) else LOOKED_UP
    cluster = Memory((document(kind, item) for kind, item in present if kind in looked_up), now)
    known = {kind: {subject["metadata"]["uid"] for subject in cluster.all(kind)} for kind in MADE}
    loop = InMemoryLoop(cluster, _controllers({kind_of(manifest.obj) for manifest in wanted}))
    accepted = 0
    for manifest in wanted:
        try:
            obj = _accepted(manifest, cluster)
        except InputError as refused:
            if tell is None or not omit:
                raise
            tell(f"{refused}; its pods are left out")
            continue
        accepted += 1 + pods_asked(obj)
        loop.observe(cluster.apply(Create(obj)))
    _settle(loop, now, accepted)
    for group in list(cluster.all(kinds.POD_GROUP)):
        loop.observe(cluster.put({**group, "status": {"phase": "Inqueue"}}))
    _settle(loop, now, accepted)
    made = [subject for kind in MADE for subject in cluster.all(kind) if subject["metadata"]["uid"] not in known[kind]]
    return [_wire(subject) for subject in (_within_quotas(made, present, tell) if tell is not None else made)]


def _accepted(manifest: WorkloadManifest, cluster: Memory) -> Object:
    """The object as a server would store it. Raises InputError if it would be refused, or if it asks for too many pods."""
    subject = f"{manifest.obj['kind']} {manifest.obj['metadata']['name']}"
    if group_of(manifest.obj["apiVersion"]) not in OF_VOLCANO:
        from pumice.inputs.workload_checks import why_refused  # Volcano's own kinds have other rules

        if refusal := why_refused(manifest.obj):
            raise InputError(refusal, where=manifest.where, subject=subject)
    obj = _selected_by_owner(_admitted(manifest, cluster))
    if (count := pods_asked(obj)) > MOST_PODS:
        refusal = f"asks for {count} pods; write at most {MOST_PODS}, as many as Kubernetes supports in a cluster"
        raise InputError(refusal, where=manifest.where, subject=subject)
    return obj


def _settle(loop: InMemoryLoop, now: float, accepted: int) -> None:
    """Let the controllers make everything. Raises InputError if they do not come to an end with a work that fits the objects."""
    try:
        loop.settle(now, SETTLED_AFTER + STEPS_EACH * accepted)
    except Unsettled as error:
        raise InputError(f"the controllers of its workloads make objects for ever ({error}); leave these workloads out") from None


def _selected_by_owner(obj: Object) -> Object:
    """The object; if it is a Kubernetes Job, without the selector that a server adds: that names the pods by a uid, which the Job does not
    have here."""
    spec = obj.get("spec") or {}
    if (obj["apiVersion"], obj["kind"]) != ("batch/v1", "Job") or spec.get("manualSelector"):
        return obj
    return {**obj, "spec": {key: value for key, value in spec.items() if key != "selector"}}


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

        return [Jobs(lambda: NO_KEYS, most_waiting=MOST_PODS)]
    from pumice.controllers.registry import kubernetes_controllers, volcano_controllers

    return [*volcano_controllers(lambda: NO_KEYS, most_waiting=MOST_PODS), *kubernetes_controllers(most_waiting=MOST_PODS)]


def _within_quotas(made: Iterable[Object], present: Iterable[tuple[str, Wire]], tell: Callable[[str], None]) -> list[Object]:
    """The objects that no quota of their namespace refuses. They are added one after the other to what is present."""
    there = [document(kind, item) for kind, item in present if kind in CHARGED or kind == kinds.RESOURCE_QUOTA]
    quotas = [subject for subject in there if subject["kind"] == kinds.RESOURCE_QUOTA]
    if not quotas:
        return list(made)
    from pumice.cluster.apiserver.admission.quota_admission import why_refused

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


def _admitted(manifest: WorkloadManifest, cluster: Memory) -> Object:
    """The manifest's object with Volcano's defaults. Raises InputError if Volcano's admission refuses it."""
    problems = admission.validate(admission.CREATE, obj := admission.mutate(admission.CREATE, manifest.obj, cluster), None, cluster)
    if problems:
        raise InputError("; ".join(map(str, problems)), where=manifest.where, subject=f"{obj['kind']} {obj['metadata'].get('name')}")
    return obj


def _wire(subject: Object) -> tuple[str, Wire]:
    """The kind and the object as the scheduler reads it, without a status: a PodGroup is not enqueued yet."""
    kind, _, group = kinds.kind_of(subject).partition(".")
    metadata = {name: value for name, value in subject["metadata"].items() if name != "resourceVersion"}  # no server completed it
    return kind, convert({**subject, "metadata": metadata, "status": {}}, KINDS[group, kind])
