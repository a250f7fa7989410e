"""Some cycles over objects from files, with what a cluster would do in between: bound pods run, evicted ones are gone."""

from __future__ import annotations

from typing import Any

from pumice.scheduler.framework.containment import Failure
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_status import unserved
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import is_shadow

PERIOD_S = 1.0


def run_cycles(
    cluster: Cluster, policy: Policy, now: float, count: int, world: World = NOWHERE, failures: dict[Failure, None] | None = None
) -> list[dict[str, Any]]:
    """The outcome of each cycle, as `pumice cycle -o json` prints it. `failures` is given those of plugins."""
    outcomes = []
    decisions = Decisions()
    for number in range(count):
        advance(cluster, decisions, now + (number - 1) * PERIOD_S)
        decisions = cycle(cluster, policy, now + number * PERIOD_S, world)
        decisions.waiting = [*decisions.waiting, *unserved(cluster, policy, decisions)]
        outcomes.append(outcome(cluster, decisions))
        if failures is not None:
            failures |= decisions.failures
    return outcomes


def advance(cluster: Cluster, decisions: Decisions, then: float) -> None:
    """Carry out what a cycle decided: bound pods run, evicted ones are gone, the room made is promised to those it was made for."""
    for bind in decisions.binds:
        task = bind.task
        if task.status == status.BINDING:
            cluster.move(task, status.RUNNING, task.node)
            task.placed_at = then
            task.started = then
    for eviction in decisions.evictions:
        cluster.remove("Pod", eviction.task.key)
    for task, node in decisions.nominations.items():
        task.nominated = node


def outcome(cluster: Cluster, decisions: Decisions) -> dict[str, Any]:
    groups: dict[str, dict[str, Any]] = {}
    for job in cluster.jobs.values():
        if job.group is not None and not is_shadow(job.group):
            groups[job.uid] = {"phase": job.phase, "conditions": []}
    for group in decisions.groups:
        if group.condition is not None and group.job.uid in groups:
            groups[group.job.uid]["conditions"] = [
                {"type": group.condition.type, "status": "True", "reason": group.condition.reason, "message": group.condition.message}
            ]
    return {
        "binds": {bind.task.key: bind.node for bind in decisions.binds},
        "pipelined": {place.task.key: place.node for place in decisions.pipelined},
        "evicts": [{"pod": e.task.key, "for": e.beneficiary, "action": e.action, "node": e.node} for e in decisions.evictions],
        "podGroups": groups,
        "nominations": {task.key: task.nominated for task in cluster.tasks.values() if task.nominated and task.status == status.PENDING},
        "waitingGroups": {g.job.uid: g.condition.message for g in decisions.groups if g.condition is not None and not g.job.tasks},
        "pending": {waiting.task.key: {"reason": waiting.reason, "message": waiting.message} for waiting in decisions.waiting},
    }


def together(outcomes: list[dict[str, Any]]) -> dict[str, Any]:
    """All cycles in one: binds and evictions of all, the rest as the last one left it."""
    return {
        "binds": {pod: node for each in outcomes for pod, node in each["binds"].items()},
        "pipelined": outcomes[-1]["pipelined"],
        "evicts": [eviction for each in outcomes for eviction in each["evicts"]],
        "podGroups": outcomes[-1]["podGroups"],
        "nominations": outcomes[-1]["nominations"],
        "waitingGroups": outcomes[-1]["waitingGroups"],
        "pending": outcomes[-1]["pending"],
        "cycles": outcomes,
    }
