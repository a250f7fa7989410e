"""The plans of the action consolidate against those of an exact solver, on a small sample that is always the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from bench.exact_moves import State, rates, small_state, state_with_rules, uneven_state, verdicts
from pumice.scheduler.framework.cycle import cycle
from pumice.testing import cluster
from pumice.testing.scene import NOW


@pytest.mark.parametrize(("make", "first"), [(small_state, 0), (state_with_rules, 5080), (uneven_state, 0)])
def test_plans_are_found_have_the_fewest_moves_and_let_everybody_run(make: Callable[[int], State], first: int) -> None:
    """By room alone; with selectors, taints, volumes, budgets, quotas, and pods that keep apart or are to be spread; and all that on nodes
    of different sizes, with memory and parts of CPUs."""
    found = rates(verdict for _, verdict in verdicts(12, first, make))
    assert found.found >= 0.98
    assert found.optimal >= 0.9
    assert found.within_one >= 0.99
    assert found.all_run == 1.0


def test_plans_are_the_same_without_shortcuts() -> None:
    planned = 0
    for seed in range(15):
        state = small_state(seed)
        found = []
        for policy in (state.policy, replace(state.policy, shortcuts=False)):
            decided = cycle(cluster(*state.objects), policy, NOW)
            found.append([(each.task.key, each.node) for each in (*decided.evictions, *decided.pipelined)])
        assert found[0] == found[1], seed
        planned += bool(found[0])
    assert planned >= 2
