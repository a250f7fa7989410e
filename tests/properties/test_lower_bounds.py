"""Lower bounds are never above what any policy reaches, for gangs, releases, several resources, evictions and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest

from pumice.api.core import Node
from pumice.simulate.inputs import NAMED, policy_of
from pumice.simulate.lower_bounds import MEASURES, LowerBounds, bounds_of, finishes, mean_busy_times
from pumice.simulate.scenario import Scenario, simulate
from pumice.simulate.simulated_cluster import Habits
from pumice.simulate.workload import Work, Workload, node, role
from tests.samples import times

PREEMPTING = NAMED["volcano"].replace("backfill", "backfill, preempt, reclaim")
GANGS = ("FIFO", "SJF", "EASY", "greedy", "conservative", "volcano", "preempting")
POLICIES = (*GANGS, "kube-scheduler")
SLACK = 1e-6


@dataclass
class Known:
    """A workload that is at hand."""

    jobs: list[Work]
    nodes: list[Node]

    def read(self, cluster: list[Node] | None, seed: int = 0) -> Workload:
        return Workload("known", iter(self.jobs), self.nodes)


def drawn(random: Random) -> Known:
    nodes = [
        node(f"n{number}", {"cpu": random.randint(2, 5), "nvidia.com/gpu": random.randint(1, 3)}) for number in range(random.randint(1, 2))
    ]
    jobs, now = list[Work](), 0.0
    for number in range(random.randint(4, 20)):
        now += random.choice((0, 0, 0, 1, 7))
        roles = [role(random.randint(1, 2), {"cpu": random.randint(1, 2)} | random.choice(({}, {"nvidia.com/gpu": 1})))]
        if random.random() < 0.3:
            roles.append(role(1, {"cpu": 1}))
        run, pods = float(random.choice((1, 3, 10, 40, 41))), sum(each.count for each in roles)
        slow = {random.randrange(pods): random.choice((0.5, 3.0))} if random.random() < 0.2 else None
        jobs.append(
            Work(
                str(number),
                now,
                run,
                tuple(roles),
                queue=random.choice("ab"),
                priority=random.choice((0, 0, 10)),
                estimate=run * random.choice((0.5, 1, 1, 2)),
                minimum=random.choice((None, None, 1)),
                checkpoint=random.choice((0.0, 0.0, 5.0)),
                slow=slow,
            )
        )
    return Known(jobs, nodes)


def played(known: Known, name: str, *, kill: bool) -> dict[str, object]:
    policy, _ = policy_of(PREEMPTING if name == "preempting" else NAMED[name], name)
    found: dict[str, object] = simulate(Scenario(known, None, policy, name, habits=Habits(kill_at_estimate=kill)))["measures"]
    return found


def test_no_policy_goes_below_the_bounds() -> None:
    held = dict.fromkeys(MEASURES, 0)
    for seed in range(times(16)):
        random = Random(seed)
        known, name, kill = drawn(random), POLICIES[seed % len(POLICIES)], random.random() < 0.2
        measures = played(known, name, kill=kill)
        bounds = bounds_of(known.jobs, known.nodes, whole_gangs=name in GANGS, kill_at_estimate=kill)
        if kill:  # those that were killed have ended too
            measures |= {"done": measures["done"] + measures["killed"]}  # type: ignore[operator]
        for measure in MEASURES:
            told = bounds.of(measure, measures)
            if told is not None:
                value, bound = told
                assert bound <= value + SLACK, (seed, name, measure)
                held[measure] += 1
    assert min(held.values()) >= 3, held  # not for want of cases


def one(run: float, submit: float = 0.0, cpu: int = 1) -> Work:
    return Work(f"{submit}-{run}", submit, run, (role(1, {"cpu": cpu}),))


@pytest.mark.parametrize(
    "jobs, cpus, bounds",
    [
        ([one(10), one(2)], 1, LowerBounds(12, 1, 7)),  # the short one first: starts 0 and 2, ends 2 and 12
        ([one(10), one(2, submit=1)], 1, LowerBounds(12, 0.9, 7)),  # cut in two: ends 3 and 12, mean busy times 2 and 6.8
        ([one(10), one(2)], 2, LowerBounds(10, 0, 6)),  # both at once: only the critical path
        ([one(4), one(4), one(4)], 2, LowerBounds(6, 1, 5)),  # mean busy times 1, 3 and 5, and half of each run
        ([], 1, LowerBounds(0, 0, 0)),
    ],
)
def test_bounds_by_hand(jobs: list[Work], cpus: int, bounds: LowerBounds) -> None:
    assert bounds_of(jobs, [node("n", {"cpu": cpus})]) == pytest.approx(bounds)


def test_the_two_rules_of_the_machine() -> None:
    # 10 s of work, interrupted at 3 by 2 s, and at 4 by 9 s: more than what is left, and less than the whole
    comes, needs = [0.0, 3.0, 4.0], [10.0, 2.0, 9.0]
    assert finishes(comes, needs) == [12, 5, 21]
    assert mean_busy_times(comes, needs) == pytest.approx([(3 * 1.5 + 7 * 17.5) / 10, 4, 9.5])


def test_a_run_that_left_jobs_or_evicted_some_is_not_measured_by_means_that_are_not_its_own() -> None:
    bounds, measures = (
        LowerBounds(10, 1, 5),
        {"makespan": 20.0, "wait": {"mean": 2.0}, "turnaround": {"mean": 5.0}, "evictions": 1, "jobs": 2},
    )
    assert bounds.of("turnaround", measures | {"done": 2}) == (5, 5) and bounds.of("wait", measures | {"done": 2}) is None
    assert bounds.of("turnaround", measures | {"done": 1}) is None
    assert bounds._replace(turnaround=0.0).of("turnaround", measures | {"done": 2}) is None
