"""Random states for kube-scheduler's rules, decided by the real one and by ours, pod by pod.

The real scheduler stands before a real API server and has a profile for each state. Pods come one by one; before each, all objects are
read from the server, and ours decides about the pod from them alone. Compared are the nodes that fit, each plugin's scores, what is said
if none fits, who is evicted, and the nomination. Chance decides among nodes of the same score, and among equal candidates for preemption:
what the real one does must be one of the outcomes of ours with the objects in other orders. A state that differs is played once more.

SEED and STATES choose the states. Each differing step is kept as a file that `pumice cycle` and `pumice score` read.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from binaries import NEXT, program, programs, why_not
from kube_states import DRIVER, NAMESPACES, Body, KubeState
from realcluster import RealCluster
from stage import absent, until_true
from stored import Etcd
from test_native_suites import gates_flag, running

from pumice.answers.score import Watcher
from pumice.api import kinds
from pumice.api.kinds import NODES, PODS, VOLUME_CLAIMS, VOLUMES, Kind, ObjectRef
from pumice.cli.inputs import Inputs, load
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, PatchType, as_dict
from pumice.live.scheduler.http_world import HttpWorld
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.framework.pods_to_try import Only
from tests.ports import free_port

pytestmark = pytest.mark.nightly
SERVERS, SCHEDULERS = (("kube-apiserver", f"kube-apiserver-{NEXT}"), ("kube-scheduler", f"kube-scheduler-{NEXT}"))
NEEDED = ("etcd", *SERVERS, *SCHEDULERS)
GATES = {"TaintTolerationComparisonOperators": True}
#: off, since they let time or the pods before decide
OF_TIME = dict.fromkeys(("OpportunisticBatching", "SchedulerAsyncPreemption", "SchedulerPopFromBackoffQ"), False)
NOT_ASKED = ("ServiceAccount", "TaintNodesByCondition", "Priority", "RuntimeClass", "StorageObjectInUseProtection", "DefaultStorageClass")
STATES = 40
LIMIT_S = 15
SEEN_S = 0.3  #: by then the watches of all kinds have shown what was written
ORDERS = 12
SELECTED = "volume.kubernetes.io/selected-node"
READ = (
    kinds.NAMESPACES,
    NODES,
    PODS,
    kinds.SERVICES,
    kinds.REPLICA_SETS,
    kinds.STATEFUL_SETS,
    kinds.REPLICATION_CONTROLLERS,
    kinds.DISRUPTION_BUDGETS,
    kinds.STORAGE_CLASSES,
    kinds.CSI_DRIVERS,
    kinds.CSI_NODES,
    kinds.CSI_CAPACITIES,
    VOLUMES,
    VOLUME_CLAIMS,
    kinds.DEVICE_CLASSES,
    kinds.RESOURCE_SLICES,
    kinds.RESOURCE_CLAIMS,
)
OF_KIND: dict[str, Kind] = {kind.kind: kind for kind in READ}
#: where etcd has what a state consists of
PLACES = (
    "minions",
    "pods",
    "services/specs",
    "services/endpoints",
    "endpointslices",
    "ipaddresses",
    "replicasets",
    "statefulsets",
    "controllers",
    "poddisruptionbudgets",
    "storageclasses",
    "csidrivers",
    "csinodes",
    "csistoragecapacities",
    "persistentvolumes",
    "persistentvolumeclaims",
    "resourceslices",
    "resourceclaims",
    "deviceclasses",
    "events",
)


class Step(NamedTuple):
    """One pod's attempt: the state before, and what the real scheduler came to."""

    objects: list[Body]
    pod: str
    found: Body


# -- the real scheduler


class Stage:
    """A real cluster and a real scheduler with the profiles of all states."""

    def __init__(self, cluster: RealCluster, client: Client, log: Path) -> None:
        self._client, self._etcd, self._log = client, Etcd(cluster), log

    async def play(self, state: KubeState) -> list[Step]:
        try:
            await self._build(state)
            steps = []
            for pod in state.pending:
                step = await self._step(pod)
                steps += [step] if step is not None else []
            return steps
        finally:
            self._etcd.clear(PLACES)

    async def _build(self, state: KubeState) -> None:
        for node in state.nodes:
            await self._create(NODES, node)
        for obj in (*state.objects, *state.budgets):
            await self._create(OF_KIND[obj["kind"]], {key: value for key, value in obj.items() if key != "kind"})
        for pod in state.running:
            meta = pod["metadata"]
            if await self._create(PODS, {key: pod[key] for key in ("metadata", "spec", "status")}) and pod.get("terminates"):
                await self._client.delete(PODS, ObjectRef(meta["name"], meta["namespace"]), grace_s=3600)

    async def _create(self, kind: Kind, body: Body) -> Body | None:
        """The object as it is stored; None if the server refuses it."""
        meta, status = body["metadata"], body.get("status")
        space = meta.get("namespace", "")
        try:
            created = await self._client.create(kind, {key: value for key, value in body.items() if key != "status"}, space)
            if status:
                await self._client.patch(kind, ObjectRef(meta["name"], space), {"status": status}, PatchType.MERGE, subresource="status")
        except ApiError as error:
            assert error.code == 422, error
            print(error)
            return None
        return as_dict(created)

    async def _step(self, pod: Body) -> Step | None:
        await asyncio.sleep(SEEN_S)
        before = await self._objects()
        meta, begin = pod["metadata"], self._log.stat().st_size
        key = f"{meta['namespace']}/{meta['name']}"
        created = await self._create(PODS, pod)
        if (
            created is None
            or created["spec"].get("schedulingGates")
            or not _claims(pod) <= {_key(obj) for obj in before if obj["kind"] == "ResourceClaim"}
        ):
            return None  # it is not tried
        ref = ObjectRef(meta["name"], meta["namespace"])
        try:
            await asyncio.wait_for(until_true(lambda: self._settled(ref), 0.03), LIMIT_S)
        except TimeoutError:
            raise AssertionError(f"{key} was not tried") from None
        given = created | {"kind": "Pod", "apiVersion": "v1"}
        given.pop("status", None)
        return Step([*before, given], key, await self._found(ref, before, begin))

    async def _settled(self, ref: ObjectRef) -> bool:
        await self._bind_volumes()
        pod = as_dict(await self._client.get(PODS, ref))
        return bool(pod["spec"].get("nodeName") or _condition(pod))

    async def _bind_volumes(self) -> None:
        """What the controllers of volumes do."""
        volumes = await self._list(VOLUMES)
        for claim in await self._list(VOLUME_CLAIMS):
            meta = claim["metadata"]
            if claim["spec"].get("volumeName"):
                continue
            ours = [each["metadata"]["name"] for each in volumes if (each["spec"].get("claimRef") or {}).get("uid") == meta["uid"]]
            if not ours and SELECTED in (meta.get("annotations") or ()):
                ours = [f"pvc-{meta['name']}"]
                await self._client.create(VOLUMES, _provided(claim, ours[0]))
            if ours:
                notes = {"pv.kubernetes.io/bind-completed": "yes"}
                ref = ObjectRef(meta["name"], meta["namespace"])
                bound = {"metadata": {"annotations": notes}, "spec": {"volumeName": ours[0]}}
                await self._client.patch(VOLUME_CLAIMS, ref, bound, PatchType.MERGE)
                await self._client.patch(VOLUME_CLAIMS, ref, {"status": {"phase": "Bound"}}, PatchType.MERGE, subresource="status")

    async def _list(self, kind: Kind) -> list[Body]:
        return [as_dict(raw) async for page in self._client.pages(ListScope(kind)) for raw in page.items]

    async def _objects(self) -> list[Body]:
        found = []
        for kind in READ:
            with suppress(ApiError):
                found += [{"apiVersion": kind.api_version, "kind": kind.kind} | obj for obj in await self._list(kind)]
        for obj in found:
            obj["metadata"].pop("managedFields", None)
        return found

    async def _found(self, ref: ObjectRef, before: list[Body], begin: int) -> Body:
        pod = as_dict(await self._client.get(PODS, ref))
        there = {_key(each) for each in before if each["kind"] == "Pod" and not each["metadata"].get("deletionTimestamp")}
        left = {_key(each) for each in await self._list(PODS) if not each["metadata"].get("deletionTimestamp")}
        with self._log.open("rb") as log:
            log.seek(begin)
            table = _scores(log.read().decode(), f"{ref.namespace}/{ref.name}")
        told = _condition(pod) or {}
        return {
            "node": pod["spec"].get("nodeName", ""),
            "message": f"{told['reason']}: {told.get('message', '')}" if told else "",
            "nominated": pod["status"].get("nominatedNodeName", ""),
            "evicted": sorted(there - left),
            "scores": table,
        }


def _key(obj: Body) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _claims(pod: Body) -> set[str]:
    return {f"{pod['metadata']['namespace']}/{each['resourceClaimName']}" for each in pod["spec"].get("resourceClaims", ())}


def _condition(pod: Body) -> Body | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), None)


def _provided(claim: Body, name: str) -> Body:
    meta = claim["metadata"]
    spec = {
        "capacity": claim["spec"]["resources"]["requests"],
        "accessModes": claim["spec"]["accessModes"],
        "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", **{key: meta[key] for key in ("name", "namespace", "uid")}},
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "storageClassName": claim["spec"]["storageClassName"],
    }
    return {"metadata": {"name": name}, "spec": spec}


SCORED = re.compile(r'"Plugin scored node for pod" pod="([^"]+)" plugin="([^"]+)" node="([^"]+)" score=(-?\d+)')
TOTAL = re.compile(r'"Calculated node\'s final score for pod" pod="([^"]+)" node="([^"]+)" score=(-?\d+)')


def _scores(log: str, pod: str) -> Body:
    """By node and plugin: the weighted scores of a pod's attempt. Empty if there was one node, or none."""
    found: Body = {node: {"total": int(score)} for key, node, score in TOTAL.findall(log) if key == pod}
    for key, plugin, node, score in SCORED.findall(log):
        if key == pod and int(score):
            found[node][plugin] = int(score)
    return found


async def played(states: list[KubeState], folder: Path) -> dict[str, list[Step]]:
    """By state: its steps."""
    folder.mkdir()
    flags = [gates_flag(GATES), f"--disable-admission-plugins={','.join(NOT_ASKED)}"]
    newer = states[0].newer
    with RealCluster(folder, release=NEXT if newer else "", flags=flags) as cluster:
        config, log = folder / "kube-scheduler.yaml", folder / "scheduler.log"
        config.write_text(yaml.safe_dump(configuration(states, cluster)))
        command = [str(program(SCHEDULERS[newer])), f"--config={config}", f"--secure-port={free_port()}", gates_flag(GATES | OF_TIME)]
        async with Client(cluster.access()) as client:
            for name, labels in NAMESPACES.items():
                await absent(client.create(kinds.NAMESPACES, {"metadata": {"name": name}}))
                await client.patch(kinds.NAMESPACES, ObjectRef(name), {"metadata": {"labels": labels}}, PatchType.MERGE)
            async with running([*command, "--vmodule=schedule_one=10"], log):
                stage = Stage(cluster, client, log)
                return {state.of: await stage.play(state) for state in states}


def configuration(states: list[KubeState], cluster: RealCluster | None = None) -> Body:
    head: Body = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    if cluster is not None:
        head |= {"clientConnection": {"kubeconfig": str(cluster.kubeconfig())}, "leaderElection": {"leaderElect": False}}
    return head | {"podInitialBackoffSeconds": 3600, "podMaxBackoffSeconds": 3600, "profiles": [state.profile for state in states]}


# -- ours


def ours(state: KubeState, step: Step, path: Path) -> Body:
    """What ours comes to."""
    path.write_text("\n---\n".join(json.dumps(each) for each in (configuration([state]), *step.objects)))
    inputs = Inputs((str(path),), None, None, False, None, False, "", "", release(37 if state.newer else 36, GATES))
    moment = inputs.moment("2026-06-01T00:00:00Z")
    cluster, policy = load(inputs, moment, None)
    task = cluster.tasks[step.pod]
    watcher = Watcher(task)
    decided = cycle(cluster, policy, moment, HttpWorld(), Only([task]), observer=watcher)
    table = watcher.table
    scores: Body = {}
    if len(table.feasible) > 1:
        totals = table.scores["total"] if table.scores else dict.fromkeys(table.feasible, 1)
        for node in table.feasible:
            weighed = {name: round(given[node] * table.weights[name]) for name, given in table.scores.items() if name != "total"}
            scores[node] = {"total": round(totals[node])} | {name: score for name, score in weighed.items() if score}
    told = next((f"{each.reason}: {each.message}" for each in decided.waiting if each.task is task), "")
    return {
        "node": next((bind.node for bind in decided.binds if bind.task is task), ""),
        "message": told,
        "nominated": task.nominated or "",
        "evicted": sorted(each.task.key for each in decided.evictions),
        "scores": scores,
    }


def differs(state: KubeState, step: Step, path: Path) -> str:
    """What differs; empty if the real one's outcome is one of ours."""
    own = ours(state, step, path)
    real = step.found
    if real["scores"] != own["scores"]:
        return f"scores {real['scores']}\n   but ours {own['scores']}"
    if real["scores"]:
        best = max(each["total"] for each in own["scores"].values())
        if real["node"]:
            return "" if own["scores"][real["node"]]["total"] == best else f"node {real['node']} is not the best"
    draw = random.Random(0)
    for _ in range(ORDERS):
        if _same(own, real):
            return ""
        mixed = draw.sample(step.objects, len(step.objects))
        own = ours(state, step._replace(objects=mixed), path.with_suffix(".mixed"))
    first = ours(state, step, path)
    return "\n   ".join(f"{key} {real[key]!r}\n   but ours {first[key]!r}" for key in real if real[key] != first[key] and key != "scores")


def _same(own: Body, real: Body) -> bool:
    return all(own[key] == real[key] for key in real if key != "scores")


def differing(seeds: list[int], folder: Path, newer: bool) -> dict[int, str]:
    folder.mkdir()
    states = {f"s{seed}": KubeState(seed, newer=newer) for seed in seeds}
    steps = asyncio.run(played(list(states.values()), folder / "cluster"))
    found: dict[int, list[str]] = defaultdict(list)
    for name, state in states.items():
        for step in steps[name]:
            path = folder / f"{name}-{step.pod.rpartition('-')[2]}.yaml"
            if difference := differs(state, step, path):
                found[int(name[1:])].append(f"{path.name} {step.pod}: {difference}")
    return {seed: "\n  ".join([f"state {seed}", *told]) for seed, told in found.items()}


@pytest.fixture(autouse=True)
def _can_be_built() -> None:
    if why_not(NEEDED):
        pytest.skip(why_not(NEEDED))
    programs(*NEEDED)


@pytest.mark.parametrize("newer", [False, True])
def test_random_states_have_the_outcomes_of_the_real_scheduler(newer: bool, tmp_path: Path) -> None:
    seed = int(os.environ.get("SEED", "1"))
    differ = differing(list(range(seed, seed + int(os.environ.get("STATES", STATES)))), tmp_path / "first", newer)
    again = differing(sorted(differ), tmp_path / "again", newer) if differ else {}
    assert not again, "\n".join(again.values())
