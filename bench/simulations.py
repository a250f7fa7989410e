"""A whole simulation; and traces played to their end, from the folder that PUMICE_TRACES names (openb/, philly/, swf/), if it does."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.measure import Row, measured, rate
from bench.naive import scanning
from pumice.live.whole import play as play_whole
from pumice.simulate import fgd_arrivals
from pumice.simulate.inputs import Source, nodes_of_pools, read_policy
from pumice.simulate.output_columns import JOBS
from pumice.simulate.scenario import Scenario, simulate


def scenario(policy: str, workload: Source, cluster: Source | str | None = None) -> Scenario:
    nodes = nodes_of_pools(cluster) if isinstance(cluster, str) else cluster.nodes() if cluster else None
    return Scenario(workload, nodes, read_policy(policy)[0], policy, seed=42)


def naively(play: Callable[[Scenario], object], made: Scenario) -> None:
    with scanning():
        play(made)


PAGE = """\
nodes: 100x8gpu
jobs:
- arrivals: {poisson: 20/m}
  count: 150
  pods: {choice: {1: 2, 8: 2, 32: 1}}
  run: {exponential: 10m}
  request: {cpu: 4, memory: 16Gi, nvidia.com/gpu: 1}
"""
WHOLE_BUDGET = 500.0  #: pods per second of CPU time, from the first object to the end of the last job


def whole() -> Row:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "page.yaml")
        path.write_text(PAGE)
        jobs: list[tuple[object, ...]] = []
        made, cpu = scenario("volcano", Source("yaml", str(path))), time.process_time()
        simulate(made, jobs=jobs, player=play_whole)
        cpu = time.process_time() - cpu
    pods = sum(int(str(job[JOBS.index("pods")])) for job in jobs)
    return rate(
        "whole simulation: 150 jobs of 1 to 32 pods on 100 x 8 GPUs, pods from submission to end", pods / cpu, WHOLE_BUDGET, pods=pods
    )


def beside_naive(name: str, budget_s: float, build: Callable[[], Scenario], play: Callable[[Scenario], object]) -> Row:
    """The row of a simulation. `naive` is how many times longer it takes if every node is evaluated anew for each placement."""
    row = measured(name, budget_s, None, build, play, 1)
    naive = measured("", 0, None, build, partial(naively, play), 1)
    return row._replace(naive=naive.cpu / row.cpu)


def run() -> Iterator[Row]:
    yield whole()
    if "PUMICE_TRACES" not in os.environ:
        return
    traces = Path(os.environ["PUMICE_TRACES"])
    pods, nodes = (Source("openb", str(traces / f"openb/openb_{name}.csv")) for name in ("pod_list_default", "node_list_gpu_node"))
    to_130 = partial(fgd_arrivals.play, load=1.3)
    for policy, budget_s in (("BestFit", 2.0), ("FGD", 20.0)):
        build = partial(scenario, policy, pods, nodes)
        yield beside_naive(f"openb, pods only come, to 130 %, {policy}", budget_s, build, to_130)
    wagap = partial(scenario, "EASY", Source("swf", str(traces / "swf/wagap-2013.swf")))
    yield beside_naive("wagap-2013 to its end, EASY", 5.0, wagap, simulate)
    philly = partial(scenario, "volcano", Source("philly", str(traces / "philly/philly.csv")), "300x8gpu")
    yield beside_naive("Philly to its end, 300 x 8 GPUs, 15 queues, Volcano's default", 60.0, philly, simulate)
