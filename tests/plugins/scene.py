"""A cluster from a few words, and a session or a cycle on it: objects go in by the front door, as JSON does."""

from __future__ import annotations

import json
from typing import Any

from pumice.api.manifests import Objects, read_stream
from pumice.api.times import instant
from pumice.cluster.offline import complete
from pumice.extensions import plugins
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, Nowhere, Usage, World
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task

NOON = instant("2026-01-01T12:00:00Z")
Thing = dict[str, Any]


def node(
    name: str, cpu: str = "8", memory: str = "16Gi", labels: Thing | None = None, annotations: Thing | None = None, **more: str
) -> Thing:
    """`more`: volcano.sh resources, such as gpu_number="2"."""
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"} | {f"volcano.sh/{key.replace('_', '-')}": value for key, value in more.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}, "annotations": annotations or {}},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def group(name: str, minimum: int = 1, phase: str = "Inqueue", annotations: Thing | None = None, **more: Any) -> Thing:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"minMember": minimum} | more,
        "status": {"phase": phase},
    }


def pod(
    name: str,
    of: str = "",
    on: str = "",
    cpu: str = "1",
    memory: str = "1Gi",
    annotations: Thing | None = None,
    labels: Thing | None = None,
    containers: list[Thing] | None = None,
    phase: str = "",
    started: str | None = None,
    **limits: str,
) -> Thing:
    """A pod of a PodGroup, running if it is on a node. `limits`: volcano.sh resources, such as gpu_memory="1024"."""
    shared = {f"volcano.sh/{key.replace('_', '-')}": value for key, value in limits.items()}
    one = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory} | shared, "limits": shared}}]
    notes = ({"scheduling.k8s.io/group-name": of} if of else {}) | (annotations or {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}, "annotations": notes},
        "spec": {"schedulerName": "volcano", "containers": containers or one} | ({"nodeName": on} if on else {}),
        "status": {"phase": phase or ("Running" if on else "Pending")} | ({"startTime": started} if started else {}),
    }


def cluster_of(*things: Thing) -> Cluster:
    objects = Objects()
    for thing in things:
        read_stream(json.dumps(thing).encode(), "test", objects)
    cluster = Cluster()
    for kind, item in complete(objects.items):
        cluster.put(kind, item)
    return cluster


def put(cluster: Cluster, thing: Thing) -> None:
    """One more object, or a new form of one."""
    objects = Objects()
    read_stream(json.dumps(thing).encode(), "test", objects)
    for kind, item in objects.items:
        cluster.put(kind, item)


def session_on(cluster: Cluster, conf: str, now: float = NOON, world: World = NOWHERE) -> Session:
    policy, warnings = read_policy(conf, plugins())
    assert not warnings, warnings
    return Session(cluster, policy, now, world)


def cycle_on(cluster: Cluster, conf: str, now: float = NOON, world: World = NOWHERE) -> Decisions:
    policy, warnings = read_policy(conf, plugins())
    assert not warnings, warnings
    decisions = cycle(cluster, policy, now, world)
    cluster.check()
    return decisions


def only(plugin: str, arguments: Thing | None = None, actions: str = "allocate", **switches: Any) -> str:
    """A configuration with this plugin and gang."""
    entry = {"name": plugin, "arguments": arguments or {}} | switches
    return json.dumps({"actions": actions, "tiers": [{"plugins": [{"name": "gang"}, entry]}]})


def binds(decisions: Decisions) -> dict[str, str]:
    return {bind.task.name: bind.node for bind in decisions.binds}


def tasks(cluster: Cluster, *names: str) -> list[Task]:
    return [cluster.tasks[f"default/{name}"] for name in names]


def scores(session: Session, name: str) -> dict[str, float]:
    """Score by node, of the nodes that are not refused."""
    evaluation = session.evaluation(session.cluster.tasks[f"default/{name}"])
    totals = evaluation.totals(evaluation.admitted)
    return {session.nodes.names[row]: float(totals[row]) for row in session.nodes if evaluation.admitted[row]}


def refusals(session: Session, name: str) -> dict[str, str]:
    """First reason by refused node."""
    evaluation = session.evaluation(session.cluster.tasks[f"default/{name}"])
    found: dict[str, str] = {}
    for refused in evaluation.refusals():
        for row in session.nodes:
            if refused.where[row]:
                found.setdefault(session.nodes.names[row], refused.reason.text)
    return found


class Measured(Nowhere):
    """A world that knows cpu and memory percent of some nodes, as they were `age_s` ago."""

    def __init__(self, age_s: float = 0, **nodes: tuple[float, float]) -> None:
        self.nodes = nodes
        self.at = NOON - age_s

    def usage(self, node: str) -> Usage | None:
        return Usage(*self.nodes[node], self.at) if node in self.nodes else None
