"""tdm: windows of time, who may stand in a zone, and how many must go when its time is over."""

from __future__ import annotations

from datetime import date

import pytest
from scene import Thing, binds, cycle_on, only, opened

from pumice.api.times import instant
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.plugins.volcano.tdm import UTC, Window, time_zone, window
from pumice.testing import NOW, NodeBuilder, PodBuilder, cluster, node, pod, podgroup, refusals, scores, task_of

ZONE = "volcano.sh/revocable-zone"
OPEN, OVER = "0:00-0:00", "1:00-1:01"


def rules(daily: str = OPEN, actions: str = "allocate", **arguments: str) -> Policy:
    return only("tdm", {"tdm.revocable-zone.rz": daily} | arguments, actions)


def lent(name: str = "r") -> NodeBuilder:
    return node(name).cpu(8).label(ZONE, "rz")


def revocable(name: str, on: str = "", of: str = "off", **more: str) -> PodBuilder:
    return pod(name).gang(of).on(on).cpu(1).annotations({"volcano.sh/preemptable": "true"} | more)


@pytest.mark.parametrize(
    ("text", "length_s"),
    [
        ("00:00-01:00", 3600),
        ("1:00-0:00", 82800),
        ("23:59-23:59", 86400),
        (" 22:00-06:00 ", 28800),
        ("00:00_01:00", None),
        ("0:00", None),
        ("1:0-0:0", None),
        ("63:59-1:00", None),
        ("1:00-1:60", None),
        ("", None),
    ],
)
def test_a_window_is_as_long_as_it_says_or_none_at_all(text: str, length_s: int | None) -> None:
    daily = window(text)
    if length_s is None:
        assert daily is None
    else:
        assert daily is not None
        begin, end = daily.on(date(2026, 1, 1), UTC)
        assert end - begin == length_s


@pytest.mark.parametrize(
    ("text", "clock", "inside"),
    [
        ("08:00-18:00", "08:00:00", True),
        ("08:00-18:00", "18:00:00", True),
        ("08:00-18:00", "18:00:01", False),
        ("08:00-18:00", "07:59:59", False),
        ("22:00-06:00", "23:00:00", True),
        ("22:00-06:00", "03:00:00", True),  # yesterday's window
        ("22:00-06:00", "06:00:01", False),
        ("12:00-12:00", "11:59:00", True),
    ],
)
def test_a_window_is_open_from_its_first_to_its_last_second(text: str, clock: str, inside: bool) -> None:
    daily = window(text)
    assert daily is not None
    assert daily.contains(instant(f"2026-01-01T{clock}Z"), UTC) is inside


def test_the_time_zone_is_a_choice() -> None:
    eight_to_nine = window("08:00-09:00")
    assert isinstance(eight_to_nine, Window)
    at = instant("2026-01-01T00:30:00Z")
    assert eight_to_nine.contains(at, time_zone("Asia/Shanghai"))
    assert not eight_to_nine.contains(at, time_zone("UTC"))
    assert time_zone("Nowhere/Atall") is UTC
    assert time_zone("../etc") is UTC


def test_in_its_time_a_zone_takes_revocable_pods_and_is_preferred_by_them() -> None:
    made = cluster(
        lent(),
        node("n").cpu(8),
        node("empty").cpu(8).label(ZONE, ""),
        podgroup("off").admitted(),
        podgroup("on").admitted(),
        revocable("a"),
        pod("b").gang("on").cpu(1),
    )
    session = opened(made, rules())
    assert scores(session, "a") == {"r": 100.0, "n": 0.0, "empty": 0.0}
    assert refusals(session, "b") == {"r": "task is not allow to dispatch to revocable node"}
    assert not session.evaluation(made.tasks["default/b"]).resolvable[0]
    assert scores(session, "b") == {"n": 0.0, "empty": 0.0}


def test_out_of_its_time_or_without_a_window_a_zone_takes_nobody() -> None:
    made = cluster(lent(), node("other").cpu(8).label(ZONE, "unheard-of"), podgroup("off").admitted(), revocable("a"))
    for daily in (OVER, "never"):
        session = opened(made, rules(daily))
        assert refusals(session, "a") == dict.fromkeys(["r", "other"], "node(s) are in a revocable zone that is not active now")
        assert not session.evaluation(made.tasks["default/a"]).resolvable.any()


def test_jobs_that_keep_their_pods_come_first_and_only_they_starve() -> None:
    marked = {"volcano.sh/preemptable": "true"}
    made = cluster(
        node("n").cpu(1),
        podgroup("off").annotations(marked).admitted(),
        podgroup("on").admitted(),
        pod("a").gang("off").cpu(1),
        pod("b").gang("on").cpu(1),
    )
    session = opened(made, rules())
    tdm = session.plugin("tdm")
    off, on = made.jobs["default/off"], made.jobs["default/on"]
    assert tdm.job_order(on) < tdm.job_order(off)
    assert [tdm.job_starving(off), tdm.job_starving(on)] == [False, True]
    assert tdm.job_pipelined(on) is Vote.REJECT
    assert binds(cycle_on(made, rules())) == {"b": "n"}
    assert tdm.job_pipelined(on) is Vote.PERMIT
    assert not tdm.job_starving(on)


def budget(key: str, amount: str) -> Thing:
    return {f"volcano.sh/jdb-{key}": amount}


@pytest.mark.parametrize(
    ("annotations", "gone"),
    [
        ({}, 1),
        (budget("max-unavailable", "1"), 0),  # one is not running already
        (budget("max-unavailable", "3"), 2),
        (budget("max-unavailable", "30%"), 1),  # of 5, rounded up: 2
        (budget("max-unavailable", "100%"), 4),
        (budget("min-available", "1"), 3),
        (budget("min-available", "50%"), 1),  # of 5, rounded up: 3
        (budget("min-available", "4"), 0),
        (budget("min-available", "5"), 0),  # already below its floor
        (budget("min-available", "many"), 0),
        (budget("min-available", "9" * 5000), 0),
        (budget("max-unavailable", "-3"), 0),
        (budget("min-available", "4") | budget("max-unavailable", "100%"), 0),
    ],
)
def test_when_the_time_is_over_each_job_loses_what_its_budget_allows(annotations: Thing, gone: int) -> None:
    running = [revocable(f"p{i}", on="r") for i in range(4)]
    made = cluster(lent(), node("n").cpu(8), podgroup("off").annotations(annotations).phase("Running"), *running, revocable("waits"))
    decisions = cycle_on(made, rules(OVER, "shuffle"))
    assert [eviction.task.name for eviction in decisions.evictions] == [f"p{i}" for i in range(gone)]
    assert {eviction.action for eviction in decisions.evictions} <= {"shuffle"}


@pytest.mark.parametrize(("most", "gone"), [("1", 1), ("2", 2), ("67%", 2), ("66%", 2), ("33%", 1)])
def test_pods_that_have_ended_are_not_missed(most: str, gone: int) -> None:
    """Of the three, one has succeeded and two run: none is unavailable. Percentages are of all three, rounded up."""
    pods = [revocable("p0", "r"), revocable("p1", "r"), pod("done").gang("off").cpu(1).phase("Succeeded")]
    made = cluster(lent(), podgroup("off").annotations(budget("max-unavailable", most)).phase("Running"), *pods)
    assert len(cycle_on(made, rules(OVER, "shuffle")).evictions) == gone


def test_only_revocable_pods_of_zones_whose_time_is_over_go() -> None:
    kept = pod("kept").gang("off").on("r").cpu(1).preemptable(False)
    stray = revocable("stray", "r", of="")
    made = cluster(
        lent(),
        node("n").cpu(8),
        node("x").cpu(8).label(ZONE, "unknown"),
        podgroup("off").phase("Running"),
        kept,
        stray,
        revocable("elsewhere", "n"),
        revocable("u", "x"),
    )
    assert cycle_on(made, rules(OVER, "shuffle")).evictions == []


def test_one_budget_covers_all_zones_of_a_sweep() -> None:
    things = [
        lent("r1"),
        node("r2").cpu(8).label(ZONE, "rz2"),
        podgroup("off").phase("Running"),
        revocable("a", "r1"),
        revocable("b", "r2"),
    ]
    conf = rules(OVER, "shuffle", **{"tdm.revocable-zone.rz2": OVER})
    assert len(cycle_on(cluster(*things), conf).evictions) == 1


@pytest.mark.parametrize(("period", "second_sweep_s"), [("1m", 60), ("10s", 10)])
def test_a_sweep_is_made_once_in_a_period(period: str, second_sweep_s: int) -> None:
    made = cluster(lent(), podgroup("off").phase("Running"), *(revocable(f"p{i}", "r") for i in range(3)))
    conf = rules(OVER, "shuffle", **{"tdm.evict.period": period})
    gone = [len(cycle_on(made, conf, NOW + after).evictions) for after in (0, second_sweep_s - 1, second_sweep_s)]
    assert gone == [1, 0, 1]


def test_revocable_pods_outside_the_zones_make_way_for_others_only() -> None:
    ordinary = {"volcano.sh/preemptable": "false"}
    made = cluster(
        lent(),
        node("n").cpu(8),
        podgroup("off").annotations(budget("max-unavailable", "2")).admitted(),
        revocable("a", "n"),
        revocable("b", "n"),
        revocable("c", "n"),
        revocable("d", "r"),
        pod("fixed").gang("off").on("n").cpu(1).annotations(ordinary),
        pod("needy").gang("off").cpu(1).annotations(ordinary),
        revocable("greedy"),
    )
    tdm = opened(made, rules()).plugin("tdm")
    needy, greedy, *running = (task_of(made, name) for name in ("needy", "greedy", "d", "fixed", "a", "b", "c"))
    assert tdm.preemptable(greedy, running) is Vote.REJECT
    made.put(*pod("roaming").gang("off").cpu(1).annotations(ordinary | {ZONE: "*"}).build())
    assert tdm.preemptable(made.tasks["default/roaming"], running) is Vote.REJECT
    assert [tdm.eviction_cache_key(made.tasks[f"default/{name}"]) for name in ("needy", "greedy", "roaming")] == [False, True, True]
    assert tdm.preemptable(needy, running) == []  # three of the job are not running: its budget is used up
    made.jobs["default/off"].annotations.update(budget("max-unavailable", "5"))
    assert [task.name for task in tdm.preemptable(needy, running)] == ["a", "b"]
