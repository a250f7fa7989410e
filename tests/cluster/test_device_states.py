"""Random states of devices that take of their node's own resources, decided by the real kube-scheduler 1.37 and by ours.

Both stand before a real API server with the gate DRANodeAllocatableResources. Pods come one after the other, each when the last is bound or
told why it is not. Compared are the places, what is written of the devices, and the reasons. Nodes and claims have names of their own in
each state: a scheduler sees pods and claims by different watches, and would take a claim for that of the state before. A state that differs
is played once more. SEED and STATES choose the states.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from binaries import NEXT, programs, why_not
from played_nodes import add_node
from realcluster import RealCluster
from stage import until_true
from test_native_suites import AS_TESTED, NEEDED, SCHEDULERS, commands, running, served

from pumice.api.kinds import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NODES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kind,
    ObjectRef,
)
from pumice.client.client import Client
from pumice.client.failures import ApiError, despite
from pumice.client.transport import ListScope, PatchType, as_dict

pytestmark = pytest.mark.nightly
GATE = "DRANodeAllocatableResources"
GATES = {"GenericWorkload": True, GATE: True}
FEATURES = ("DerivedAttributes", "OptionalNodeOperations", "PartitionableDevicesType", "ListTypeAttributes", "DeviceCompatibilityGroups")
CHARGES = "nodeAllocatableResourceClaimStatuses"
HUGE = "hugepages-2Mi"
STATES = 40
LIMIT_S = 60
Body = dict[str, Any]


class DeviceState:
    """One state; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._pick = self._draw.choice
        self._often = lambda share: self._draw.random() < share
        self.nodes = {f"s{seed}-n{number}": self._room() for number in range(self._draw.randint(2, 3))}
        self._kinds = [self._kind() for _ in range(2)]
        self.slices = [self._slice(name) for name in self.nodes]
        self.claims = [self._claim(f"s{seed}-c{number}") for number in range(self._draw.randint(3, 5))]
        self.pods = [self._pod(f"p{number}") for number in range(self._draw.randint(4, 6))]

    def _room(self) -> dict[str, str]:
        room = {"cpu": self._pick(["4", "6", "8"]), "memory": self._pick(["6Gi", "9Gi", "12Gi"]), "pods": "110"}
        return room | ({HUGE: "512Mi"} if self._often(0.6) else {})

    def _kind(self) -> Body:
        """What the devices of a kind have and take."""
        shared = self._often(0.4)
        capacity: Body = {"cores": {"value": "8"}, "ram": {"value": "8Gi"}}
        if shared and self._often(0.5):
            ranged = {"default": "2", "validRange": {"min": "1", "max": "7", "step": "1"}}
            capacity["cores"]["requestPolicy"] = self._pick([{"default": "2", "validValues": ["1", "2", "4"]}, ranged])
        taken = {name: self._taken(name, shared) for name in self._draw.sample(["cpu", "memory", HUGE], self._draw.randint(1, 2))}
        kind: Body = {"capacity": capacity, "allowMultipleAllocations": True} if shared else {}
        return kind | ({"nodeAllocatableResources": taken} if self._often(0.9) else {})

    def _taken(self, name: str, shared: bool) -> Body:
        amounts = {"cpu": ["250m", "500m", "1", "2"], "memory": ["256Mi", "1Gi", "1500Mi"], HUGE: ["64Mi", "128Mi"]}[name]
        mapping: Body = {"deviceMultiplier": self._pick(amounts)}
        if shared and self._often(0.7):
            key = "cores" if name == "cpu" else "ram"
            mapping = {"capacityKey": key, "capacityMultiplier": self._pick(["1", "500m", "2"] if name == "cpu" else ["1", "250m"])}
        overhead = {key: self._pick(amounts) for key in self._draw.sample(["perPod", "perContainer"], self._draw.randint(1, 2))}
        return self._pick([{"mapping": mapping}, {"overhead": overhead}, {"mapping": mapping, "overhead": overhead}])

    def _slice(self, node: str) -> Body:
        devices = [{"name": f"d{number}"} | self._pick(self._kinds) for number in range(self._draw.randint(1, 4))]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        return {"metadata": {"name": node}, "spec": {"driver": "d.example.com", "nodeName": node, "pool": pool, "devices": devices}}

    def _claim(self, name: str) -> Body:
        exactly: Body = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": self._pick([1, 1, 2])}
        if self._often(0.2):
            exactly = {"deviceClassName": "any", "allocationMode": "All"}
        if self._often(0.4):
            exactly["capacity"] = {"requests": {"cores": self._pick("123"), "ram": self._pick(["512Mi", "1Gi", "3Gi"])}}
        devices: Body = {"requests": [{"name": "r", "exactly": exactly}]}
        if self._often(0.2):
            devices["requests"].append(
                {"name": "s", "firstAvailable": [{"name": str(n), "deviceClassName": "any", "count": n} for n in (2, 1)]}
            )
        if self._often(0.3):
            names = self._pick([[], ["r"], [each["name"] for each in devices["requests"]]])
            devices["config"] = [{"requests": names, "opaque": {"driver": "d.example.com", "parameters": {"fast": True}}}]
        return {"metadata": {"name": name}, "spec": {"devices": devices}}

    def _pod(self, name: str) -> Body:
        claims = self._draw.sample([claim["metadata"]["name"] for claim in self.claims], self._pick([0, 1, 1, 1, 2]))
        containers = [self._container(f"k{number}", claims) for number in range(self._draw.randint(1, 3))]
        spec: Body = {"containers": containers, "affinity": {"nodeAffinity": self._preferred()}, "terminationGracePeriodSeconds": 0}
        if self._often(0.25):
            spec["initContainers"] = [self._container("first", claims)]
        if claims:
            spec["resourceClaims"] = [{"name": claim, "resourceClaimName": claim} for claim in claims]
        if self._often(0.3):
            whole = {"cpu": self._pick(["3", "4", "5"]), "memory": self._pick(["4Gi", "5Gi"])}
            spec["resources"] = {"requests": whole} | ({"limits": whole} if self._often(0.5) else {})
        return {"metadata": {"name": name}, "spec": spec}

    def _container(self, name: str, claims: list[str]) -> Body:
        requests = {"cpu": self._pick(["100m", "500m", "1"]), "memory": self._pick(["128Mi", "512Mi", "1Gi"])}
        resources: Body = {"requests": requests} | ({"limits": requests} if self._often(0.3) else {})
        if used := [{"name": claim} for claim in claims if self._often(0.7)]:
            resources["claims"] = used
        return {"name": name, "image": "x", "resources": resources}

    def _preferred(self) -> Body:
        """An order of the nodes, so that chance decides nothing."""
        order = self._draw.sample(list(self.nodes), len(self.nodes))
        terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]} for name in order]
        weighed = [{"weight": 100 // 4**n, "preference": {"matchExpressions": [term]}} for n, term in enumerate(terms)]
        return {"preferredDuringSchedulingIgnoredDuringExecution": weighed}


async def outcome(client: Client, state: DeviceState) -> dict[str, Any]:
    """By pod: its node and what is written of its devices, or why it has none."""
    declared = {"status": {"declaredFeatures": [GATE]}}
    for name, room in state.nodes.items():
        await add_node(client, name, room)
        await client.patch(NODES, ObjectRef(name), declared, PatchType.MERGE, subresource="status")
    for published in state.slices:
        await asyncio.wait_for(until_true(lambda published=published: created(client, published)), LIMIT_S)
    for claim in state.claims:
        await client.create(RESOURCE_CLAIMS, claim, "default")
    found = {}
    for pod in state.pods:
        name = pod["metadata"]["name"]
        await client.create(PODS, pod, "default")
        await asyncio.wait_for(until_true(lambda name=name: _settled(client, name), 0.1), LIMIT_S)
        found[name] = await _read(client, name)
    return found


async def created(client: Client, published: Body) -> bool:
    """The API server's admission may not have seen the node yet."""
    try:
        await client.create(RESOURCE_SLICES, published)
    except ApiError as error:
        assert error.code == 403, error
        return False
    return True


async def _settled(client: Client, name: str) -> bool:
    pod = as_dict(await client.get(PODS, ObjectRef(name, "default")))
    return bool(pod["spec"].get("nodeName") or (pod.get("status") or {}).get("conditions"))


async def _read(client: Client, name: str) -> Any:
    pod = as_dict(await client.get(PODS, ObjectRef(name, "default")))
    if node := pod["spec"].get("nodeName"):
        return node, pod["status"].get(CHARGES), [await _given(client, each["name"]) for each in pod["spec"].get("resourceClaims") or ()]
    return next(each["message"] for each in pod["status"]["conditions"] if each["type"] == "PodScheduled")


async def _given(client: Client, name: str) -> Any:
    """The devices of a claim and their configurations. Of a share its id is made up."""
    devices = as_dict(await client.get(RESOURCE_CLAIMS, ObjectRef(name, "default")))["status"]["allocation"]["devices"]
    return [result | {"shareID": "shareID" in result} for result in devices["results"]], devices.get("config")


WHOLE = re.compile(r"(\d+) pod level request for \S+ ")


def _settled_text(found: Any) -> Any:
    """The outcome without what chance decides: which of the resources is told of which the pod as a whole has too little."""
    if not isinstance(found, str):
        return found
    return sum(map(int, WHOLE.findall(found))), sorted(part for part in found.split(", ") if not WHOLE.search(part))


async def clear(client: Client, *kinds: Kind) -> None:
    for kind in (*kinds, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, NODES):
        async for page in client.pages(ListScope(kind)):
            for raw in page.items:
                meta = as_dict(raw)["metadata"]
                ref = ObjectRef(meta["name"], meta.get("namespace", ""))
                with despite(404):
                    if meta.get("finalizers"):
                        await client.patch(kind, ref, {"metadata": {"finalizers": None}}, PatchType.MERGE)
                    await client.delete(kind, ref, grace_s=0)


async def outcomes(scheduler: str, states: list[DeviceState], folder: Path) -> list[dict[str, Any]]:
    folder.mkdir()
    with RealCluster(folder, release=NEXT, flags=[*served(GATES), *AS_TESTED]) as cluster:
        async with Client(cluster.access()) as client, running(commands(cluster, GATES)[scheduler], folder / "scheduler.log"):
            config = [{"opaque": {"driver": "d.example.com", "parameters": {"slow": False}}}]
            await client.create(DEVICE_CLASSES, {"metadata": {"name": "any"}, "spec": {"config": config}})
            found = []
            for state in states:
                found.append(await outcome(client, state))
                await clear(client)
            return found


async def said(cases: list[Body], folder: Path) -> dict[str, list[str]]:
    """By case: what the real API server says of its object, and of its status after that."""
    several = (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_SLICES, DEVICE_CLASSES, DEVICE_TAINT_RULES, PODS)
    found, kinds = {}, {kind.kind: kind for kind in several}
    gates = GATES | {f"DRA{name}": True for name in ("ResourcePoolStatus", *FEATURES)}
    with RealCluster(folder, release=NEXT, flags=[*served(gates), *AS_TESTED]) as cluster:
        async with Client(cluster.access()) as client:
            for number, case in enumerate(cases):
                name, kind = f"x{number}", kinds[case["object"]["kind"]]
                namespace = "" if kind.kind in ("ResourceSlice", "DeviceClass", "DeviceTaintRule") else "default"
                body = case["object"] | {"metadata": {"name": name}}
                status = body.pop("status", None)
                try:
                    await client.create(kind, body, namespace)
                    if status is not None:
                        change = {"status": status}
                        await client.patch(kind, ObjectRef(name, namespace), change, PatchType.MERGE, subresource="status")
                    found[case["name"]] = []
                except ApiError as error:
                    found[case["name"]] = [text for text in case["errors"] if text in str(error)] or [str(error)]
    return found


def test_the_real_server_says_what_is_recorded_of_invalid_objects(tmp_path: Path) -> None:
    _build()
    cases = yaml.safe_load((Path(__file__).parents[1] / "apiserver" / "devices.yaml").read_text())
    assert asyncio.run(said(cases, tmp_path)) == {case["name"]: case["errors"] for case in cases}


def _build() -> None:
    if why_not(NEEDED):
        pytest.skip(why_not(NEEDED))
    programs(*NEEDED)


def test_random_states_have_the_outcomes_of_the_real_scheduler(tmp_path: Path) -> None:
    _build()
    seed = int(os.environ.get("SEED", "1"))
    seeds = list(range(seed, seed + int(os.environ.get("STATES", STATES))))
    differ = differing(seeds, tmp_path / "first")
    again = differing(sorted(differ), tmp_path / "again") if differ else {}
    assert not again, "\n".join(again.values())


def differing(seeds: list[int], folder: Path) -> dict[int, str]:
    """By seed: a pod whose outcome differs."""
    folder.mkdir()
    states = [DeviceState(each) for each in seeds]
    real, own = (asyncio.run(outcomes(name, states, folder / name)) for name in SCHEDULERS)
    pods = [(each, name, theirs[name], ours[name]) for each, theirs, ours in zip(seeds, real, own, strict=True) for name in theirs]
    other = (pod for pod in pods if _settled_text(pod[2]) != _settled_text(pod[3]))
    return {each: f"state {each}, {name}: {theirs}, but ours {ours}" for each, name, theirs, ours in other}
