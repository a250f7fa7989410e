"""A small theatre for controllers: a lister in memory, its loop, and somebody who plays scheduler, kubelet and user."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from pumice.api import kinds
from pumice.api.json_objects import Object, copied, key_of, merged, name_of
from pumice.controllers.controller import Controller, ObjectChange
from pumice.controllers.in_memory import Memory
from pumice.controllers.in_memory_loop import InMemoryLoop
from pumice.controllers.volcano.job.controller import Jobs
from pumice.controllers.volcano.job.plugins import SshKeyPair
from pumice.controllers.writes import Create, Delete

NOON = 1_800_000_000.0
TABLES = Path(__file__).parent / "tables"


def table(name: str) -> list[Any]:
    return list(yaml.safe_load((TABLES / name).read_text()))


def fixed_key_pair() -> SshKeyPair:
    return SshKeyPair("private", "public")


def queue(name: str = "default", **spec: Any) -> Object:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"queue-{name}"},
        "spec": {"weight": 1, "parent": "root", **spec},
        "status": {"state": "Open"},
    }


def pod_spec(cpu: str = "1", **more: Any) -> Object:
    return {"containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}], **more}


def task(name: str = "w", replicas: int = 1, cpu: str = "1", **more: Any) -> Object:
    return {"name": name, "replicas": replicas, "minAvailable": replicas, "template": {"spec": pod_spec(cpu)}, **more}


def vcjob(name: str = "train", tasks: Sequence[Object] = (), **spec: Any) -> Object:
    members = list(tasks) or [task()]
    minimum = sum(each["replicas"] if each.get("minAvailable") is None else each["minAvailable"] for each in members)
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": "2027-01-15T08:00:00Z"},
        "spec": {"queue": "default", "schedulerName": "volcano", "maxRetry": 3, "minAvailable": minimum, "tasks": members, **spec},
    }


def plain_pod(name: str = "p", owner: Object | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    meta: Object = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations or {}}
    if owner is not None:
        named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": owner["metadata"]["uid"]}
        meta["ownerReferences"] = [{**named, "controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"schedulerName": "volcano", **pod_spec(), **spec}}


class Stage:
    """One lister and its controllers, settled after everything that is done to it."""

    def __init__(self, *objects: Object, controllers: Sequence[Controller] = (), now: float = NOON) -> None:
        self.now = now
        self.lister = Memory(objects, now)
        self.loop = InMemoryLoop(self.lister, controllers or [Jobs(fixed_key_pair)])
        self.settle()

    def settle(self) -> int:
        return self.loop.settle(self.now)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def add(self, *objects: Object) -> None:
        for each in objects:
            self.loop.observe(self.lister.apply(Create(each)))
        self.settle()

    def change(self, kind: str, name: str, patch: Object, namespace: str = "default") -> None:
        there = self.lister.get(kind, "" if kind in kinds.CLUSTER_SCOPED else namespace, name)
        assert there is not None, f"no {kind} {name}"
        self.loop.observe(self.lister.put(merged(there, patch)))
        self.settle()

    def delete(self, kind: str, name: str, propagation: str = "Background", namespace: str = "default") -> None:
        where = "" if kind in kinds.CLUSTER_SCOPED else namespace
        self.loop.observe(self.lister.apply(Delete(kind, where, name, propagation=propagation)))
        self.settle()

    def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        found = self.lister.get(kind, "" if kind in kinds.CLUSTER_SCOPED else namespace, name)
        assert found is not None, f"no {kind} {name}"
        return found

    def names(self, kind: str) -> list[str]:
        return [name_of(each) for each in self.lister.all(kind)]

    # The others at work

    def let_in(self) -> None:
        """The scheduler enqueues every PodGroup."""
        for group in list(self.lister.all(kinds.POD_GROUP)):
            self.change(kinds.POD_GROUP, name_of(group), {"status": {"phase": "Inqueue"}})

    def bind(self, *names: str) -> None:
        for name in names or self.names(kinds.POD):
            self.change(kinds.POD, name, {"spec": {"nodeName": "n1"}})

    def pods(self, phase: str, *names: str, exit_code: int = 0) -> None:
        """The kubelet reports these pods (or all) in a phase."""
        for name in names or self.names(kinds.POD):
            terminated = {"terminated": {"exitCode": exit_code}} if phase in ("Failed", "Succeeded") else {}
            statuses = [{"name": "main", "ready": phase == "Running", "state": terminated}]
            ready = [{"type": "Ready", "status": str(phase == "Running"), "lastTransitionTime": "2027-01-15T08:00:00Z"}]
            self.change(kinds.POD, name, {"status": {"phase": phase, "containerStatuses": statuses, "conditions": ready}})

    def kubelet_ends(self) -> None:
        """Pods that were told to go are gone."""
        for pod in list(self.lister.all(kinds.POD)):
            if pod["metadata"].get("deletionTimestamp"):
                self.loop.observe(self.lister.finish(pod))
        self.settle()

    def lose(self, name: str) -> None:
        """A pod vanishes: somebody else deleted it."""
        self.loop.observe(self.lister.finish(self.get(kinds.POD, name)))
        self.settle()

    def command(self, action: str, target: Object) -> None:
        self.add(self.order(action, target))

    def order(self, action: str, target: Object) -> Object:
        about = {"apiVersion": target["apiVersion"], "kind": target["kind"], "name": name_of(target)}
        meta = {"name": f"command-{action.lower()}", "namespace": "default"}
        return {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": meta, "action": action, "target": about}

    def assert_settled(self) -> None:
        """Looking at everything again writes nothing (pods as they were: one first seen failed is news)."""
        again = InMemoryLoop(Memory(), self.loop.controllers)
        again.lister = self.lister
        for kind in self.lister.kinds():
            for each in self.lister.all(kind):
                again.observe([ObjectChange(each if kind == kinds.POD else None, each)])
        before = {(kind, key_of(each)): copied(each) for kind in self.lister.kinds() for each in self.lister.all(kind)}
        written = again.settle(self.now)
        after = {(kind, key_of(each)): each for kind in self.lister.kinds() for each in self.lister.all(kind)}
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        assert written == 0, f"{written} writes, changed {changed}"
