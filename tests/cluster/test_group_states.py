"""Random states of trees of groups, topology, preemption and devices, decided by the real kube-scheduler 1.37 and by ours.

Both stand before a real API server. What runs is there first; then come the groups, all at once, and their pods. Where the first decisions
depend on what is seen first, so would the outcome: so the scheduler starts when everything is there. Compared is what settles: the places,
who was evicted, and what the conditions of groups and pods say. A state that differs is played again. SEED and STATES choose the states.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from binaries import NEXT, programs, why_not
from played_nodes import add_node
from realcluster import RealCluster
from test_device_states import clear
from test_native_suites import AS_TESTED, NEEDED, SCHEDULERS, commands, running, served

from pumice.api.kinds import (
    COMPOSITE_POD_GROUPS,
    DEVICE_CLASSES,
    NATIVE_POD_GROUPS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Kind,
    ObjectRef,
)
from pumice.client.client import Client
from pumice.client.transport import ListScope, PatchType, as_dict

pytestmark = pytest.mark.nightly
GATES = dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup", "DRAWorkloadResourceClaims"), True)
PRIORITIES = {"low": 10, "mid": 100, "high": 1000}
OF_WORKLOAD = {"workloadName": "w", "templateName": "t"}  # nobody looks for it
RACK, ZONE = "example.com/rack", "example.com/zone"
#: nowhere to go and the least important, so that it is tried after all others
LAST: Body = {
    "metadata": {"name": "last"},
    "spec": {"containers": [{"name": "c", "image": "x"}], "nodeSelector": {"is": "nowhere"}},
}
STATES = 25
LIMIT_S = 60
STILL_S = 2.5  #: after so long without a change nothing more happens: back-offs end after a second here
Body = dict[str, Any]
Named = tuple[Kind, Body]


class GroupState:
    """One state; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._pick = self._draw.choice
        self._often = lambda share: self._draw.random() < share
        self._racks = self._draw.randint(1, 3)
        self.nodes = {f"n{number}": self._pick("2234") for number in range(self._draw.randint(2, 5))}
        self.labels = {
            name: {RACK: f"r{number % self._racks}", ZONE: f"z{number % self._racks // 2}"} for number, name in enumerate(self.nodes)
        }
        self._free = {name: int(cpu) for name, cpu in self.nodes.items()}
        self._devices = self._often(0.4)
        self.slices = [self._slice(name) for name in self.nodes] if self._devices else []
        self.running = list(self._running())
        self.pending = list(self._pending())

    def _slice(self, node: str) -> Body:
        devices = [{"name": f"d{number}"} for number in range(self._draw.randint(1, 2))]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        return {"metadata": {"name": node}, "spec": {"driver": "d.example.com", "nodeName": node, "pool": pool, "devices": devices}}

    def _running(self) -> Iterator[Named]:
        for number in range(self._draw.randint(0, 4)):
            name, size, priority = f"run{number}", self._draw.randint(1, 3), self._pick(["low", "low", "mid"])
            alone = self._often(0.4)
            if not alone:
                yield self._group(name, 1, priority, key="")
            for member in range(size):
                node = next((each for each in self._draw.sample(list(self._free), len(self._free)) if self._free[each]), None)
                if node is not None:
                    self._free[node] -= 1
                    yield PODS, self._pod(f"{name}-{member}", "" if alone else name, priority, "1", node)

    def _pending(self) -> Iterator[Named]:
        for number in range(self._draw.randint(1, 2)):
            if self._often(0.5):
                yield from self._tree(f"tree{number}")
            else:
                yield from self._gang(f"gang{number}", self._pick(list(PRIORITIES)))
        if self._often(0.4):
            yield PODS, self._pod("single", "", self._pick(list(PRIORITIES)), self._pick("12"))

    def _tree(self, name: str) -> Iterator[Named]:
        priority, children = self._pick(list(PRIORITIES)), self._draw.randint(1, 3)
        policy = {"gang": {"minGroupCount": self._draw.randint(1, children)}} if self._often(0.8) else {"basic": {}}
        made_by = {"workloadRef": OF_WORKLOAD}
        yield COMPOSITE_POD_GROUPS, {"metadata": {"name": name}, "spec": self._spec(policy, priority, ZONE) | made_by}
        parent = name
        if self._often(0.25):
            parent = f"{name}-inner"
            inner = self._spec({"gang": {"minGroupCount": 1}}, priority, RACK)
            yield COMPOSITE_POD_GROUPS, {"metadata": {"name": parent}, "spec": inner | made_by | {"parentCompositePodGroupName": name}}
        for child in range(children):
            yield from self._gang(f"{name}-{child}", priority, parent)

    def _spec(self, policy: Body, priority: str, key: str) -> Body:
        spec: Body = {
            "schedulingPolicy": policy,
            "priorityClassName": priority,
            "disruptionMode": self._pick([{"single": {}}, {"all": {}}]),
        }
        return spec | ({"schedulingConstraints": {"topology": [{"key": key}]}} if key and self._often(0.4) else {})

    def _group(self, name: str, least: int, priority: str, parent: str = "", key: str = RACK) -> Named:
        policy = {"gang": {"minCount": least}} if self._often(0.8) else {"basic": {}}
        spec = self._spec(policy, priority, key) | ({"parentCompositePodGroupName": parent, "workloadRef": OF_WORKLOAD} if parent else {})
        return NATIVE_POD_GROUPS, {"metadata": {"name": name}, "spec": spec}

    def _gang(self, name: str, priority: str, parent: str = "") -> Iterator[Named]:
        size, cpu = self._draw.randint(1, 3), self._pick("112")
        claimed = self._devices and self._often(0.6)
        kind, group = self._group(name, self._draw.randint(1, size), priority, parent)
        if claimed and self._often(0.5):
            group["spec"]["resourceClaims"] = [{"name": "of-group", "resourceClaimName": f"{name}-c"}]
        yield kind, group
        if claimed:
            exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": self._pick([1, 1, 2])}
            spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
            yield RESOURCE_CLAIMS, {"metadata": {"name": f"{name}-c"}, "spec": spec}
        for member in range(size):
            pod = self._pod(f"{name}-{member}", name, priority, cpu)
            if claimed:
                pod["spec"]["resourceClaims"] = [{"name": "mine", "resourceClaimName": f"{name}-c"}]
            yield PODS, pod

    def _pod(self, name: str, group: str, priority: str, cpu: str, node: str = "") -> Body:
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
        order = self._draw.sample(list(self.nodes), len(self.nodes))  # so that chance decides nothing
        terms = [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]} for name in order]
        weighed = [{"weight": max(100 // 3**n, 1), "preference": {"matchExpressions": [term]}} for n, term in enumerate(terms)]
        spec: Body = {"containers": [container], "priorityClassName": priority, "terminationGracePeriodSeconds": 0}
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighed}}
        if group:
            spec["schedulingGroup"] = {"podGroupName": group}
        return {"metadata": {"name": name}, "spec": spec | ({"nodeName": node} if node else {})}


async def outcome(client: Client, state: GroupState, scheduler: list[str], log: Path) -> dict[str, Any]:
    for name, cpu in state.nodes.items():
        await add_node(client, name, {"cpu": cpu, "memory": "32Gi", "pods": "110"})
        await client.patch(NODES, ObjectRef(name), {"metadata": {"labels": state.labels[name]}}, PatchType.MERGE)
    for published in state.slices:
        await client.create(RESOURCE_SLICES, published)
    for kind, body in state.running:
        await client.create(kind, body, "default")
        if kind is PODS:
            status = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}
            await client.patch(PODS, ObjectRef(body["metadata"]["name"], "default"), status, PatchType.MERGE, subresource="status")
    for kind, body in state.pending:
        await client.create(kind, body, "default")
    await client.create(PODS, LAST, "default")
    async with running(scheduler, log):
        return await asyncio.wait_for(_settled(client), LIMIT_S)


async def _settled(client: Client) -> dict[str, Any]:
    """The outcome, once nothing has changed for a while."""
    found, since, clock = await _read(client), 0.0, asyncio.get_running_loop().time
    since = clock()
    while clock() - since < STILL_S or not found["Pod last"]:
        await asyncio.sleep(0.2)
        if (now := await _read(client)) != found:
            found, since = now, clock()
    return found


async def _read(client: Client) -> dict[str, Any]:
    found = {}
    for kind in (PODS, NATIVE_POD_GROUPS, COMPOSITE_POD_GROUPS, RESOURCE_CLAIMS):
        async for page in client.pages(ListScope(kind, "default")):
            for raw in page.items:
                obj = as_dict(raw)
                found[f"{kind.kind} {obj['metadata']['name']}"] = _told(obj)
    return found


def _told(obj: Body) -> Any:
    status = obj.get("status") or {}
    if "allocation" in status:
        devices = [f"{each['pool']}/{each['device']}" for each in status["allocation"]["devices"]["results"]]
        return devices, sorted(f"{user['resource']}/{user['name']}" for user in status.get("reservedFor") or ())
    if node := obj["spec"].get("nodeName"):
        return node
    return sorted((each["type"], each["reason"], each["message"]) for each in status.get("conditions") or ())


async def outcomes(scheduler: str, states: list[GroupState], folder: Path) -> list[dict[str, Any]]:
    folder.mkdir()
    with RealCluster(folder, release=NEXT, flags=[*served(GATES), *AS_TESTED[:0], *_admission()]) as cluster:
        async with Client(cluster.access()) as client:
            await client.create(DEVICE_CLASSES, {"metadata": {"name": "any"}, "spec": {}})
            for name, value in PRIORITIES.items():
                await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
            found, command = [], commands(cluster, GATES)[scheduler]
            for state in states:
                found.append(await outcome(client, state, command, folder / "scheduler.log"))
                await _clear_groups(client)
                await clear(client)
            return found


def _admission() -> list[str]:
    return ["--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,PodGroupProtection"]


async def _clear_groups(client: Client) -> None:
    for kind in (PODS, NATIVE_POD_GROUPS, COMPOSITE_POD_GROUPS):
        async for page in client.pages(ListScope(kind)):
            for raw in page.items:
                meta = as_dict(raw)["metadata"]
                ref = ObjectRef(meta["name"], meta.get("namespace", ""))
                if meta.get("finalizers"):
                    await client.patch(kind, ref, {"metadata": {"finalizers": None}}, PatchType.MERGE)
                await client.delete(kind, ref, grace_s=0)


def _build() -> None:
    if why_not(NEEDED):
        pytest.skip(why_not(NEEDED))
    programs(*NEEDED)


def test_random_states_of_groups_have_the_outcomes_of_the_real_scheduler(tmp_path: Path) -> None:
    _build()
    seed = int(os.environ.get("SEED", "1"))
    seeds = list(range(seed, seed + int(os.environ.get("STATES", STATES))))
    differ = differing(seeds, tmp_path / "first")
    again = differing(sorted(differ), tmp_path / "again") if differ else {}
    assert not again, "\n".join(again.values())


def differing(seeds: list[int], folder: Path) -> dict[int, str]:
    """By seed: what differs."""
    folder.mkdir()
    states = [GroupState(each) for each in seeds]
    real, own = (asyncio.run(outcomes(name, states, folder / name)) for name in SCHEDULERS)
    found = {}
    for seed, theirs, ours in zip(seeds, real, own, strict=True):
        names = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
        if names:
            told = "\n".join(f"  {name}: {theirs.get(name)}\n   but ours: {ours.get(name)}" for name in names)
            found[seed] = f"state {seed}\n{told}"
    return found
