"""The plans of the action consolidate against those of an exact solver, on a small sample that is always the same."""

from __future__ import annotations

from bench.exact_moves import rates, verdicts


def test_plans_are_found_have_the_fewest_moves_and_let_everybody_run() -> None:
    found = rates(verdict for _, verdict in verdicts(20))
    assert found.found >= 0.98
    assert found.optimal >= 0.9
    assert found.within_one >= 0.95
    assert found.all_run == 1.0
