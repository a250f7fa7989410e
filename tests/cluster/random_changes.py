"""Random sequences: a random state, and what happens to its objects between cycles. Changes name objects, whatever became of them."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import yaml
from random_states import ACTIONS, PRIORITIES, Ruled, State
from stored import as_stored

from pumice.api.kinds import NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Kind
from tests.live.memory import MemoryServer, Object

KINDS = {kind.kind: kind for kind in (NODES, PODS, POD_GROUPS, QUEUES, PRIORITY_CLASSES)}
Change = Callable[[MemoryServer], None]
CHANGES: list[Callable[[Sequence], list[Change]]] = []


class Sequence:
    """One sequence; the same for the same seed."""

    def __init__(self, seed: int, steps: int = 10) -> None:
        self.draw = random.Random(seed)
        documents = self.draw.choice([State, Ruled])(seed).documents
        (configuration,) = (item["data"]["volcano-scheduler.conf"] for item in documents if item["kind"] == "ConfigMap")
        self.configuration = yaml.safe_load(configuration)
        self.objects = [item for item in as_stored(documents) if item["kind"] in KINDS]
        self.made = 0
        self.node_has_gone = False
        self._names = {kind: [item["metadata"]["name"] for item in self.objects if item["kind"] == kind] for kind in KINDS}
        self._pods = {item["metadata"]["name"]: item for item in self.objects if item["kind"] == "Pod"}
        self.texts = [yaml.safe_dump(self.configuration)]  #: by step
        self.steps: list[list[Change]] = [[]]
        for _ in range(steps):
            drawn = self.draw.choices(CHANGES, k=self.draw.choice([1, 1, 2, 3]))
            self.steps.append([kubelets, *(change for make in drawn for change in make(self))])
            self.texts.append(yaml.safe_dump(self.configuration))

    def one(self, kind: str) -> str:
        return self.draw.choice(self._names[kind])

    def pods(self, most: int = 3) -> list[str]:
        return self.draw.sample(sorted(self._pods), min(self.draw.randint(1, most), len(self._pods)))

    def like(self, pod: str) -> Object:
        """A pod as this one was before it had a node, under a new name."""
        self.made += 1
        fresh = copy.deepcopy(self._pods[pod])
        fresh["spec"].pop("nodeName", None)
        return named(fresh, f"{pod}-{self.made}") | {"status": {"phase": "Pending"}}

    def add(self, *items: Object) -> list[Change]:
        for item in items:
            self._names[item["kind"]].append(item["metadata"]["name"])
            if item["kind"] == "Pod":
                self._pods[item["metadata"]["name"]] = item
        return [putting(item) for item in items]


def named(item: Object, name: str) -> Object:
    at = f"2026-01-01T11:30:{int(name.rpartition('-')[2]):02}Z"
    return item | {"metadata": item["metadata"] | {"name": name, "uid": name, "creationTimestamp": at}}


def change(make: Callable[[Sequence], list[Change]]) -> Callable[[Sequence], list[Change]]:
    CHANGES.append(make)
    return make


# -- what a change is made of


def putting(item: Object) -> Change:
    meta = item["metadata"]
    rest = {key: value for key, value in item.items() if key != "metadata"}
    return lambda server: void(server.put(KINDS[item["kind"]], meta["name"], metadata=meta, **rest))


def patching(kind: Kind, name: str, part: str, **fields: Any) -> Change:
    """Change these fields of an object, if it is there; of a pod, if it runs."""

    def patch(server: MemoryServer) -> None:
        key = (kind.plural, "default" if kind.namespaced else "", name)
        there = server.objects.get(key)
        if there is not None and (kind != PODS or there["status"]["phase"] == "Running"):
            server.put(kind, name, metadata=there["metadata"], **{part: {**(there.get(part) or {}), **fields}})

    return patch


def removing(kind: Kind, *names: str) -> Change:
    return lambda server: void([server.remove(kind, name) for name in names])


def deleting(*names: str) -> Change:
    """Pods that have a node leave it when their kubelet has ended them."""

    def delete(server: MemoryServer) -> None:
        for pod in server.all(PODS):
            if pod["metadata"]["name"] in names:
                if pod["spec"].get("nodeName"):
                    server.put(PODS, pod["metadata"]["name"], metadata=pod["metadata"] | {"deletionTimestamp": "2026-01-01T11:59:00Z"})
                else:
                    server.remove(PODS, pod["metadata"]["name"])

    return delete


def kubelets(server: MemoryServer) -> None:
    """Pods that are bound run, and those that were deleted are gone."""
    for pod in server.all(PODS):
        meta = pod["metadata"]
        if "deletionTimestamp" in meta:
            server.remove(PODS, meta["name"])
        elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
            server.put(PODS, meta["name"], metadata=meta, status=pod["status"] | {"phase": "Running"})


def void(done: Any) -> None:
    """A change has no result."""


# -- the changes


@change
def pods_end(of: Sequence) -> list[Change]:
    phase = of.draw.choice(["Succeeded", "Succeeded", "Failed"])
    return [patching(PODS, name, "status", phase=phase) for name in of.pods()]


@change
def pods_are_deleted(of: Sequence) -> list[Change]:
    return [deleting(*of.pods())]


@change
def pods_are_replaced(of: Sequence) -> list[Change]:
    names = of.pods(2)
    return [deleting(*names), *of.add(*map(of.like, names))]


@change
def a_job_comes(of: Sequence) -> list[Change]:
    of.made += 1
    group = next(item for item in of.objects if item["kind"] == "PodGroup")
    spec = {"minMember": of.draw.randint(1, 3), "queue": of.one("Queue"), "priorityClassName": of.one("PriorityClass")}
    fresh = named(group, f"new-{of.made}") | {"spec": spec, "status": {"phase": "Pending"}}
    pods = [of.like(of.pods(1)[0]) for _ in range(of.draw.randint(1, 4))]
    for pod in pods:
        pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": fresh["metadata"]["name"]}
    return of.add(fresh, *pods)


@change
def a_job_goes(of: Sequence) -> list[Change]:
    name = of.one("PodGroup")
    return [removing(POD_GROUPS, name), deleting(*(pod for pod in of.pods(9) if pod.startswith(f"{name}-")))]


@change
def a_node_comes(of: Sequence) -> list[Change]:
    if of.node_has_gone:  # it takes that node's turn among equal ones, which it would not in a new list
        return []
    of.made += 1
    return of.add(named(next(item for item in of.objects if item["kind"] == "Node"), f"n-{of.made}"))


@change
def a_node_goes(of: Sequence) -> list[Change]:
    of.node_has_gone = of.node_has_gone or of.draw.random() < 0.3
    return [removing(NODES, of.one("Node"))] if of.node_has_gone else []


@change
def a_node_is_closed_or_opened(of: Sequence) -> list[Change]:
    taints = of.draw.choice([None, [{"key": "x", "effect": "NoSchedule"}]])
    return [patching(NODES, of.one("Node"), "spec", unschedulable=of.draw.random() < 0.5, taints=taints)]


@change
def a_node_changes_its_size(of: Sequence) -> list[Change]:
    room = {"cpu": of.draw.choice("1248"), "memory": of.draw.choice(["2Gi", "8Gi", "16Gi"]), "pods": "10"}
    return [patching(NODES, of.one("Node"), "status", allocatable=room, capacity=room)]


@change
def a_queue_changes(of: Sequence) -> list[Change]:
    amounts = of.draw.choice([None, {"cpu": of.draw.choice("1246")}, {"memory": "4Gi"}])
    fields = {of.draw.choice(["capability", "deserved"]): amounts, "weight": of.draw.randint(1, 3), "reclaimable": of.draw.random() < 0.7}
    return [patching(QUEUES, of.one("Queue"), "spec", **fields)]


@change
def a_queue_is_closed_opened_or_deleted(of: Sequence) -> list[Change]:
    name = of.one("Queue")
    return [
        removing(QUEUES, name) if of.draw.random() < 0.2 else patching(QUEUES, name, "status", state=of.draw.choice(["Open", "Closed"]))
    ]


@change
def a_job_changes(of: Sequence) -> list[Change]:
    fields: dict[str, Any] = {
        "minMember": of.draw.randint(1, 4),
        "priorityClassName": of.one("PriorityClass"),
        "minResources": of.draw.choice([None, {"cpu": of.draw.choice("1248")}]),
        "queue": of.one("Queue"),
    }
    field = of.draw.choice(sorted(fields))
    return [patching(POD_GROUPS, of.one("PodGroup"), "spec", **{field: fields[field]})]


@change
def a_priority_changes(of: Sequence) -> list[Change]:
    name, value = of.draw.choice(sorted(PRIORITIES)), of.draw.choice([5, 50, 500, 5000])
    return [lambda server: void(server.put(PRIORITY_CLASSES, name, value=value))]


@change
def the_configuration_changes(of: Sequence) -> list[Change]:
    of.configuration["actions"] = of.draw.choice(ACTIONS)
    return []
