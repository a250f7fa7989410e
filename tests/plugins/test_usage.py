"""usage: nodes measured to be busy are refused, idle ones preferred, and pods not yet measured are counted by an estimate."""

from __future__ import annotations

from typing import Any

import pytest
from scene import Measured, Thing, cycle_on, only, opened

from pumice.api.times import rfc3339
from pumice.scheduler.framework.policy import Policy
from pumice.testing import NOW, Builder, PodBuilder, cluster, node, pod, podgroup, refusals, scores

GI = 2.0**30


def rules(weight: int = 1, **arguments: Any) -> Policy:
    return only("usage", {"usage.weight": weight} | {key.replace("__", "."): value for key, value in arguments.items()})


def three(*things: Builder) -> tuple[Builder, ...]:
    return (
        node("a").has(cpu=10, memory="10Gi"),
        node("b").has(cpu=10, memory="10Gi"),
        node("c").has(cpu=8, memory="16Gi"),
        podgroup("g").admitted(),
        pod("p").gang("g").asks(cpu=1, memory="1Gi"),
        *things,
    )


@pytest.mark.parametrize(
    ("thresholds", "refused"),
    [
        ({}, ["a"]),
        ({"cpu": 81}, []),
        ({"cpu": 300}, ["a"]),  # no percentage: the default applies
        ({"cpu": 101, "mem": -1}, ["a"]),
        ({"cpu": 0}, ["a", "b"]),
        ({"cpu": 100}, []),
        ({"cpu": 90, "mem": 30}, ["b"]),
        ({"CPUUsageAvg.5m": 95, "MEMUsageAvg.5m": 95}, []),
    ],
)
def test_nodes_above_a_threshold_are_refused(thresholds: Thing, refused: list[str]) -> None:
    world = Measured(a=(80.5, 10), b=(80, 31))
    session = opened(cluster(*three()), rules(thresholds=thresholds), world=world)
    assert sorted(refusals(session, "p")) == refused
    evaluation = session.evaluation(session.cluster.tasks["default/p"])
    assert [name for name in "abc" if not evaluation.resolvable[session.nodes.rows[name]]] == refused  # no eviction would help


def test_without_measurements_nobody_is_refused_and_all_score_alike() -> None:
    session = opened(cluster(*three()), rules())
    assert (refusals(session, "p"), scores(session, "p")) == ({}, {"a": 0, "b": 0, "c": 0})


def test_the_reason_says_which_resource() -> None:
    session = opened(cluster(*three()), rules(), world=Measured(a=(90, 90), b=(1, 90)))
    assert refusals(session, "p") == {"a": "node cpu usage exceeds the threshold", "b": "node memory usage exceeds the threshold"}


def test_a_measurement_older_than_five_minutes_tells_nothing() -> None:
    session = opened(cluster(*three()), rules(), world=Measured(age_s=300, a=(90, 10)))
    assert refusals(session, "p") == {"a": "node cpu usage exceeds the threshold"}
    session = opened(cluster(*three()), rules(), world=Measured(age_s=301, a=(90, 10), b=(10, 10)))
    assert scores(session, "p") == {"a": 0, "b": 0, "c": 0}


@pytest.mark.parametrize(
    ("arguments", "a"),
    [
        ({}, 70.0),  # (1 - 0.2 + 1 - 0.4) / 2
        ({"weight": 5}, 350.0),
        ({"weight": -1}, 350.0),
        ({"weight": 0}, 0.0),
        ({"cpu__weight": -3, "memory__weight": 3}, 65.0),
        ({"cpu__weight": 3}, 75.0),
        ({"memory__weight": 0}, 80.0),
        ({"cpu__weight": -3, "memory__weight": -3}, 70.0),
        ({"cpu__weight": 0, "memory__weight": 0}, 0.0),
    ],
)
def test_the_score_is_the_weighed_idleness(arguments: Thing, a: float) -> None:
    session = opened(cluster(*three()), rules(**arguments), world=Measured(a=(20, 40)))
    assert scores(session, "p") == pytest.approx({"a": a, "b": 0, "c": 0})


def shadow(session: Any) -> tuple[float, float]:
    """What node a is thought to carry beyond its measurement."""
    load = session.plugin("usage")._load
    load.refresh()
    cpu, memory = load.shadow[:, session.nodes.rows["a"]]
    return float(cpu), float(memory)


def limited(name: str, cpu_limit: str) -> PodBuilder:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": cpu_limit}}
    return pod(name).gang("g").on("a").containers({"name": "m", "resources": resources}).phase("Pending")


@pytest.mark.parametrize(
    ("placed", "estimator", "cpu_milli", "memory_gi"),
    [
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending"), {}, 700, 0.7),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending"), {"request_ratio": 0.5}, 500, 0.5),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending"), {"request_ratio": 2}, 700, 0.7),
        (limited("x", "3"), {"burst_ratio": 0.5}, 1700, 0.7),
        (limited("x", "1"), {"request_ratio": 1, "risk_threshold": 0, "risk_factor": 2}, 1000, 2.0),  # never above its limit
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending"), {"risk_threshold": 0.2, "risk_factor": 2}, 1400, 0.7),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending"), {"risk_threshold": 0.2, "risk_factor": 0.5}, 840, 0.7),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending"), {"risk_threshold": 0.2, "risk_factor": 1}, 700, 0.7),
        (pod("x").gang("g").on("a").phase("Pending"), {}, 250, 200 / 1024),
        (pod("x").gang("g").on("a").phase("Pending"), {"be_cpu": 100, "be_mem": 512}, 100, 0.5),
        (pod("x").gang("g").on("a").phase("Pending"), {"be_cpu": "1", "be_mem": "1Gi"}, 1000, 1.0),
        (pod("x").gang("g").on("a").phase("Pending"), {"be_cpu": "one", "be_mem": "two"}, 250, 200 / 1024),
    ],
)
def test_a_pod_that_cannot_be_measured_yet_is_estimated(placed: PodBuilder, estimator: Thing, cpu_milli: float, memory_gi: float) -> None:
    session = opened(cluster(*three(placed)), rules(estimator=estimator), world=Measured(a=(20, 10)))
    assert shadow(session) == pytest.approx((cpu_milli, memory_gi * GI))


@pytest.mark.parametrize(
    ("placed", "counts"),
    [
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending"), True),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").started(rfc3339(NOW - 29)), True),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").started(rfc3339(NOW - 30)), False),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi"), False),
        (pod("x").gang("g").on("b").asks(cpu=1, memory="1Gi").phase("Pending"), False),
        (pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Succeeded"), False),
    ],
)
def test_only_young_pods_cast_a_shadow(placed: PodBuilder, counts: bool) -> None:
    session = opened(cluster(*three(placed)), rules(), world=Measured(a=(20, 10)))
    assert (shadow(session)[0] > 0) is counts


def test_what_is_not_measured_yet_adds_to_the_load_that_makes_more_of_the_next() -> None:
    """Measured are 20 % of the cpu; the first pod is thought to take 7 % more, which makes the node a risk for the second."""
    unseen = [pod(name).gang("g").on("a").asks(cpu=1, memory="1Gi").phase("Pending") for name in "xy"]
    conf = rules(estimator={"risk_threshold": 0.25, "risk_factor": 2})
    session = opened(cluster(*three(*unseen)), conf, world=Measured(a=(20, 10)))
    assert shadow(session) == pytest.approx((700 + 1400, 1.4 * GI))


def test_the_measuring_interval_is_the_configured_one() -> None:
    conf = only("usage", {"usage.weight": 1}, metrics={"type": "prometheus", "interval": "2m"})
    session = opened(
        cluster(*three(pod("x").gang("g").on("a").asks(cpu=1, memory="1Gi").started(rfc3339(NOW - 100)))), conf, world=Measured(a=(20, 10))
    )
    assert shadow(session)[0] > 0


def test_what_the_session_places_and_takes_back_counts_at_once() -> None:
    session = opened(cluster(*three()), rules(), world=Measured(a=(20, 10), b=(30, 20)))
    task, row = session.cluster.tasks["default/p"], session.nodes.rows["a"]
    before = scores(session, "p")
    with session.statement() as statement:
        statement.allocate(task, row)
        assert shadow(session) == (700, pytest.approx(0.7 * GI))
        assert scores(session, "p")["a"] == pytest.approx(before["a"] - 7)
    assert shadow(session) == (0, 0)
    assert scores(session, "p") == before


def test_a_node_that_has_nothing_to_give_is_taken_as_measured() -> None:
    bare = node("z").has(cpu=0, memory=0)
    made = cluster(bare, podgroup("g").admitted(), pod("p").gang("g"), pod("q").gang("g").on("z").phase("Pending"))
    session = opened(made, rules(), world=Measured(z=(50, 50)))
    assert scores(session, "p") == {"z": 50}


def test_young_pods_spread_over_idle_nodes() -> None:
    nodes = [node(name).has(cpu=10, memory="10Gi") for name in "ab"]
    made = cluster(*nodes, podgroup("g", 4).admitted(), *(pod(f"p-x-{i}").gang("g").asks(cpu=1, memory="1Gi") for i in range(4)))
    placed = cycle_on(made, rules(), world=Measured(a=(10, 10), b=(10, 10))).binds
    assert [bind.node for bind in placed] == ["a", "b", "a", "b"]
