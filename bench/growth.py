"""How cost grows: idle cost with running pods, cost per placement with nodes, cost per job with jobs."""

from __future__ import annotations

from typing import Any

from bench import sessions, shapes
from bench.measure import measured
from pumice.scheduler.framework.cycle import cycle


def idle_with_pods() -> list[tuple[int, float]]:
    points = []
    for jobs in (100, 300, 1000, 1500):
        parts = sessions.running(5000, jobs, 100, requests={"cpu": "1", "memory": "2Gi"})
        made = shapes.cluster(shapes.nodes(5000, cpu="64", memory="256Gi"), shapes.queues(), parts)
        decide = sessions.policy()
        cycle(made, decide, sessions.NOW)
        row = measured("", 0, None, lambda made=made: made, lambda kept: cycle(kept, decide, sessions.NOW + 1), 5)  # noqa: B023
        points.append((jobs * 100, row.cpu * 1e3))
    return points


def placement_with_nodes() -> list[tuple[int, float]]:
    points = []
    for nodes in (500, 1000, 2500, 5000, 10_000):
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
        {"name": "idle session", "x": "running pods", "y": "CPU ms", "points": idle_with_pods()},
        {"name": "gangs of 100", "x": "nodes", "y": "CPU us per placement", "points": placement_with_nodes()},
        {"name": "single-pod jobs on 1,000 nodes", "x": "jobs", "y": "CPU us per job", "points": job_with_jobs()},
    ]
