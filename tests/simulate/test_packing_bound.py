"""The bound on packing: never below what a placement reaches, and close to the optimum of the linear relaxation that a solver finds."""

from __future__ import annotations

from random import Random

import highspy
import numpy as np
import pytest

from pumice.scheduler.framework.cycle import cycle
from pumice.simulate.packing_bound import THOUSANDTHS, least_price, most_gpus
from pumice.simulate.workload import GPU_MILLI, node
from pumice.testing import cluster, pod, podgroup
from pumice.testing.scene import policy

GPUS = 1


def drawn(random: Random) -> tuple[np.ndarray, ...]:
    """Kinds of pods that ask for CPU and GPUs, and types of nodes, each of which admits some kinds."""
    kinds, types = random.randint(1, 6), random.randint(1, 4)
    wanted = np.array([[random.randint(0, 12), random.choice([0, 1, 1, 2, 4, 8])] for _ in range(kinds)], float)
    offered = np.array([[random.randint(4, 64), random.choice([0, 2, 4, 8])] for _ in range(types)], float)
    admits = np.array([[random.random() < 0.8 for _ in range(kinds)] for _ in range(types)])
    count = np.array([random.randint(1, 5) for _ in range(types)], float)
    return wanted, np.array([random.randint(1, 30) for _ in range(kinds)], float), offered, count, admits


def optimum(wanted: np.ndarray, many: np.ndarray, offered: np.ndarray, count: np.ndarray, admits: np.ndarray) -> float:
    """The optimum of the relaxation, by a solver."""
    model = highspy.Highs()
    model.silent()
    placed = {(k, t): model.addVariable(lb=0) for k in range(len(many)) for t in range(len(count)) if admits[t, k]}
    for k, limit in enumerate(many):
        if mine := [each for (kind, _), each in placed.items() if kind == k]:
            model.addConstr(sum(mine) <= limit)
    for t, nodes in enumerate(count):
        for r in range(offered.shape[1]):
            if mine := [wanted[kind, r] * each for (kind, on), each in placed.items() if on == t and wanted[kind, r]]:
                model.addConstr(sum(mine) <= nodes * offered[t, r])
    if not placed:
        return 0.0
    model.maximize(sum(wanted[kind, GPUS] * each for (kind, _), each in placed.items()))
    return float(model.getInfo().objective_function_value)


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_is_at_least_the_optimum_and_close_to_it(seed: int) -> None:
    made = drawn(Random(seed))
    best = optimum(*made)
    bound = least_price(*made, GPUS)
    assert best <= bound + 1e-6 and bound <= 1.02 * best + 0.05


def test_pods_that_may_run_on_few_nodes_bound_what_is_allocated() -> None:
    made = cluster()
    for name, model in (("a", "T4"), ("b", "V100")):
        made.put("Node", node(name, {"cpu": 64, "memory": "256Gi", GPU_MILLI: 4000}, {"model": model}))
    for number in range(6):
        made.put(*podgroup(f"p{number}").build())
        made.put(*pod(f"p{number}").cpu(1).request(GPU_MILLI, 1000).gang(f"p{number}").selector("model", "T4").build())
    assert most_gpus(made) == pytest.approx(4, rel=0.01)
    placed = len(cycle(made, policy("allocate", ["gang", "predicates"]), 0.0).binds)
    assert placed == 4 and made.nodes.total()[made.dimensions.columns[GPU_MILLI]] == 8 * THOUSANDTHS
