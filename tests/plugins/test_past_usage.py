"""usage.halfLife: what users and queues used before counts in the order of drf and capacity."""

from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest
from scene import conf, cycle_on, opened, per_job

from pumice.answers import why
from pumice.api.annotations import USER
from pumice.inputs.cluster_from_files import advance
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.scheduler.framework.cycle import cycle, rehearse
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.past_usage import queue_of, user_of
from pumice.scheduler.registry import PLUGINS
from pumice.simulate.inputs import Source
from pumice.simulate.simulated_cluster import Habits
from pumice.testing import NOW, Builder, PodGroupBuilder, cluster, node, pod, podgroup, queue
from tests.simulate.playing import played

HALF_LIFE, HALF_LIFE_S = {"usage.halfLife": "1h"}, 3600.0
CPU = 0


def plugin(name: str, **more: Any) -> str:
    return json.dumps({"name": name, **more})


BY_USERS = conf(f"gang, {plugin('drf', arguments=HALF_LIFE)}, predicates", actions="allocate")
BY_QUEUES = conf(f"gang, {plugin('capacity', arguments=HALF_LIFE)}, predicates", actions="allocate")
IN_TREES = conf(f"gang, {plugin('capacity', arguments=HALF_LIFE, enableHierarchy=True)}, predicates", actions="allocate")


def group(name: str, user: str = "") -> PodGroupBuilder:
    made = podgroup(name, 1).admitted()
    return made.annotation(USER, user) if user else made


def put(made: Cluster, *builders: Builder) -> None:
    for each in builders:
        made.put(*each.build())


def mean_cpu(made: Cluster, holder: str, at: float) -> float:
    """In CPUs."""
    usage = made.used_before(HALF_LIFE_S, queue_of if holder.startswith("queue") else user_of)
    return float(usage.mean(holder, at)[CPU]) / 1000


# -- the mean


def test_a_place_that_is_only_tried_leaves_no_rounding_error() -> None:
    made, other = (cluster(node("n").cpu(8), *group("a").pods(1, cpu=3), pod("b").gang("a").cpu(1)) for _ in range(2))
    for each in (made, other):
        each.clock = NOW
        mean_cpu(each, "namespace default", NOW)
        each.move(each.tasks["default/a-0"], status.BOUND, 0)
    for step in range(1, 50):
        made.clock = NOW + step / 3
        made.move(made.tasks["default/b"], status.ALLOCATED, 0)
        made.move(made.tasks["default/b"], status.PENDING, -1)
    assert mean_cpu(made, "namespace default", NOW + 1000) == mean_cpu(other, "namespace default", NOW + 1000)


def test_who_held_eight_for_a_half_life_has_a_mean_of_four_and_after_another_without_them_of_two() -> None:
    made = cluster(node("n").cpu(8), *group("a").pods(8, cpu=1))
    advance(made, cycle_on(made, BY_USERS), NOW)
    assert mean_cpu(made, "namespace default", NOW) == 0
    assert mean_cpu(made, "namespace default", NOW + HALF_LIFE_S) == 4
    made.clock = NOW + HALF_LIFE_S
    for number in range(8):
        made.remove("Pod", f"default/a-{number}")
    made.check()
    assert mean_cpu(made, "namespace default", NOW + 2 * HALF_LIFE_S) == 2


def test_how_often_one_looks_makes_no_difference_but_for_rounding() -> None:
    """Somebody else comes and goes meanwhile; so does a pod of its own, in thought."""
    made = cluster(node("n").cpu(8), group("a", "ann"), pod("a").gang("a").cpu(3), *group("b", "bob").pods(8, cpu=1))
    for step in range(8):
        advance(made, cycle_on(made, BY_USERS, NOW + step * HALF_LIFE_S / 8), NOW + step * HALF_LIFE_S / 8)
        made.clock = NOW + (step + 0.5) * HALF_LIFE_S / 8
        made.remove("Pod", f"default/b-{step}")
    assert mean_cpu(made, "user ann", NOW + HALF_LIFE_S) == pytest.approx(1.5, rel=1e-12)


def test_a_scheduler_that_begins_knows_what_the_pods_that_run_tell() -> None:
    running = pod("a").gang("a").on("n").cpu(4)
    made = cluster(node("n").cpu(8), group("a", "ann"), running, group("b", "bob"), *pod("b").gang("b").cpu(4).times(2))
    made.tasks["default/a"].placed_at = NOW - HALF_LIFE_S
    cycle_on(made, BY_USERS)
    assert [mean_cpu(made, f"user {name}", NOW) for name in ("ann", "bob")] == [2, 0]


def test_a_rehearsal_leaves_the_past_as_it_was() -> None:
    made = cluster(node("n").cpu(8), *group("a").pods(4, cpu=1))
    advance(made, cycle_on(made, BY_USERS), NOW)
    put(made, group("b"), *pod("b").gang("b").cpu(1).times(4))
    rehearse(made, BY_USERS, NOW + 9 * HALF_LIFE_S)
    assert made.clock == NOW and mean_cpu(made, "namespace default", NOW + HALF_LIFE_S) == 2
    made.check()


def test_new_resources_and_a_clock_that_is_set_back_do_no_harm() -> None:
    made = cluster(node("n").cpu(8), *group("a").pods(4, cpu=1))
    advance(made, cycle_on(made, BY_USERS), NOW)
    put(made, node("m").has(cpu=1, **{f"example.com/card-{number}": 1 for number in range(40)}))
    put(made, group("b"), pod("b").gang("b").cpu(1))
    advance(made, cycle_on(made, BY_USERS, NOW - 5), NOW)
    assert mean_cpu(made, "namespace default", NOW + HALF_LIFE_S) == 2.5


def test_there_is_no_past_unless_a_plugin_asks() -> None:
    made = cluster(node("n").cpu(8), *group("a").pods(4, cpu=1))
    cycle_on(made, conf("gang", "drf, capacity, predicates"))
    assert not made.past_usage


# -- jobs, by their users


def after_a_day(user: str, policy: Policy) -> list[str]:
    """Ann has had the node for a day, and it is free now. Jobs in the order in which they get the one place that there is."""
    made = cluster(node("n").cpu(1), group("old", user), pod("old").gang("old").cpu(1))
    advance(made, cycle_on(made, policy), NOW)
    made.clock = NOW + 86400
    made.remove("Pod", "default/old")
    for number, (name, whose) in enumerate([("ann", user), ("bob", "bob")]):
        put(made, group(name, whose).created(f"2026-01-01T00:00:0{number}Z"), pod(name).gang(name).cpu(1))
    order = []
    while decided := cycle_on(made, policy, made.clock).binds:
        order += [bind.task.name for bind in decided]
        made.remove("Pod", decided[0].task.key)
    return order


def test_who_used_less_before_goes_first() -> None:
    assert after_a_day("ann", conf("gang, drf, predicates", actions="allocate")) == ["ann", "bob"]
    assert after_a_day("ann", BY_USERS) == ["bob", "ann"]


def test_without_a_user_it_is_the_namespace() -> None:
    assert after_a_day("", BY_USERS) == ["bob", "ann"]


def test_a_weight_of_nothing_leaves_the_order_as_it_is() -> None:
    weightless = conf(f"gang, {plugin('drf', arguments=HALF_LIFE | {'usage.weight': 0})}, predicates", actions="allocate")
    assert after_a_day("ann", weightless) == ["ann", "bob"]


# -- queues


def a_day_of(old: str, *queues: Builder, policy: Policy = BY_QUEUES) -> Cluster:
    """A queue has had eight CPUs for a day, of which two are free now."""
    made = cluster(node("n").cpu(8), queues, group("old").queue(old), *pod("old").gang("old").cpu(1).times(8))
    advance(made, cycle_on(made, policy), NOW)
    made.clock = NOW + 86400
    made.remove("Pod", "default/old-0")
    made.remove("Pod", "default/old-1")
    return made


def asks(made: Cluster, name: str, count: int) -> None:
    put(made, group(f"in-{name}").queue(name), *pod(f"in-{name}").gang(f"in-{name}").cpu(1).times(count))


DESERVING = [queue("old").deserves(cpu=1), queue("new").deserves(cpu=1)]


def test_what_is_lent_goes_first_to_the_queue_that_had_less_of_it() -> None:
    made = a_day_of("old", *DESERVING)
    for number in range(2, 8):
        made.remove("Pod", f"default/old-{number}")
    asks(made, "old", 8)
    asks(made, "new", 8)
    assert per_job(_outcome(made)) == {"in-new": 7, "in-old": 1}


def test_a_queue_below_what_it_deserves_goes_before_whatever_it_used() -> None:
    """It could take it back by reclaim, and who had got it would be evicted."""
    made = cluster(node("n").cpu(2), DESERVING, *group("a").queue("old").pods(2, cpu=1))
    advance(made, cycle_on(made, BY_QUEUES), NOW)
    made.clock = NOW + 86400
    for number in range(2):
        made.remove("Pod", f"default/a-{number}")
    asks(made, "old", 2)
    asks(made, "new", 2)
    assert per_job(_outcome(made)) == {"in-new": 1, "in-old": 1}


def test_in_a_tree_branches_are_compared() -> None:
    inner = [queue("root"), queue("left").deserves(cpu=1), queue("right").deserves(cpu=1)]
    leaves = [queue(name).parent(parent).deserves(cpu=1) for name, parent in [("old", "left"), ("l", "left"), ("new", "right")]]
    made = a_day_of("old", *inner, *leaves, policy=IN_TREES)
    asks(made, "l", 2)
    asks(made, "new", 3)
    assert per_job(_outcome(made, IN_TREES)) == {"in-new": 2}


def _outcome(made: Cluster, policy: Policy = BY_QUEUES) -> dict[str, Any]:
    return {"binds": {bind.task.key: bind.node for bind in cycle_on(made, policy, made.clock).binds}}


# -- what it is for


class Played:
    """Eight GPUs, and two users or queues with jobs on one: `old` has one every other minute, `new` does from `late` hours on."""

    def __init__(self, folder: Path, plugin: str, late: int, end: int, by: str = "queue", run: str = "16m", seed: int = 0) -> None:
        jobs = [
            f"- {{name: {name}, arrivals: {{at: [{', '.join(f'{minute}m' for minute in range(60 * begin, 60 * end, 2))}]}}, "
            f"pods: 1, run: {run}, request: {{nvidia.com/gpu: 1}}, {by}: {name}}}"
            for name, begin in [("old", 0), ("new", late)]
        ]
        queues = "queues: {old: {deserved: {nvidia.com/gpu: 1}}, new: {deserved: {nvidia.com/gpu: 1}}}"
        page, policy = folder / "page.yaml", folder / "page.conf"
        page.write_text("\n".join(["nodes: 1x8gpu", queues, "jobs:", *jobs, ""]))
        policy.write_text(f"actions: allocate\ntiers:\n- plugins: [{{name: gang}}, {plugin}, {{name: predicates}}]\n")
        self._by, self._end = by, float(end)
        self._rows = played(Source("yaml", str(page)), str(policy), habits=Habits(until=3600.0 * end), seed=seed)[1]

    def used(self, whose: str, begin: float = 0, end: float = inf) -> float:
        """GPU-hours between two hours."""
        lives = [(row["start"], row["end"]) for row in self._rows if row[self._by] == whose and row["start"] is not None]
        last = min(end, self._end)
        return sum(max(0.0, min(last if to is None else to / 3600, last) - max(since / 3600, begin)) for since, to in lives)

    def part(self, begin: float, end: float) -> float:
        """Of what both used, that of `new`."""
        new = self.used("new", begin, end)
        return new / (new + self.used("old", begin, end))


@pytest.mark.parametrize(("by", "name"), [("user", "drf"), ("queue", "capacity")])
def test_a_newcomer_is_ahead_until_they_are_even(tmp_path: Path, by: str, name: str) -> None:
    """One has had everything for four hours. From then on the other has half; where the past counts, first more, and then half."""
    without = Played(tmp_path, f"{{name: {name}}}", 4, 8, by)
    past = Played(tmp_path, f"{{name: {name}, arguments: {{usage.halfLife: 1h}}}}", 4, 8, by)
    assert (without.part(0, 4), past.part(0, 4)) == (0, 0)
    assert without.part(4, 5) < 0.5 and past.part(4, 5) > 0.65
    assert past.part(7, 8) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_of_a_head_start_all_is_made_up_for_but_what_is_forgotten(tmp_path: Path, seed: int) -> None:
    """A long half-life and a great weight: little is forgotten meanwhile. What is left is two GPUs for an hour."""
    arguments = "arguments: {usage.halfLife: 48h, usage.weight: 100}"
    past = Played(tmp_path, f"{{name: capacity, {arguments}}}", 2, 8, run="{uniform: [5m, 27m]}", seed=seed)
    head = past.used("old", 0, 2)
    assert head > 13
    assert past.used("old") - past.used("new") == pytest.approx(0, abs=2)


def test_a_job_that_ended_while_nobody_waited_ended_then(tmp_path: Path) -> None:
    """Ann's ended after the first hour; the next cycle is that of Bob's first job, 18 h later."""
    jobs = [
        "{name: a, arrivals: {at: [0h]}, run: 1h, user: ann}",
        "{name: b, arrivals: {at: [19h]}, run: 30m, user: bob}",
        "{name: c, arrivals: {at: [20h]}, run: 1h, user: bob}",
        "{name: d, arrivals: {at: [20h]}, run: 1h, user: ann}",
    ]
    (tmp_path / "page.yaml").write_text(
        "nodes: 1x1gpu\njobs:\n" + "".join(f"- {each[:-1]}, pods: 1, request: {{nvidia.com/gpu: 1}}}}\n" for each in jobs)
    )
    (tmp_path / "page.conf").write_text(f"actions: allocate\ntiers:\n- plugins: [{{name: gang}}, {plugin('drf', arguments=HALF_LIFE)}]\n")
    rows = played(Source("yaml", str(tmp_path / "page.yaml")), str(tmp_path / "page.conf"))[1]
    assert {row["job"][0]: row["start"] / 3600 for row in rows} == {"a": 0, "b": 19, "d": 20, "c": 21}


# -- what is said


def test_why_says_who_used_more_before() -> None:
    """They hold as much now."""
    made = a_day_of("old", *DESERVING)
    for number in range(2, 6):
        made.remove("Pod", f"default/old-{number}")
    put(made, group("runs").queue("new"), *pod("runs").gang("runs").on("n").cpu(1).times(2))
    asks(made, "old", 4)
    asks(made, "new", 4)
    told = why(made, BY_QUEUES, made.clock, "job/in-old").headline
    before = "queue new is served before queue old: queue old used more before: on average 800% of what it deserves, queue new 0%"
    assert (
        told is not None
        and told.text == f"it would start if it were alone, but podgroup/in-new goes first ({before}) and leaves too little room"
    )


@pytest.mark.parametrize("policy", [BY_QUEUES, conf("gang", "capacity, predicates", actions="allocate")], ids=["past", "no past"])
def test_why_says_nothing_of_the_past_where_the_present_decides(policy: Policy) -> None:
    made = a_day_of("old", *DESERVING)
    asks(made, "old", 2)
    asks(made, "new", 2)
    told = why(made, policy, made.clock, "job/in-old").headline
    assert told is not None and "(queue new is served before queue old) and leaves too little" in told.text


def test_nor_of_users() -> None:
    made = cluster(node("n").cpu(3), group("ann", "ann"), pod("a").gang("ann").on("n").cpu(1), pod("more").gang("ann").cpu(2))
    put(made, group("bob", "bob").created("2026-01-02T00:00:00Z"), pod("bob").gang("bob").cpu(2))
    with opened(made, BY_USERS) as session:
        drf, (ann, bob) = session.plugin("drf"), (made.jobs[f"default/{name}"] for name in ("ann", "bob"))
        assert drf.why_before(bob, ann) == ""


def test_why_says_whose_user_used_more_before() -> None:
    made = cluster(node("n").cpu(1), group("gone", "ann"), pod("gone").gang("gone").cpu(1))
    advance(made, cycle_on(made, BY_USERS), NOW)
    made.clock = NOW + HALF_LIFE_S
    made.remove("Pod", "default/gone")
    made.remove("PodGroup", "default/gone")
    for name in ("ann", "bob"):
        put(made, group(name, name), pod(name).gang(name).cpu(1))
    told = why(made, BY_USERS, made.clock, "job/ann").headline
    before = "by plugin drf: user ann used more before: on average 50% of the cluster, user bob 0%"
    assert (
        told is not None
        and told.text == f"it would start if it were alone, but podgroup/bob goes first ({before}) and leaves too little room"
    )


def test_the_order_is_made_anew_now_and_then() -> None:
    """A cycle that changed nothing holds for a hundredth of the half-life; without one until something happens."""
    for policy, holds_s in [(BY_USERS, 36.0), (BY_QUEUES, 36.0), (conf("gang", "drf, capacity, predicates", actions="allocate"), inf)]:
        made = cluster(node("n").cpu(1), *group("a").pods(1, cpu=2))
        cycle(made, policy, NOW)
        first = cycle(made, policy, NOW)
        assert cycle(made, policy, NOW + 35.9) is first
        assert (cycle(made, policy, NOW + 36.1) is first) == (holds_s > 36.1)


@pytest.mark.parametrize("wrong", ["1d", "-1h", "60", ""])
def test_what_is_no_half_life_is_told_and_counts_as_none(wrong: str) -> None:
    text = f"actions: allocate\ntiers:\n- plugins:\n  - name: drf\n    arguments: {{usage.halfLife: {json.dumps(wrong)}}}\n"
    policy, warnings = read_policy(text, PLUGINS)
    told = f'argument "usage.halfLife" of plugin "drf" is {wrong!r}, which is not a duration such as 90m or 24h'
    assert [each.partition("warning: ")[2] for each in warnings] == [f"{told} (the default applies, as in Volcano)"]
    assert policy.tiers[0][0].args.half_life == 0
