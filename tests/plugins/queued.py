"""More words for `scene`: queues, jobs and pods with ages, tiers as lists of names, and what a whole run gives."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import yaml
from scene import NOON, Thing, cluster_of, session_on

from pumice.cluster.cycles import run_cycles, together
from pumice.extensions import plugins
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster

VOLCANO = "scheduling.volcano.sh/v1beta1"


def at(second: int) -> str:
    """An instant in the hour before noon."""
    return f"2026-01-01T11:{second // 60:02}:{second % 60:02}Z"


def thing(kind: str, name: str, version: str = "v1", born: int = 0, namespace: str | None = "default", **rest: Any) -> Thing:
    meta = {"name": name, "creationTimestamp": at(born), "labels": rest.pop("labels", {}), "annotations": rest.pop("annotations", {})}
    return {"apiVersion": version, "kind": kind, "metadata": meta | ({"namespace": namespace} if namespace else {})} | rest


def _resources(amounts: Thing) -> Thing:
    return {{"gpu": "nvidia.com/gpu"}.get(name, name): str(amount) for name, amount in amounts.items()}


def node(name: str, labels: Thing | None = None, **amounts: Any) -> Thing:
    return thing("Node", name, namespace=None, labels=labels or {}, status={"allocatable": {"pods": "110"} | _resources(amounts)})


def queue(name: str, born: int = 0, annotations: Thing | None = None, state: str = "Open", **spec: Any) -> Thing:
    """`capability`, `deserved` and `guarantee` are resources by name."""
    amounts = {key: _resources(spec.pop(key)) for key in ("capability", "deserved", "guarantee") if key in spec}
    if "guarantee" in amounts:
        amounts["guarantee"] = {"resource": amounts["guarantee"]}
    body = {"weight": 1, **spec, **amounts}
    return thing("Queue", name, VOLCANO, born, None, annotations=annotations or {}, spec=body, status={"state": state})


def job(name: str, queue: str = "default", born: int = 0, least: int = 1, phase: str = "Inqueue", **spec: Any) -> Thing:
    """A PodGroup; `needs` are its minResources."""
    if "needs" in spec:
        spec["minResources"] = _resources(spec.pop("needs"))
    annotations = spec.pop("annotations", {})
    body = {"minMember": least, "queue": queue} | spec
    return thing("PodGroup", name, VOLCANO, born, annotations=annotations, spec=body, status={"phase": phase})


def pod(name: str, of: str, on: str = "", born: int = 1, labels: Thing | None = None, notes: Thing | None = None, **amounts: Any) -> Thing:
    """A pod of a PodGroup, running if it is on a node. `spec` and `status` add to these parts."""
    more, status = amounts.pop("spec", {}), amounts.pop("status", {})
    containers = [{"name": "main", "resources": {"requests": _resources(amounts)}}]
    spec = {"schedulerName": "volcano", "containers": containers} | ({"nodeName": on} if on else {}) | more
    annotations = {"scheduling.k8s.io/group-name": of} | (notes or {})
    state = {"phase": "Running" if on else "Pending"} | status
    return thing("Pod", name, born=born, labels=labels or {}, annotations=annotations, spec=spec, status=state)


def pods(of: str, count: int, on: str = "", **rest: Any) -> list[Thing]:
    """OF-w-0, OF-w-1 and so on."""
    return [pod(f"{of}-w-{number}", of, on, **json.loads(json.dumps(rest))) for number in range(count)]


def priority_class(name: str, value: int) -> Thing:
    return thing("PriorityClass", name, "scheduling.k8s.io/v1", namespace=None, value=value)


def cluster(*things: Thing | Sequence[Thing]) -> Cluster:
    return cluster_of(*[each for entry in things for each in ([entry] if isinstance(entry, dict) else entry)])


def conf(tiers: Sequence[str], actions: str = "enqueue, allocate") -> str:
    """A tier is names, or entries in YAML's flow style: "gang, {name: sla}"."""
    plugins = [[{"name": entry} if isinstance(entry, str) else entry for entry in yaml.safe_load(f"[{tier}]")] for tier in tiers]
    return json.dumps({"actions": actions, "tiers": [{"plugins": tier} for tier in plugins]})


def opened(made: Cluster, *tiers: str, now: float = NOON) -> Session:
    return session_on(made, conf(tiers), now)


def outcome(made: Cluster, *tiers: str, actions: str = "enqueue, allocate", cycles: int = 1) -> Thing:
    """What `pumice cycle` prints. The sums of the cluster are checked afterwards."""
    policy, warnings = read_policy(conf(tiers, actions), plugins())
    assert not warnings, warnings
    result = together(run_cycles(made, policy, NOON, cycles))
    made.check()
    return result


def _names(keys: Any) -> list[str]:
    return sorted(key.removeprefix("default/") for key in keys)


def bound(result: Thing) -> list[str]:
    return _names(result["binds"])


def bound_to(result: Thing) -> dict[str, str]:
    return {key.removeprefix("default/"): where for key, where in result["binds"].items()}


def per_job(result: Thing) -> dict[str, int]:
    """Binds by job, for pods made with `pods`."""
    counts: dict[str, int] = {}
    for name in bound(result):
        of = name.rpartition("-w-")[0]
        counts[of] = counts.get(of, 0) + 1
    return counts


def evicted(result: Thing) -> list[str]:
    return _names(each["pod"] for each in result["evicts"])


def phases(result: Thing) -> dict[str, str]:
    return {key.removeprefix("default/"): state["phase"] for key, state in result["podGroups"].items()}
