"""Upstream's integration tests of PodGroups, played on a real API server for whatever scheduler is there.

Those tests start an API server and a scheduler of their own in one process. They are tables of steps, nearly all of which only use the
API: so they can be played from outside. They are compiled beside stand-ins (`server-1.37`) that write the steps down. Two kinds of steps
look into upstream's queue: such a pod gets no place. Tests that bring plugins of their own cannot be played.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from binaries import HERE, NEXT, cache_folder, module_folder

from pumice.api.kinds import (
    COMPOSITE_POD_GROUPS,
    NAMESPACES,
    NATIVE_POD_GROUPS,
    NODES,
    PODS,
    VOLUME_CLAIMS,
    VOLUMES,
    WORKLOADS,
    Kind,
    ObjectRef,
)
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, PatchType, as_dict

Body = dict[str, Any]
MODULE = HERE / "server-1.37"
UPSTREAM = "test/integration/scheduler/podgroup"
PACKAGES = {"podgroup": "", "tas": "topology_aware_scheduling", "queueing": "queueing"}
INSTEAD = {  #: what is imported in place of what
    f'"k8s.io/kubernetes/{UPSTREAM}/stepsframework"': '"pumice.test/server/steps"',
    '"k8s.io/kubernetes/test/integration/util"': '"pumice.test/server/util"',
}
OF_PLUGINS = "|".join(
    (
        *("TestWorkloadAwarePreemptionInvocation", "TestPostFilterNotCalled", "TestPodGroupPostFilterIteration"),
        *("TestPodGroupDependentRequired", "TestPodGroupQueueing/mid-cycle", "TestPodGroupQueueing/fails_PreBind"),
    )
)
LIMIT_S, SEEN_S = 60.0, 0.3
LEFT_ALONE_S = 1.5  #: after it a pod that should not be tried has not been


class Scenario(NamedTuple):
    name: str
    gates: dict[str, bool]
    steps: list[Body]
    volumes: list[Body]
    claims: list[Body]


def scenarios() -> list[Scenario]:
    """As upstream's tests write them down, once for each state of the stand-ins."""
    sources = [*sorted(MODULE.rglob("*.go")), MODULE / "go.mod"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    kept = cache_folder() / f"podgroup-steps-{digest}.json"
    if not kept.exists():
        cache_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            shutil.move(_written_down(Path(folder)), kept)
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    return [Scenario(line["name"], line["gates"], line["steps"], line["volumes"] or [], line["claims"] or []) for line in lines]


def _written_down(folder: Path) -> Path:
    shutil.copytree(MODULE, folder / "server")
    source = module_folder(f"k8s.io/kubernetes@v{NEXT}") / UPSTREAM
    for name, sub in PACKAGES.items():
        (folder / "server" / name).mkdir()
        for path in (source / sub).glob("*_test.go"):
            text = path.read_text()
            for theirs, ours in INSTEAD.items():
                text = text.replace(theirs, ours)
            if path.name != "main_test.go":  # it starts etcd
                (folder / "server" / name / path.name).write_text(text)
    written = folder / "steps.jsonl"
    tests = ["nice", "-n", "19", "go", "test", "-mod=readonly", "-trimpath", "-vet=off", "-count=1", "-p=1", f"-skip={OF_PLUGINS}"]
    environment = os.environ | {"CGO_ENABLED": "0", "STEPS": str(written)}
    done = subprocess.run(
        [*tests, *(f"./{name}" for name in PACKAGES)], cwd=folder / "server", env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return written


class Play:
    """One scenario in a namespace of its own. Its nodes are the only ones."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._does: dict[str, Callable[[Any], Awaitable[None]]] = {
            "CreateNodes": lambda nodes: self._create(NODES, nodes, ""),
            "CreatePods": lambda pods: self._create(PODS, pods),
            "CreatePodsInOrder": lambda pods: self._create(PODS, pods),
            "CreateWorkloads": lambda workloads: self._create(WORKLOADS, workloads),
            "CreatePodGroup": lambda group: self._create(NATIVE_POD_GROUPS, [group]),
            "CreateCompositePodGroup": lambda group: self._create(COMPOSITE_POD_GROUPS, [group]),
            "UpdatePodGroup": lambda group: self._update(NATIVE_POD_GROUPS, group),
            "UpdateCompositePodGroup": lambda group: self._update(COMPOSITE_POD_GROUPS, group),
            "DeletePodGroup": self._delete_group,
            "DeletePods": self._delete_pods,
            "UpdatePod": self._update_pod,
            "WaitForPodsInUnschedulableEntities": self._held_back,
            "WaitForPodsInIncompletePodGroupPods": self._held_back,
            "WaitForPodsUnschedulable": lambda names: self._until_all(names, "Unschedulable"),
            "WaitForPodsSchedulingError": lambda names: self._until_all(names, "SchedulerError"),
            "WaitForPodsScheduled": lambda names: self._until_all(names, "scheduled"),
            "WaitForPodsRemoved": lambda names: self._until_all(names, "gone"),
            "WaitForAnyPodsScheduled": self._until_so_many,
            "WaitForPodGroupCondition": self._until_group,
            "VerifyAssignments": self._assigned,
            "VerifyAssignedInOneDomain": self._in_one_domain,
            "VerifyPodSchedulingAttempts": self._tried,
        }

    async def run(self, scenario: Scenario) -> None:
        await self._client.create(NAMESPACES, {"metadata": {"name": self._namespace}})
        await self._create(VOLUMES, [self._moved(each) for each in scenario.volumes], "")
        await self._create(VOLUME_CLAIMS, scenario.claims)
        for step in scenario.steps:
            (does,) = step.keys() - {"Name"}
            try:
                await asyncio.wait_for(self._does[does](step[does]), LIMIT_S)
            except (TimeoutError, AssertionError) as error:
                raise AssertionError(f"{step['Name']}: {error or 'it did not come to it'}: {await self._told()}") from error

    async def clear(self) -> None:
        """Everything but the namespace."""
        for kind in (PODS, NATIVE_POD_GROUPS, COMPOSITE_POD_GROUPS, NODES, VOLUME_CLAIMS, VOLUMES):
            with suppress(ApiError):  # it is served with its gate only
                async for page in self._client.pages(ListScope(kind)):
                    for raw in page.items:
                        await self._remove(kind, as_dict(raw)["metadata"])

    async def _remove(self, kind: Kind, meta: Body) -> None:
        ref = ObjectRef(meta["name"], meta.get("namespace", ""))
        with suppress(ApiError):
            if meta.get("finalizers"):
                await self._client.patch(kind, ref, {"metadata": {"finalizers": None}}, PatchType.MERGE)
            await self._client.delete(kind, ref, grace_s=0)

    # ---- steps

    def _moved(self, volume: Body) -> Body:
        return volume | {"metadata": volume["metadata"] | {"namespace": None}}

    async def _create(self, kind: Kind, bodies: list[Body], namespace: str | None = None) -> None:
        place = self._namespace if namespace is None else namespace
        for body in bodies:
            head = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": body["metadata"] | {"namespace": place or None}}
            await self._client.create(kind, body | head, place)
        if kind != PODS:
            await asyncio.sleep(SEEN_S)  # until the scheduler has seen it

    async def _update(self, kind: Kind, body: Body) -> None:
        ref = ObjectRef(body["metadata"]["name"], self._namespace)
        await self._client.patch(kind, ref, {"spec": {"schedulingPolicy": body["spec"]["schedulingPolicy"]}}, PatchType.MERGE)

    async def _delete_group(self, name: str) -> None:
        ref = ObjectRef(name, self._namespace)
        await self._client.patch(NATIVE_POD_GROUPS, ref, {"metadata": {"finalizers": None}}, PatchType.MERGE)
        await self._client.delete(NATIVE_POD_GROUPS, ref)
        await asyncio.sleep(SEEN_S)

    async def _delete_pods(self, names: list[str]) -> None:
        for name in names:
            await self._client.delete(PODS, ObjectRef(name, self._namespace))

    async def _update_pod(self, told: Body) -> None:
        gates = told["Pod"]["spec"].get("schedulingGates")
        ref = ObjectRef(told["PodName"], self._namespace)
        await self._client.patch(PODS, ref, {"spec": {"schedulingGates": gates}}, PatchType.MERGE)

    async def _left_alone(self, names: list[str], *states: str) -> None:
        await asyncio.sleep(LEFT_ALONE_S)
        pods = await self._pods()
        assert all(_state(pods.get(name)) in states for name in names)

    async def _held_back(self, names: list[str]) -> None:
        """It may have been refused before."""
        await self._left_alone(names, "untold", "SchedulingGated", "Unschedulable")

    async def _until(self, question: Callable[[dict[str, Body]], bool]) -> None:
        while not question(await self._pods()):
            await asyncio.sleep(0.1)

    async def _until_all(self, names: list[str], state: str) -> None:
        await self._until(lambda pods: all(_state(pods.get(name)) == state for name in names))

    async def _until_so_many(self, told: Body) -> None:
        names = [pod["metadata"]["name"] for pod in told["Pods"]]
        wanted = [told["NumScheduled"], told["NumUnschedulable"]]

        def there(pods: dict[str, Body]) -> bool:
            states = [_state(pods.get(name)) for name in names]
            return [states.count("scheduled"), states.count("Unschedulable")] == wanted

        await self._until(there)

    async def _until_group(self, told: Body) -> None:
        wanted = ("PodGroupInitiallyScheduled", told["ConditionStatus"], told["Reason"])
        while True:
            group = as_dict(await self._client.get(NATIVE_POD_GROUPS, ObjectRef(told["PodGroupName"], self._namespace)))
            conditions = (group.get("status") or {}).get("conditions") or ()
            if any((each["type"], each["status"], each["reason"]) == wanted for each in conditions):
                return
            await asyncio.sleep(0.1)

    async def _assigned(self, told: Body) -> None:
        pods = await self._pods()
        assert {pods[name]["spec"].get("nodeName") for name in told["Pods"]} <= told["Nodes"].keys()

    async def _in_one_domain(self, told: Body) -> None:
        pods = await self._pods()
        nodes = [as_dict(await self._client.get(NODES, ObjectRef(pods[name]["spec"]["nodeName"]))) for name in told["Pods"]]
        assert len({node["metadata"]["labels"][told["TopologyKey"]] for node in nodes}) == 1

    async def _tried(self, told: Body) -> None:
        assert told["Attempts"] == 0, "more cannot be seen from outside"
        await self._left_alone(told["PodNames"], "untold")

    # ---- what there is

    async def _pods(self) -> dict[str, Body]:
        pages = self._client.pages(ListScope(PODS, self._namespace))
        return {pod["metadata"]["name"]: pod async for page in pages for pod in map(as_dict, page.items)}

    async def _told(self) -> dict[str, str]:
        pods = await self._pods()
        return {name: f"{_state(pod)} {pod['spec'].get('nodeName', '')}" for name, pod in pods.items()}


def _state(pod: Body | None) -> str:
    """`scheduled`, `gone`, the reason why it is not scheduled, or `untold`."""
    if pod is None:
        return "gone"
    if pod["spec"].get("nodeName"):
        return "scheduled"
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((each.get("reason", "untold") for each in conditions if each["type"] == "PodScheduled"), "untold")
