"""How cost grows: of a cycle in which one pod has ended with running pods, per placement with nodes, per job with jobs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from bench import large, sessions, shapes
from bench.measure import measured
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.model.cluster import Cluster


def change_with_pods() -> list[tuple[int, float]]:
    made, decide, on, points = Cluster(), sessions.policy(), shapes.spread(20_000), []
    large.read(made, large.existing(20_000))
    for before, gangs in pairwise((0, 1000, 3000, 6000, 10_000)):
        large.read(made, large.running(range(before, gangs), on))
        cycle(made, decide, sessions.NOW)
        row = measured("", 0, None, lambda: large.end_one(made), lambda kept: cycle(kept, decide, sessions.NOW), 5)
        points.append((gangs * 100, row.cpu * 1e3))
    return points


def placement_with_nodes() -> list[tuple[int, float]]:
    points = []
    for nodes in (1000, 5000, 25_000, 50_000, 100_000):
        row = measured(
            "", 0, None, lambda n=nodes: sessions.gangs(n, 50, 100), lambda made: cycle(made, sessions.policy(), sessions.NOW), 3
        )
        points.append((nodes, row.cpu / 5000 * 1e6))
    return points


def job_with_jobs() -> list[tuple[int, float]]:
    points = []
    for jobs in (500, 1000, 2500, 5000, 10_000):
        row = measured("", 0, None, lambda n=jobs: sessions.gangs(1000, n, 1), lambda made: cycle(made, sessions.policy(), sessions.NOW), 3)
        points.append((jobs, row.cpu / jobs * 1e6))
    return points


def run() -> list[dict[str, Any]]:
    return [
        {"name": "one pod has ended, 20,000 nodes", "x": "running pods", "y": "CPU ms of the cycle", "points": change_with_pods()},
        {"name": "gangs of 100", "x": "nodes", "y": "CPU us per placement", "points": placement_with_nodes()},
        {"name": "single-pod jobs on 1,000 nodes", "x": "jobs", "y": "CPU us per job", "points": job_with_jobs()},
    ]
