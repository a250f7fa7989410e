"""Advice is followed as a user would follow it: the job starts, or what is said to come next is what comes.

A part of `bench/advice.py`, which follows all of it; by night all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from bench.advice import Verdict, advice_of_why, all_situations, options_of_whatif, verdicts
from bench.causes import CAUSES, CONFIGURATIONS, KUBE, TWO, Cause, Situation, crowds, job, node, only_on, policy_of, situations
from pumice.answers.changes import UNSCHEDULABLE

Judge = Callable[[Situation], Iterator[Verdict]]


def missed(judge: Judge, chosen: Iterator[Situation]) -> list[Verdict]:
    return [each for each in verdicts(judge, chosen) if each.holds is False]


@pytest.mark.parametrize("configuration", ["capacity", "built-in", "hierarchy"])
def test_what_why_advises_helps_jobs_that_have_no_pods_yet(configuration: str) -> None:
    chosen = [each for each in situations() if f", {configuration}, j" in each.name][::6]
    assert len(chosen) > 8
    assert missed(advice_of_why, iter(chosen)) == []


def test_what_why_advises_helps_plain_pods_and_pods_of_gangs() -> None:
    chosen = [each for each in situations() if ", j" not in each.name][::24]
    assert missed(advice_of_why, iter(chosen)) == []


def test_every_option_of_whatif_starts_the_job() -> None:
    chosen = [each for each in situations() if ", j" in each.name][::33]
    found = verdicts(options_of_whatif, chosen)
    assert len(found) > 6
    assert [each for each in found if not each.holds] == []


@pytest.mark.parametrize("number", [114, 207, 280, 358, 371])
def test_advice_holds_among_rivals_that_take_what_is_given(number: int) -> None:
    """A ResourceQuota that others wait for, too; a job to be submitted anew in two respects; one that must end before room is added, which
    it would take; others that are admitted before it."""
    found = verdicts(advice_of_why, crowds(1, number))
    assert [each.holds for each in found] == [True], found


def test_pods_of_different_sizes_are_rehearsed_in_the_order_in_which_they_are_made() -> None:
    """A small pod takes the node with most room before a large one comes: an earlier rehearsal must not turn their order round."""
    large, small = job("waits", 2, {"cpu": "6"}), job("waits", 1, {"cpu": "1"})
    large["spec"]["tasks"] = [{**small["spec"]["tasks"][0], "name": "first"}, *large["spec"]["tasks"]]
    policy, cause = policy_of("built-in", CONFIGURATIONS["built-in"], KUBE), Cause("two sizes", TWO, [job("old", 2, {"cpu": "7"})])
    (verdict,) = advice_of_why(Situation("two sizes", policy, cause, [large], "job/waits", "job/default/waits"))
    assert verdict.holds, verdict.told


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_node_that_the_job_asks_for_and_that_is_cordoned_is_named_so(configuration: str) -> None:
    """A cordoned node also has a taint, which goes with the cordon."""
    policy, shut = policy_of(configuration, CONFIGURATIONS[configuration], KUBE), node("n2", cordoned=True)
    shut["spec"]["taints"] = [{"key": UNSCHEDULABLE, "effect": "NoSchedule"}]
    cause = Cause("cordon and selector", [node("n1"), shut])
    waits = [job("waits", 1, {"cpu": "2"}, pod=only_on("n2"))]
    (verdict,) = advice_of_why(Situation("cordon and selector", policy, cause, waits, "job/waits", "job/default/waits"))
    assert verdict.holds and verdict.told.startswith("node n2, the only one with room for it, is cordoned | uncordon node n2 | starts"), (
        verdict
    )


def test_what_admission_needs_is_not_left_out_of_advice_though_the_job_would_start_without_it() -> None:
    """A child queue may have no higher capability than its parent, whether or not the configuration heeds the parent's."""
    (nested,) = [each for each in situations() if each.name == "nested queues, built-in, g1"]
    (verdict,) = advice_of_why(nested)
    assert verdict.holds, verdict.told


@pytest.mark.nightly
@pytest.mark.parametrize("judge", [advice_of_why, options_of_whatif])
def test_all_advice_holds(judge: Judge) -> None:
    assert len(CAUSES) > 30
    assert missed(judge, all_situations()) == []
