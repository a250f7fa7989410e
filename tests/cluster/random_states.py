"""Small random states for Volcano's scheduler: nodes, queues, gangs of which some run, and a configuration.

Plain ones; some with rules about where pods may go; and some with HyperNodes and gangs that are limited to them.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import yaml
from random_features import FEATURES, Draft

ACTIONS = (
    "enqueue, allocate, backfill",
    "enqueue, allocate, preempt, reclaim, backfill",
    "enqueue, allocate, reclaim",
    "enqueue, allocate, preempt",
    "allocate, preempt",
    "enqueue, allocate, gangpreempt",
    "enqueue, allocate, gangreclaim",
)
ACTIONS_WITH_CACHE = ("allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim")
PRIORITIES = {"low": 10, "mid": 100, "high": 1000}
GPU = "nvidia.com/gpu"
MEMORY = {"1Gi": 1, "2Gi": 2, "4Gi": 4, "8Gi": 8, "16Gi": 16}
Document = dict[str, Any]


class State:
    """One state; the same for the same seed."""

    nodes = (1, 4)  #: at least and at most

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._often = lambda share: self._draw.random() < share
        self._gpus = self._often(0.5)
        self._with_capacity = self._often(0.45)
        self._tree = self._with_capacity and self._often(0.4)
        self._left: dict[str, dict[str, float]] = {}  #: by node: room for running pods
        self._seconds = 0
        nodes = [self._node(f"n{number}") for number in range(1, self._draw.randint(*self.nodes) + 1)]
        queues = self._queues()
        names = [item["metadata"]["name"] for item in queues if item["metadata"]["name"] != "root"]
        gangs = [item for number in range(self._draw.randint(2, 6)) for item in self._gang(f"j{number}", self._draw.choice(names))]
        self.documents = [self._configuration(), *_priority_classes(), *nodes, *queues, *gangs]

    def _configuration(self) -> Document:
        first: list[Document] = [{"name": "priority"}, {"name": "gang"}, *([{"name": "conformance"}] if self._often(0.5) else [])]
        second: list[Document] = [{"name": "predicates"}, {"name": "nodeorder"}]
        second.append({"name": "capacity", "enableHierarchy": self._tree} if self._with_capacity else {"name": "proportion"})
        if self._often(0.5):
            second.insert(0, {"name": "overcommit", "arguments": {"overcommit-factor": self._draw.choice([1.0, 1.2, 1.5, 2.0])}})
        if self._often(0.45):
            second.insert(0, {"name": "drf", "enablePreemptable": self._often(0.6)})
        if self._often(0.4):
            second.append({"name": "binpack", "arguments": {"binpack.weight": self._draw.choice([1, 5, 10])}})
        tiers = [{"plugins": first}, {"plugins": second}]
        text = yaml.safe_dump({"actions": self._draw.choice(ACTIONS), "tiers": tiers}, sort_keys=False)
        metadata = {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"volcano-scheduler.conf": text}}

    def _node(self, name: str) -> Document:
        pick = self._draw.choice
        room: dict[str, Any] = {"cpu": pick("2346"), "memory": pick(["4Gi", "8Gi", "16Gi"]), "pods": pick(["4", "110", "110"])}
        if self._gpus and self._often(0.8):
            room[GPU] = pick("124")
        self._left[name] = {key: _number(amount) for key, amount in room.items()}
        spec: Document = {"taints": [{"key": "x", "effect": pick(["NoSchedule", "PreferNoSchedule"])}]} if self._often(0.08) else {}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "spec": spec,
            "status": {"allocatable": room, "capacity": room},
        }

    def _queues(self) -> list[Document]:
        found = []
        for number in range(self._draw.randint(1, 3)):
            spec: Document = {"weight": self._draw.choice([1, 1, 2, 3]), "reclaimable": self._often(0.85)}
            if self._often(0.3):
                spec["capability"] = self._share()
            if self._with_capacity and self._often(0.7):
                spec["deserved"] = self._share()
            if self._often(0.15):
                spec["guarantee"] = {"resource": {"cpu": "1"}}
            if self._tree:
                spec["parent"] = "root"
            found.append(_of_volcano("Queue", f"q{number}", spec, {"state": "Open"}, f"2026-01-01T10:00:0{number}Z"))
        return [*found, *([_of_volcano("Queue", "root", {"weight": 1}, {"state": "Open"})] if self._tree else [])]

    def _share(self) -> Document:
        share = {"cpu": self._draw.choice("12346")}
        if self._often(0.5):
            share["memory"] = self._draw.choice(["2Gi", "4Gi", "8Gi"])
        return share | ({GPU: self._draw.choice("124")} if self._gpus and self._often(0.5) else {})

    def _gang(self, name: str, queue: str) -> list[Document]:
        priority = self._draw.choice([*PRIORITIES, None])
        count = self._draw.randint(1, 4)
        minimum = self._draw.choice([1, count, max(1, count - 1)])
        amounts = {role: self._amounts() for role in self._draw.choice([("w",), ("w",), ("w",), ("m", "w")])}
        runs = self._often(0.5)
        pods = [self._pod(f"{name}-{index}", name, self._draw.choice(list(amounts.items())), priority, runs) for index in range(count)]
        running = sum("nodeName" in pod["spec"] for pod in pods)
        spec: Document = {"minMember": minimum, "queue": queue} | ({"priorityClassName": priority} if priority else {})
        if self._often(0.5):
            spec["minResources"] = {"cpu": self._draw.choice("1234"), "memory": "2Gi"}
        phase = "Running" if running >= minimum else "Inqueue" if running or self._often(0.5) else "Pending"
        return [_of_volcano("PodGroup", name, spec, {"phase": phase}, f"2026-01-01T10:30:0{name[1:]}Z"), *pods]

    def _amounts(self) -> dict[str, str]:
        amounts = {"cpu": self._draw.choice(["500m", "1", "1", "2", "3"]), "memory": self._draw.choice(["1Gi", "1Gi", "2Gi", "4Gi"])}
        return amounts | ({GPU: self._draw.choice("112")} if self._gpus and self._often(0.4) else {})

    def _pod(self, name: str, gang: str, role: tuple[str, dict[str, str]], priority: str | None, runs: bool) -> Document:
        self._seconds += 1
        notes = {"scheduling.k8s.io/group-name": gang, "volcano.sh/task-spec": role[0]}
        metadata = {"name": name, "annotations": notes, "creationTimestamp": f"2026-01-01T11:00:{self._seconds:02}Z"}
        spec: Document = {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "image": "busybox", "resources": {"requests": role[1]}}],
        }
        if priority:
            spec |= {"priorityClassName": priority, "priority": PRIORITIES[priority]}
        node = self._node_for(role[1]) if runs else None
        where = {"nodeName": node} if node else {}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": spec | where,
            "status": {"phase": "Running" if node else "Pending"},
        }

    def _node_for(self, amounts: dict[str, str]) -> str | None:
        needed = {key: _number(amount) for key, amount in amounts.items()} | {"pods": 1}
        for name in self._draw.sample(sorted(self._left), len(self._left)):
            left = self._left[name]
            if all(left.get(key, 0) >= amount for key, amount in needed.items()):
                left.update({key: left[key] - amount for key, amount in needed.items()})
                return name
        return None


class Ruled(State):
    """A state with labels, affinities, spreading, ports, roles that have minima, pods that request nothing, and plugins for these."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        by_kind: dict[str, list[Document]] = {}
        for item in self.documents:
            by_kind.setdefault(item["kind"], []).append(item)
        for node in by_kind["Node"]:
            node["metadata"]["labels"] = {"zone": self._draw.choice("ab"), "volcano.sh/nodegroup-name": self._draw.choice(["g1", "g2"])}
        pods_of: dict[str, list[Document]] = {}
        for pod in by_kind.get("Pod", ()):
            pods_of.setdefault(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], []).append(pod)
        for group in by_kind["PodGroup"]:
            self._rule(group, pods_of[group["metadata"]["name"]])
        plugins = []
        if self._often(0.3):
            plugins.append({"name": "nodegroup"})
            for queue in by_kind["Queue"]:
                if queue["metadata"]["name"] != "root" and self._often(0.6):
                    rule = self._draw.choice(["required", "preferred"]) + "DuringSchedulingIgnoredDuringExecution"
                    side = self._draw.choice(["nodeGroupAffinity", "nodeGroupAntiAffinity"])
                    queue["spec"]["affinity"] = {side: {rule: [self._draw.choice(["g1", "g2"])]}}
        if self._often(0.3):
            kinds = {name: {"type": self._draw.choice(["LeastAllocated", "MostAllocated"]), "weight": 1} for name in ("cpu", "memory")}
            plugins.append({"name": "resource-strategy-fit", "arguments": {"resourceStrategyFitWeight": 10, "resources": kinds}})
        if self._often(0.3):
            plugins.append({"name": "task-topology", "arguments": {"task-topology.weight": 10}})
        add_plugins(by_kind["ConfigMap"][0], plugins)

    def _rule(self, group: Document, pods: list[Document]) -> None:
        label = {"app": group["metadata"]["name"]}
        chosen = self._draw.choice(
            ["none", "none", "selector", "apart", "together", "spread", "ports", "nothing", "roles", "topology", "soft"]
        )
        if chosen == "roles":
            roles = Counter(pod["metadata"]["annotations"]["volcano.sh/task-spec"] for pod in pods)
            group["spec"]["minTaskMember"] = {role: self._draw.randint(0, count) for role, count in roles.items()}
        elif chosen == "topology":
            side = self._draw.choice(["volcano.sh/task-topology-affinity", "volcano.sh/task-topology-anti-affinity"])
            group["metadata"]["annotations"] = {side: self._draw.choice(["m,w", "w", "m"])}
        rule = {"labelSelector": {"matchLabels": label}, "topologyKey": self._draw.choice(["kubernetes.io/hostname", "zone"])}
        rules: dict[str, Document] = {
            "selector": {"nodeSelector": {"zone": self._draw.choice("ab")}},
            "apart": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}},
            "together": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}},
            "spread": {"topologySpreadConstraints": [rule | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
            "soft": {
                "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": rule}]}}
            },
        }
        for pod in pods:
            pod["metadata"]["labels"] = label
            pod["spec"] |= rules.get(chosen, {})
            container = pod["spec"]["containers"][0]
            if chosen == "ports":
                container["ports"] = [{"containerPort": 80, "hostPort": 80}]
            elif chosen == "nothing" and self._often(0.6):
                container["resources"] = {}


class InDomains(State):
    """A state with two tiers of HyperNodes, and gangs that are limited to one, prefer one, or are in parts."""

    nodes = (2, 6)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        nodes = [item["metadata"]["name"] for item in self.documents if item["kind"] == "Node"]
        split = self._draw.randint(1, len(nodes) - 1)
        racks = {"r1": nodes[:split], "r2": nodes[split:]}
        self.documents += [_hypernode(name, 1, "Node", members) for name, members in racks.items()]
        self.documents.append(_hypernode("s1", 2, "HyperNode", list(racks)))
        for item in self.documents:
            if item["kind"] == "PodGroup" and self._often(0.6):
                self._limit(item)
        add_plugins(self.documents[0], [{"name": "network-topology-aware"}] if self._often(0.8) else [])

    def _limit(self, group: Document) -> None:
        tier = {"mode": "hard", "highestTierAllowed": self._draw.choice([1, 1, 2])}
        if self._often(0.7):
            group["spec"]["networkTopology"] = tier if self._often(0.7) else {"mode": "soft"}
            return
        size = self._draw.choice([1, 2])
        policy = {"name": "part", "labelSelector": {"matchLabels": {"app": "part"}}, "matchLabelKeys": ["part"], "subGroupSize": size}
        group["spec"]["subGroupPolicy"] = [policy | {"networkTopology": tier} | ({"minSubGroups": 1} if self._often(0.5) else {})]
        name = group["metadata"]["name"]
        its = [item for item in self.documents if item["kind"] == "Pod" and item["metadata"]["name"].startswith(f"{name}-")]
        for number, pod in enumerate(its):
            pod["metadata"]["labels"] = {"app": "part", "part": str(number // size)}


class Mixed:
    """A state of one of these kinds with some of the features beside."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        draft = Draft(draw.choice([State, State, Ruled, InDomains])(seed).documents, draw)
        off = {"predicateErrorCacheEnable": False, "spareVictims": False}  # docs/differences.md: "The error cache", "Nobody in vain"
        draft.conf["configurations"] = [{"name": name, "arguments": dict(off)} for name in ACTIONS_WITH_CACHE]
        self.features = draw.sample(sorted(FEATURES), draw.choice([1, 3, 5, 8, 12]))
        for name in (name for name in FEATURES if name in self.features):
            FEATURES[name](draft)
        self.documents = draft.documents()


def add_plugins(configuration: Document, plugins: list[Document]) -> None:
    """Add these to the last tier."""
    read = yaml.safe_load(configuration["data"]["volcano-scheduler.conf"])
    read["tiers"][-1]["plugins"] += plugins
    configuration["data"]["volcano-scheduler.conf"] = yaml.safe_dump(read, sort_keys=False)


def _hypernode(name: str, tier: int, kind: str, members: list[str]) -> Document:
    listed = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
    head = {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}}
    return head | {"spec": {"tier": tier, "members": listed}}


def _priority_classes() -> list[Document]:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return [head | {"metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items()]


def _of_volcano(kind: str, name: str, spec: Document, status: Document, created: str = "2026-01-01T09:00:00Z") -> Document:
    metadata = {"name": name, "creationTimestamp": created}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def _number(amount: str) -> float:
    return MEMORY[amount] if amount in MEMORY else int(amount[:-1]) / 1000 if amount.endswith("m") else int(amount)
