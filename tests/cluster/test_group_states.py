"""Random states of trees of groups, topology, preemption and devices, decided by the real kube-scheduler 1.37 and by ours.

Both stand before a real API server. What runs is there first. Then come trees and gangs, each when the one before has settled: first its
pods, one after the other, then its groups from below. Scheduling gates hold the pods until all of them were surely seen: else the real one
may begin with some of them. Compared is what settles: the places, who was evicted, and what the conditions of groups and pods say; not what
is said of a group that had a placed pod, which the real one may write over before its watch has shown it. Among placements of equal score,
which of those that fail is told of, and whether the real one returns a group to its queue before it has sent its evictions (then it may
wait for minutes), chance decides: a state that differs is played again, some times, and something that ours came to must be among what the
real one came to. SEED and STATES choose the states.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from binaries import NEXT, programs, why_not
from played_nodes import add_node
from realcluster import RealCluster
from stage import until_true
from test_device_states import clear, created
from test_native_suites import SCHEDULER, SCHEDULERS, SERVER, commands, running, served

from pumice.api.kinds import (
    COMPOSITE_POD_GROUPS,
    DEVICE_CLASSES,
    NATIVE_POD_GROUPS,
    NODES,
    PODS,
    PRIORITY_CLASSES,
    RESOURCE_CLAIMS,
    Kind,
    ObjectRef,
)
from pumice.client.client import Client
from pumice.client.transport import ListScope, PatchType, as_dict

pytestmark = pytest.mark.nightly
NEEDED = ("etcd", SERVER, SCHEDULER)
GATES = dict.fromkeys(("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup", "DRAWorkloadResourceClaims"), True)
PRIORITIES = {"low": 10, "mid": 100, "high": 1000}
OF_WORKLOAD = {"workloadName": "w", "templateName": "t"}  # nobody looks for it
RACK, ZONE = "example.com/rack", "example.com/zone"
ADMISSION = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,PodGroupProtection"
STATES = 12
LIMIT_S = 60
STILL_S = 5.0  #: after so long without a change nothing more happens: back-offs last two seconds at most here
UNTOLD_S = 20.0
SEEN_S = 0.5  #: by then the watches of all kinds have shown what was written
MORE_TURNS = {"kube-scheduler": 5, "pumice": 3}
Body = dict[str, Any]
Named = tuple[Kind, Body]
Outcome = dict[str, Any]


class GroupState:
    """One state; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._pick = self._draw.choice
        self._often = lambda share: self._draw.random() < share
        self._racks = self._draw.randint(1, 3)
        self._of = f"s{seed}-"  #: before all names: watches of different kinds may show the state before
        self.nodes = {f"{self._of}n{number}": self._pick("2234") for number in range(self._draw.randint(2, 5))}
        self.labels = {
            name: {RACK: f"r{number % self._racks}", ZONE: f"z{number % self._racks // 2}"} for number, name in enumerate(self.nodes)
        }
        self._free = {name: int(cpu) for name, cpu in self.nodes.items()}
        self._devices = self._often(0.4)
        self.slices = [self._slice(name) for name in self.nodes] if self._devices else []
        self.running = list(self._running())
        self.pending = [sorted(unit, key=_arrival) for unit in self._pending()]
        pods = [body["metadata"]["name"] for kind, body in self.running if kind is PODS]
        minutes = self._draw.sample(range(60), len(pods))  # so that chance does not decide whom to evict
        self.started = {name: f"2026-01-01T00:{minute:02}:00Z" for name, minute in zip(pods, minutes, strict=True)}

    def _slice(self, node: str) -> Body:
        devices = [{"name": f"d{number}"} for number in range(self._draw.randint(1, 2))]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        return {"metadata": {"name": node}, "spec": {"driver": "d.example.com", "nodeName": node, "pool": pool, "devices": devices}}

    def _running(self) -> Iterator[Named]:
        for number in range(self._draw.randint(0, 4)):
            name, size, priority = f"{self._of}run{number}", self._draw.randint(1, 3), self._pick(["low", "low", "mid"])
            alone = self._often(0.4)
            if not alone:
                yield self._group(name, 1, priority, key="")
            for member in range(size):
                node = next((each for each in self._draw.sample(list(self._free), len(self._free)) if self._free[each]), None)
                if node is not None:
                    self._free[node] -= 1
                    yield PODS, self._pod(f"{name}-{member}", "" if alone else name, priority, "1", node)

    def _pending(self) -> Iterator[list[Named]]:
        for number in range(self._draw.randint(1, 2)):
            if self._often(0.5):
                yield list(self._tree(f"{self._of}tree{number}"))
            else:
                yield list(self._gang(f"{self._of}gang{number}", self._pick(list(PRIORITIES))))
        if self._often(0.4):
            yield [(PODS, self._pod(f"{self._of}single", "", self._pick(list(PRIORITIES)), self._pick("12")))]

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
        claimed, shared = self._devices and self._often(0.6), self._often(0.5)
        kind, group = self._group(name, self._draw.randint(1, size), priority, parent)
        if claimed and shared:
            group["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": f"{name}-c"}]
            yield self._claim(f"{name}-c")
        yield kind, group
        for member in range(size):
            pod = self._pod(f"{name}-{member}", name, priority, cpu)
            if claimed:  # two pods that share a claim without their group may get into each other's way, as upstream's writes of it do
                used = f"{name}-c" if shared else f"{name}-{member}-c"
                pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": used}]
                if not shared:
                    yield self._claim(used)
            yield PODS, pod

    def _claim(self, name: str) -> Named:
        exactly = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": self._pick([1, 1, 2])}
        return RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}

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


def _arrival(named: Named) -> int:
    """Pods come before groups, and what is above comes last."""
    kind, body = named
    if kind is COMPOSITE_POD_GROUPS:
        return 3 if "parentCompositePodGroupName" in body["spec"] else 4
    return {RESOURCE_CLAIMS: 0, PODS: 1}.get(kind, 2)


async def outcome(client: Client, state: GroupState) -> Outcome:
    for name, cpu in state.nodes.items():
        await add_node(client, name, {"cpu": cpu, "memory": "32Gi", "pods": "110"})
        await client.patch(NODES, ObjectRef(name), {"metadata": {"labels": state.labels[name]}}, PatchType.MERGE)
    for published in state.slices:
        await asyncio.wait_for(until_true(lambda published=published: created(client, published)), LIMIT_S)
    for kind, body in state.running:
        await client.create(kind, body, "default")
        if kind is PODS:
            name = body["metadata"]["name"]
            status = {"status": {"phase": "Running", "startTime": state.started[name]}}
            await client.patch(PODS, ObjectRef(name, "default"), status, PatchType.MERGE, subresource="status")
    found, placed = Outcome(), set[str]()
    for unit in state.pending:
        names = [body["metadata"]["name"] for kind, body in unit if kind is PODS]
        for kind, body in unit:
            gates = {"schedulingGates": [{"name": "example.com/begin"}]} if kind is PODS else {}
            await client.create(kind, body | {"spec": body["spec"] | gates}, "default")
        await asyncio.sleep(SEEN_S)
        for name in names:
            await client.patch(PODS, ObjectRef(name, "default"), {"spec": {"schedulingGates": None}}, PatchType.MERGE)
        found = await asyncio.wait_for(_settled(client, names, placed), LIMIT_S)
    return found


async def _settled(client: Client, pods: list[str], placed: set[str]) -> Outcome:
    """The outcome, once one of the pods has a place or is told why not (or none is for long), and nothing has changed for a while."""
    clock = asyncio.get_running_loop().time
    found, since = await _read(client, placed), clock()
    begun = since
    while clock() - since < STILL_S or (clock() - begun < UNTOLD_S and not any(found.get(f"Pod {name}") for name in pods)):
        await asyncio.sleep(0.2)
        if (now := await _read(client, placed)) != found:
            found, since = now, clock()
    return found


async def _read(client: Client, placed: set[str]) -> Outcome:
    """What is said now. `placed` gets the groups that have a placed pod."""
    found = {}
    for kind in (PODS, NATIVE_POD_GROUPS, COMPOSITE_POD_GROUPS, RESOURCE_CLAIMS):
        async for page in client.pages(ListScope(kind, "default")):
            for raw in page.items:
                obj = as_dict(raw)
                if kind is PODS and obj["spec"].get("nodeName"):
                    placed.add((obj["spec"].get("schedulingGroup") or {}).get("podGroupName", ""))
                if kind is not NATIVE_POD_GROUPS or obj["metadata"]["name"] not in placed:
                    found[f"{kind.kind} {obj['metadata']['name']}"] = _told(obj)
    return found


def _told(obj: Body) -> Any:
    status = obj.get("status") or {}
    if "allocation" in status:
        devices = [f"{each['pool']}/{each['device']}" for each in status["allocation"]["devices"]["results"]]
        return devices, sorted(f"{user['resource']}/{user['name']}" for user in status.get("reservedFor") or ())
    if node := obj["spec"].get("nodeName"):
        return node
    told = [(each["type"], each["reason"], each.get("message", "")) for each in status.get("conditions") or ()]
    return sorted(each for each in told if each[1] != "SchedulingGated")


async def outcomes(scheduler: str, states: list[GroupState], folder: Path) -> list[Outcome]:
    folder.mkdir()
    with RealCluster(folder, release=NEXT, flags=[*served(GATES), ADMISSION]) as cluster:
        async with Client(cluster.access()) as client, running(commands(cluster, GATES)[scheduler], folder / "scheduler.log"):
            await client.create(DEVICE_CLASSES, {"metadata": {"name": "any"}, "spec": {}})
            for name, value in PRIORITIES.items():
                await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
            found = []
            for state in states:
                found.append(await outcome(client, state))
                await clear(client, PODS, NATIVE_POD_GROUPS, COMPOSITE_POD_GROUPS)
            return found


def _build() -> None:
    if why_not(NEEDED):
        pytest.skip(why_not(NEEDED))
    programs(*NEEDED)


def test_random_states_of_groups_have_the_outcomes_of_the_real_scheduler(tmp_path: Path) -> None:
    _build()
    seed = int(os.environ.get("SEED", "1"))
    seeds = list(range(seed, seed + int(os.environ.get("STATES", STATES))))
    found = _played(seeds, SCHEDULERS, tmp_path / "first")
    differ = [seed for seed in seeds if found["kube-scheduler"][seed] != found["pumice"][seed]]
    if differ:
        again = _played(differ, [name for name, turns in MORE_TURNS.items() for _ in range(turns)], tmp_path / "again")
        found = {name: {seed: found[name][seed] + again[name][seed] for seed in differ} for name in found}
    odd = [seed for seed in differ if not any(own in found["kube-scheduler"][seed] for own in found["pumice"][seed])]
    assert not odd, "\n".join(_told_apart(seed, found["kube-scheduler"][seed][0], found["pumice"][seed][0]) for seed in odd)


def _played(seeds: list[int], schedulers: Iterable[str], folder: Path) -> dict[str, dict[int, list[Outcome]]]:
    """What each scheduler came to, by seed; each turn in a cluster of its own, all at once."""
    folder.mkdir()
    turns = [(name, folder / f"{number}-{name}") for number, name in enumerate(schedulers)]
    with ThreadPoolExecutor(len(turns)) as pool:
        ended = pool.map(lambda turn: asyncio.run(outcomes(turn[0], [GroupState(seed) for seed in seeds], turn[1])), turns)
        found: dict[str, dict[int, list[Outcome]]] = {name: {seed: [] for seed in seeds} for name, _ in turns}
        for (name, _), told in zip(turns, ended, strict=True):
            for seed, one in zip(seeds, told, strict=True):
                found[name][seed].append(one)
    return found


def _told_apart(seed: int, theirs: Outcome, ours: Outcome) -> str:
    names = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
    return f"state {seed}\n" + "\n".join(f"  {name}: {theirs.get(name)}\n   but ours: {ours.get(name)}" for name in names)
