"""rescheduling: the least important pods of busy nodes move while idle nodes have room."""

from __future__ import annotations

import pytest
from scene import Measured, Thing, cycle_on, only

from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import World
from pumice.scheduler.model.cluster import Cluster
from pumice.testing import NOW, PodBuilder, cluster, node, pod, podgroup

LATER = NOW + 301
MODEST = {"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 50, "memory": 60}}


def rules(params: Thing | None = None, **arguments: object) -> Policy:
    strategy = {"name": "lowNodeUtilization", "params": MODEST if params is None else params}
    return only("rescheduling", {"strategies": [strategy]} | arguments, "shuffle")


def busy_and_idle(*pods: PodBuilder, idle_cpu: str = "10") -> Cluster:
    nodes = [node("busy").has(cpu=10, memory="10Gi"), node("idle").has(cpu=idle_cpu, memory="10Gi"), node("unmeasured").cpu(8)]
    given = pods or tuple(pod(f"p{i}").gang("g").on("busy").cpu(2) for i in range(4))
    return cluster(*nodes, podgroup("g").phase("Running"), *given)


def measured(**nodes: tuple[float, float]) -> Measured:
    world = Measured(**(nodes or {"busy": (80, 40), "idle": (10, 10)}))
    world.at = LATER
    return world


def moved(made: Cluster, conf: Policy, world: World) -> list[str]:
    assert cycle_on(made, conf, NOW, world).evictions == []  # the first session only starts the clock
    return [eviction.task.name for eviction in cycle_on(made, conf, LATER, world).evictions]


def test_pods_move_until_their_node_is_below_its_target() -> None:
    assert moved(busy_and_idle(), rules(), measured()) == ["p0", "p1"]


def test_pods_move_while_idle_nodes_have_room() -> None:
    assert moved(busy_and_idle(idle_cpu="1"), rules(), measured()) == ["p0"]


@pytest.mark.parametrize(
    "usage",
    [
        {"busy": (80, 40), "idle": (30, 10)},  # nobody is idle
        {"busy": (10, 10), "idle": (10, 10)},  # all are
        {"busy": (40, 40), "idle": (10, 10)},  # nobody is busy
        {"busy": (80, 40)},
        {"unmeasured": (10, 10)},
    ],
)
def test_nothing_moves_unless_some_are_busy_and_some_idle(usage: dict[str, tuple[float, float]]) -> None:
    assert moved(busy_and_idle(), rules(), measured(**usage)) == []


@pytest.mark.parametrize(
    ("busy", "idle", "gone"),
    [
        ((75, 40), (10, 10), ["p0", "p1"]),  # one pod less, and it is at its target, not below
        ((75, 40), (20, 10), []),  # at the threshold is not idle
        ((50, 60), (10, 10), []),  # at the target is not busy
        ((100, 40), (0, 10), ["p0", "p1"]),  # then there is no room left, though it is still busy
    ],
)
def test_limits_are_met_to_the_point(busy: tuple[float, float], idle: tuple[float, float], gone: list[str]) -> None:
    pods = [pod(f"p{i}").gang("g").on("busy").cpu("2500m") for i in range(4)]
    assert moved(busy_and_idle(*pods), rules(), measured(busy=busy, idle=idle)) == gone


def test_by_default_no_node_is_busy() -> None:
    assert moved(busy_and_idle(), only("rescheduling", {}, "shuffle"), measured(busy=(100, 100), idle=(0, 0))) == []


def test_fractions_of_a_percent_are_understood_and_unknown_strategies_skipped() -> None:
    params = {"thresholds": {"cpu": 10.5}, "targetThresholds": {"cpu": 79.5, "pods": 50}}
    assert moved(busy_and_idle(), rules(params), measured()) == ["p0"]
    conf = only("rescheduling", {"strategies": [{"name": "highNodeUtilization"}]}, "shuffle")
    assert moved(busy_and_idle(), conf, measured()) == []


def test_a_cordoned_node_is_not_idle() -> None:
    made = busy_and_idle()
    made.nodes.cordoned[made.nodes.rows["idle"]] = True
    assert moved(made, rules(), measured()) == []


def test_old_measurements_move_nothing() -> None:
    world = measured()
    world.at = NOW
    assert moved(busy_and_idle(), rules(), world) == []


def important(name: str, priority: int | None, requests: Thing, limits: Thing) -> Thing:
    thing = pod(name).gang("g").on("busy").containers({"name": "m", "resources": {"requests": requests, "limits": limits}})
    return thing if priority is None else thing.priority(priority)


def test_the_least_important_pods_move_first() -> None:
    full = {"cpu": "1", "memory": "1Gi"}
    pods = [
        important("high", 10, {}, {}),
        important("guaranteed", 5, full, full),
        important("burstable", 5, full, {}),
        important("best-effort", 5, {}, {}),
        important("unranked", None, full, full),
    ]
    params = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 1, "memory": 1}}
    world = measured(busy=(80, 80), idle=(0, 0))
    world.nodes["idle"] = (-500, -500)  # room for all
    order = ["unranked", "best-effort", "burstable", "guaranteed", "high"]
    assert moved(busy_and_idle(*pods), rules(params), world) == order


def test_the_busiest_node_is_relieved_first_and_only_movable_pods_count() -> None:
    nodes = [node(name).has(cpu=10, memory="10Gi") for name in ("warm", "hot", "idle")]
    stray = pod("stray").on("hot").cpu(4)
    made = cluster(*nodes, podgroup("g").phase("Running"), pod("w").gang("g").on("warm").cpu(3), stray, pod("h").gang("g").on("hot").cpu(3))
    params = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
    assert moved(made, rules(params), measured(warm=(70, 10), hot=(90, 10), idle=(0, 0))) == ["h", "w"]


@pytest.mark.parametrize(("interval", "seconds"), [("10s", 10), ("5m", 300)])
def test_a_run_is_made_once_in_an_interval(interval: str, seconds: int) -> None:
    made, conf = busy_and_idle(), rules(interval=interval)
    world = Measured(busy=(60, 40), idle=(10, 10))
    runs = []
    for after in (0, seconds, seconds + 1, seconds + 2, 2 * seconds + 2):
        world.at = NOW + after
        runs.append(len(cycle_on(made, conf, NOW + after, world).evictions))
    assert runs == [0, 0, 1, 0, 1]
