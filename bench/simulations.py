"""Traces played to their end, from the folder that PUMICE_TRACES names (openb/, philly/, swf/); without it there are no rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from bench.measure import Row, measured
from bench.naive import scanning
from pumice.simulate import arrivals
from pumice.simulate.inputs import Source
from pumice.simulate.policies import read_policy
from pumice.simulate.pools import nodes_of_pools
from pumice.simulate.run import Scenario, simulate


def scenario(policy: str, workload: Source, cluster: Source | str | None = None) -> Scenario:
    nodes = nodes_of_pools(cluster) if isinstance(cluster, str) else cluster.nodes() if cluster else None
    return Scenario(workload, nodes, read_policy(policy)[0], policy, seed=42)


def naively(play: Callable[[Scenario], object], made: Scenario) -> None:
    with scanning():
        play(made)


def run() -> Iterator[Row]:
    if "PUMICE_TRACES" not in os.environ:
        return
    traces = Path(os.environ["PUMICE_TRACES"])
    pods, nodes = (Source("openb", str(traces / f"openb/openb_{name}.csv")) for name in ("pod_list_default", "node_list_gpu_node"))
    to_130 = partial(arrivals.play, load=1.3)
    for policy, budget_s in (("BestFit", 2.0), ("FGD", 20.0)):
        build = partial(scenario, policy, pods, nodes)
        row = measured(f"openb, pods only come, to 130 %, {policy}", budget_s, None, build, to_130, 1)
        naive = measured("", 0, None, build, partial(naively, to_130), 1)
        yield row._replace(naive=naive.cpu / row.cpu)
    wagap = partial(scenario, "EASY", Source("swf", str(traces / "swf/wagap-2013.swf")))
    yield measured("wagap-2013 to its end, EASY", 5.0, None, wagap, simulate, 1)
    philly = partial(scenario, "volcano", Source("philly", str(traces / "philly/philly.csv")), "300x8gpu")
    yield measured("Philly to its end, 300 x 8 GPUs, 15 queues, Volcano's default", 60.0, None, philly, simulate, 1)
