"""A session or a cycle with plugins as a configuration names them, and what came of it in short names."""

from __future__ import annotations

import json
from typing import Any

import yaml

from pumice.extensions import plugins
from pumice.inputs.cluster_from_files import run_cycles
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, NodeUsage, Nowhere, World
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import NOW

Thing = dict[str, Any]


def conf(*tiers: str, actions: str = "enqueue, allocate", **more: Any) -> Policy:
    """A tier is names, or entries in YAML's flow style: "gang, {name: sla}"."""
    listed = [[{"name": entry} if isinstance(entry, str) else entry for entry in yaml.safe_load(f"[{tier}]")] for tier in tiers]
    policy, warnings = read_policy(json.dumps(more | {"actions": actions, "tiers": [{"plugins": tier} for tier in listed]}), plugins())
    assert not warnings, warnings
    return policy


def only(plugin: str, arguments: Thing | None = None, actions: str = "allocate", **more: Any) -> Policy:
    return conf(f"gang, {json.dumps({'name': plugin, 'arguments': arguments or {}})}", actions=actions, **more)


def opened(made: Cluster, *tiers: str | Policy, world: World = NOWHERE) -> Session:
    policy = tiers[0] if isinstance(tiers[0], Policy) else conf(*tiers)
    return Session(made, policy, NOW, world)


def cycle_on(made: Cluster, policy: Policy, now: float = NOW, world: World = NOWHERE) -> Decisions:
    decisions = cycle(made, policy, now, world)
    made.check()
    return decisions


def outcome(made: Cluster, *tiers: str, actions: str = "enqueue, allocate") -> Thing:
    """What `pumice cycle` prints."""
    result = run_cycles(made, conf(*tiers, actions=actions), NOW, 1)[0]
    made.check()
    return result


def binds(decided: Decisions | Thing) -> dict[str, str]:
    if isinstance(decided, Decisions):
        return {bind.task.name: bind.node for bind in decided.binds}
    return {key.removeprefix("default/"): where for key, where in decided["binds"].items()}


def per_job(result: Thing) -> dict[str, int]:
    jobs = [name.rpartition("-")[0] for name in binds(result)]
    return {job: jobs.count(job) for job in jobs}


def evicted(result: Thing) -> list[str]:
    return sorted(each["pod"].removeprefix("default/") for each in result["evicts"])


def phases(result: Thing) -> dict[str, str]:
    return {key.removeprefix("default/"): state["phase"] for key, state in result["podGroups"].items()}


class Measured(Nowhere):
    """A world that knows cpu and memory percent of some nodes, as they were `age_s` ago."""

    def __init__(self, age_s: float = 0, **nodes: tuple[float, float]) -> None:
        self.nodes, self.at = nodes, NOW - age_s

    def usage(self, node: str) -> NodeUsage | None:
        return NodeUsage(*self.nodes[node], self.at) if node in self.nodes else None
