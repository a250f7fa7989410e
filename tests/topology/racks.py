"""Racks of equal nodes, gangs and their parts, for the tests beside it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.scheduler.model.cluster import Cluster
from pumice.testing import PodBuilder, hypernode, node, pod

ACTIONS = "enqueue, allocate"
PLUGINS = ("priority", "gang", "conformance", "predicates", "nodeorder", "network-topology-aware")


def racks(*sizes: int, cpu: int = 2) -> list[Any]:
    """Racks r1, r2, ... (tier 1) of so many nodes n1, n2, ..., all below the spine s (tier 2)."""
    objects: list[Any] = []
    nodes = 0
    for number, size in enumerate(sizes, 1):
        mine = [f"n{nodes + index}" for index in range(1, size + 1)]
        nodes += size
        objects += [node(name).cpu(cpu).memory("16Gi") for name in mine]
        objects.append(hypernode(f"r{number}", 1, "rack").holds(*mine))
    spine = hypernode("s", 2, "spine").holds(*(f"r{number}" for number in range(1, len(sizes) + 1)), kind="HyperNode")
    return [*objects, spine]


def gang(name: str, count: int, cpu: int = 1) -> list[PodBuilder]:
    return pod(name).cpu(cpu).gang(name).times(count)


def part(name: str, value: str, count: int, first: int = 0) -> list[PodBuilder]:
    """Pods of a sub-group: they share a value of the label `part`."""
    return [pod(f"{name}-{value}-{index}").cpu(1).gang(name).label("part", value) for index in range(first, first + count)]


def running(name: str, *nodes: str, cpu: int = 1) -> list[PodBuilder]:
    return [one.on(where) for one, where in zip(gang(name, len(nodes), cpu), nodes, strict=True)]


def state(made: Cluster) -> dict[str, Any]:
    """All that a dry run might disturb, as values."""
    nodes = made.nodes
    arrays = {name: value.copy() for name, value in vars(nodes).items() if isinstance(value, np.ndarray)}
    jobs = {job.uid: (job.held.tolist(), job.asked.tolist(), dict(job.counts), sorted(job.pending)) for job in made.jobs.values()}
    queues = {queue.name: (queue.held.tolist(), queue.pending.tolist()) for queue in made.queues.values()}
    places = {task.uid: (task.status, task.node, task.node_name, task.evicted) for task in made.tasks.values()}
    records = {job.uid: (job.allocated_hypernode, [part.allocated_hypernode for part in job.subjobs]) for job in made.jobs.values()}
    return arrays | {"jobs": jobs, "queues": queues, "places": places, "records": records}


def assert_same(before: dict[str, Any], after: dict[str, Any]) -> None:
    for key, value in before.items():
        assert np.array_equal(value, after[key]) if isinstance(value, np.ndarray) else value == after[key], key


def rack_of(where: str) -> int:
    return (int(where.removeprefix("n")) + 1) // 2
