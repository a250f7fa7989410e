"""kube-scheduler's loop: equal pods one at a time with all nodes scored, and preemption on full nodes.

The peer is kube-scheduler 1.36.1, run in process with a stub of the API. `naive`: the same loop, which evaluates every node for every pod.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bench import shapes
from bench.measure import Row, measured
from bench.naive import scanning
from pumice.api import yaml
from pumice.api.meta import Metadata
from pumice.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from pumice.api.quantity import quantity
from pumice.api.times import rfc3339
from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.config import KUBE_DEFAULT, schedulers_of
from pumice.scheduler.config.kube_conf import read_kube
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster

NOW = shapes.EPOCH + 3600.0
SAMPLE = 300  #: number of pods with which the naive loop is measured


def policy() -> Policy:
    return read_kube(next(yaml.documents(KUBE_DEFAULT, "default")), {})[0]


def pods(prefix: str, count: int, cpu: str, memory: str, *, priority: int = 0, nodes: int = 0) -> shapes.Items:
    """Pending pods; with `nodes`, running pods that are spread over that many nodes."""
    asked = ResourceRequirements(requests={"cpu": quantity(cpu), "memory": quantity(memory)})
    containers = [Container(name="main", image="app:1", resources=asked)]
    for number in range(count):
        born = rfc3339(shapes.EPOCH + number % 3000)
        meta = Metadata(name=f"{prefix}-{number:06d}", namespace="default", uid=f"{prefix}-{number}", creation_timestamp=born)
        node = f"node-{number % nodes:05d}" if nodes else None
        spec = PodSpec(containers=containers, node_name=node, scheduler_name="default-scheduler", priority=priority)
        yield "Pod", Pod(meta, spec, PodStatus(phase="Running" if node else "Pending", start_time=born if node else None))


def cluster(*parts: shapes.Items) -> Cluster:
    made = Cluster(schedulers_of(policy()))
    for part in parts:
        for kind, item in part:
            made.put(kind, item)
    return made


def plain(nodes: int, count: int) -> Callable[[], Cluster]:
    return lambda: cluster(shapes.nodes(nodes, cpu="32", memory="128Gi"), pods("p", count, "100m", "500Mi"))


def all_different(nodes: int, count: int) -> Callable[[], Cluster]:
    asked = [(f"{500 + number % 1500}m", f"{1024 + number}Mi") for number in range(count)]
    return lambda: cluster(
        shapes.nodes(nodes, cpu="32", memory="128Gi"),
        shapes.many(pods(f"p{number:05d}", 1, *each) for number, each in enumerate(asked)),
    )


def full(nodes: int, preemptors: int) -> Callable[[], Cluster]:
    """A builder of a cluster with four pods of 900m on each node of 4 CPU: a preemptor of 3 CPU must evict three of them."""
    return lambda: cluster(
        shapes.nodes(nodes, cpu="4", memory="32Gi"),
        pods("low", 4 * nodes, "900m", "500Mi", nodes=nodes),
        pods("high", preemptors, "3", "500Mi", priority=10),
    )


def decide(made: Cluster) -> Decisions:
    return cycle(made, policy(), NOW)


def naive_ratio(build: Callable[[], Cluster]) -> float:
    """How many times longer it takes to search a node for each pod alone, compared with plans for equal pods."""
    spent = []
    for planned in (True, False):
        chosen = policy()
        with Session(build(), chosen, NOW) as session:
            assert chosen.profiles is not None
            loop = ScheduleLoop(session, chosen.profiles)
            started = time.process_time()
            for task in loop.queue():
                loop.attempt_pod(task, planned=planned)
            spent.append(time.process_time() - started)
    return spent[1] / spent[0]


def each_alone() -> Row:
    name = "one at a time: 5,000 nodes, 10,000 pods, all different, all nodes scored"
    row = measured(name, 1.5, None, all_different(5000, 10_000), decide, 1)
    with scanning():
        return row._replace(naive=measured(name, 1.5, None, all_different(5000, 10_000), decide, 1).cpu / row.cpu)


def run() -> list[Row]:
    naive = naive_ratio(plain(5000, SAMPLE))
    first = measured("one at a time: 5,000 nodes, 10,000 equal pods, all nodes scored", 2, 233, plain(5000, 10_000), decide, 3)
    return [
        first._replace(naive=naive),
        each_alone(),
        measured("kube preemption: 500 full nodes (4 pods each), 500 preemptors of 3 victims", 0.6, 6.2, full(500, 500), decide, 3),
        measured("kube preemption: 5,000 full nodes (4 pods each), 1,000 preemptors", 3, None, full(5000, 1000), decide, 3),
    ]
