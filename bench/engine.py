"""The engine alone: placements per second on arrays, beside a naive scan of all nodes for each task.

There are three loads: equal tasks in one run; gangs of 64, each gang with another request; tasks whose requests all differ. The naive
reference asks every rule about every node for each placement. It is timed with fewer tasks and compared per placement.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bench import shapes
from bench.measure import Row
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.engine.plan_equal_tasks import plan
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.row_log import RowChange
from pumice.scheduler.model.task import Task
from pumice.scheduler.placement.place_tasks import MIN_RUN
from pumice.scheduler.plugins.kube.least_allocated import LeastAllocated
from pumice.scheduler.plugins.volcano.predicates import PodLimit

NODES = 5000
NAIVE_TASKS = 300


def build(tasks: int, different: Callable[[int], int]) -> Cluster:
    """A cluster with this many tasks, where the request of each task depends on `different` of its number."""
    parts = (
        shapes.gang(
            f"job-{n:05d}",
            1,
            {"cpu": f"{200 + different(n) % 1700}m", "memory": f"{256 + different(n)}Mi", "gpu": "1", "ephemeral-storage": "1Gi"},
            created=n,
        )
        for n in range(tasks)
    )
    given = {"cpu": "64", "memory": "512Gi", "gpu": "64", "ephemeral-storage": "2Ti"}
    return shapes.cluster(shapes.nodes(NODES, **given), shapes.queues(), shapes.many(parts))


def by_runs(made: Cluster, tasks: list[Task]) -> int:
    """Place the tasks, long runs of equal tasks by a plan, and update the node table after each placement. Return how many were placed."""
    placed, asked = 0, Evaluations(made, [PodLimit()], [LeastAllocated()])
    for run in _runs(tasks):
        evaluation = asked.of(run[0])
        evaluation.refresh()
        candidates = evaluation.admitted & evaluation.fits_idle
        is_planned = len(run) >= MIN_RUN
        rows = plan(evaluation, candidates, len(run)) if is_planned else iter([evaluation.best(candidates)])
        for task, row in zip(run, rows, strict=False):
            task.status = status.ALLOCATED
            task.node = row
            made.nodes.add(task, row)
            if not is_planned:
                made.log.append(RowChange(row, task, 1))  # score bounds read the log; plans need no entry, because no two runs are equal
            placed += 1
    return placed


def _runs(tasks: list[Task]) -> Iterator[list[Task]]:
    run: list[Task] = []
    for task in tasks:
        if run and task.template is not run[0].template:
            yield run
            run = []
        run.append(task)
    if run:
        yield run


def by_scanning(made: Cluster, tasks: list[Task]) -> int:
    """The naive reference: evaluate all nodes anew for each task. Return the number of tasks."""
    for task in tasks:
        evaluation = Evaluations(made, [PodLimit()], [LeastAllocated()]).of(task)
        evaluation.refresh()
        row = int(evaluation.totals(evaluation.admitted & evaluation.fits_idle).argmax())
        task.status = status.ALLOCATED
        task.node = row
        made.nodes.add(task, row)
    return len(tasks)


def rate(name: str, budget: float, tasks: int, different: Callable[[int], int]) -> Row:
    made = build(tasks, different)
    started, clock = time.process_time(), time.perf_counter()
    placed = by_runs(made, list(made.tasks.values()))
    spent, passed = time.process_time() - started, time.perf_counter() - clock
    fresh = build(NAIVE_TASKS, different)
    started = time.process_time()
    by_scanning(fresh, list(fresh.tasks.values()))
    naive = (time.process_time() - started) / NAIVE_TASKS
    return Row(name, budget, None, placed / spent, placed / passed, "placements/s", {"placed": placed}, naive * placed / spent)


def run() -> list[Row]:
    return [
        rate("engine: 5,000 nodes x 4 resources, equal tasks", 300_000, 50_000, lambda n: 0),
        rate("engine: gangs of 64", 100_000, 20_000, lambda n: n // 64),
        rate("engine: all different", 12_000, 5_000, lambda n: n),
    ]
