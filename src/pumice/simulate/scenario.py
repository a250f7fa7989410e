"""A simulation from its inputs to its outputs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from pumice.api import InputError, rfc3339
from pumice.api.core import Node
from pumice.api.defaults import DEFAULT_QUEUE, ROOT_QUEUE
from pumice.api.meta import Metadata
from pumice.api.volcano import Queue, QueueSpec, QueueStatus
from pumice.scheduler.config import schedulers_of
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster
from pumice.simulate import measures, output_columns
from pumice.simulate.fault_injection import NodeLosses, accidents_of, disturbed
from pumice.simulate.outputs import Folder
from pumice.simulate.record import Record
from pumice.simulate.simulated_cluster import Habits, Rank, SimulatedCluster
from pumice.simulate.workload import Workload, queue

Summary = dict[str, Any]


class Readable(Protocol):
    """Where a workload comes from, such as a file."""

    def read(self, cluster: list[Node] | None, seed: int = 0) -> Workload: ...


@dataclass(frozen=True)
class Scenario:
    """Everything that a simulation's outcome depends on."""

    workload: Readable
    cluster: list[Node] | None
    policy: Policy
    policy_name: str
    cluster_name: str = ""
    seed: int | None = None
    habits: Habits = field(default_factory=Habits)


Player = Callable[[Scenario, Workload, Record], None]


def play_fast(scenario: Scenario, workload: Workload, record: Record) -> None:
    """Play a workload without an API server: events change the scheduler's state directly, with wire structs. Raises InputError."""
    faults, seed = workload.faults, scenario.seed or 0
    if faults.of_objects:
        raise InputError(f"faults.{faults.of_objects}: nothing is sent to anybody here; say --whole, or leave it out", where=workload.name)
    cluster = cluster_of(scenario.policy, workload)
    jobs = disturbed(workload.jobs, faults, seed) if faults.stragglers or faults.estimates else workload.jobs
    simulated = SimulatedCluster(cluster, scenario.policy, jobs, record, scenario.habits, workload.began or 0.0)
    simulated.skew_s = faults.skew_s
    first = record.now

    def at(when: float, call: Callable[[], None]) -> None:
        simulated.at(when, Rank.NODE, lambda subject: call(), None)

    nodes = NodeLosses(workload.nodes, simulated.fail, simulated.join)
    for accidents in accidents_of(faults, seed, at, {"nodes": nodes.lose, "scheduler": lambda random: simulated.end_work()}):
        accidents.begin(first, lambda: simulated.goes_on)
    simulated.play()


def simulate(
    scenario: Scenario, out: str | None = None, *, jobs: list[tuple[Any, ...]] | None = None, player: Player = play_fast
) -> Summary:
    """Play a scenario to its end. `out`: the folder to write; `jobs`: a list that gets the rows of jobs.csv. Raises InputError."""
    workload = scenario.workload.read(scenario.cluster, scenario.seed or 0)
    folder = Folder(out) if out else None
    sinks = [table.write for table in ([folder.jobs] if folder else [])] + ([jobs.append] if jobs is not None else [])

    def tell(row: tuple[Any, ...]) -> None:
        for sink in sinks:
            sink(row)

    job = sinks[0] if len(sinks) == 1 else tell
    record = Record(job, folder.events.write) if folder else Record(job)
    player(scenario, workload, record)
    summary = summarize(scenario, workload, record)
    if folder:
        folder.close(record.series, record.now, summary)
    return summary


def cluster_of(policy: Policy, workload: Workload) -> Cluster:
    """The scheduler's state before the first job comes. Raises InputError."""
    if not workload.nodes:
        raise InputError("there are no nodes", where=workload.name)
    cluster = Cluster(schedulers_of(policy))
    cluster.put("Queue", queue(DEFAULT_QUEUE))
    cluster.put("Queue", Queue(Metadata(ROOT_QUEUE), QueueSpec(weight=1, reclaimable=False), QueueStatus(state="Open")))
    for kind, item in (*workload.objects, *(("Node", node) for node in workload.nodes)):
        cluster.put(kind, item)
    return cluster


def summarize(scenario: Scenario, workload: Workload, record: Record) -> Summary:
    """The content of summary.json, with the keys of `output_columns.SUMMARY`."""
    values = {
        "measures": measures.measures(record),
        "queues": {name: measures.measures(record, name) for name in record.queues},
        "longest": measures.longest(record),
        "left_out": dict(workload.left_out),
        "began": None if workload.began is None else rfc3339(workload.began),
        "workload": workload.name,
        "cluster": scenario.cluster_name or workload.name,
        "policy": scenario.policy_name,
        "seed": scenario.seed,
    }
    return {key: values[key] for key in output_columns.SUMMARY}


def as_objects(rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(output_columns.JOBS, row, strict=True)) for row in rows]
