"""lost-work: whoever loses least goes first, nobody too soon, and no job too often."""

from __future__ import annotations

import pytest

from pumice.api.annotations import CHECKPOINT
from pumice.api.times import Duration, rfc3339
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.volcano.lost_work import LostWork, LostWorkArgs
from pumice.testing import cluster, node, pod, podgroup, priority_class
from pumice.testing.scene import NOW, policy

HOUR = 3600.0


def decides(least: float = 0, most: int = 0) -> Policy:
    return policy("preempt", ["priority", "gang", "predicates", PluginOption(LostWork, LostWorkArgs(Duration(least), most))])


def runs(made: Cluster, name: str, gpus: int, since: float | None, checkpoint: str = "") -> None:
    group = podgroup(name, 0).phase("Running")
    made.put(*(group.annotation(CHECKPOINT, checkpoint) if checkpoint else group).build())
    running = pod(name).cpu(1).gpu(gpus).gang(name).on("n")
    made.put(*(running if since is None else running.having("status", "startTime", value=rfc3339(NOW - since))).build())


def contested(*, gpus: int = 8) -> Cluster:
    """A node where nothing is left, and an urgent pod that asks for a GPU."""
    made = cluster(priority_class("high", 10), node("n").cpu(64).gpu(gpus), podgroup("high").priority_class("high").phase("Inqueue"))
    made.put(*pod("high").gpu(1).gang("high").build())
    return made


def evicted(made: Cluster, by: Policy, now: float = NOW) -> list[str]:
    return [eviction.task.name for eviction in cycle(made, by, now).evictions]


@pytest.mark.parametrize(
    ("first", "second", "goes"),
    [
        ((4, HOUR, ""), (4, 2 * HOUR, ""), "first"),
        ((4, 2 * HOUR, ""), (4, HOUR, ""), "second"),
        ((4, 2 * HOUR, "59m"), (4, HOUR, ""), "first"),
        ((4, 2 * HOUR, "nonsense"), (4, HOUR, ""), "second"),
        ((6, HOUR, ""), (2, 2 * HOUR, ""), "second"),
        ((4, HOUR, ""), (4, None, ""), "second"),
    ],
)
def test_whoever_loses_least_goes_first(first: tuple[int, float, str], second: tuple[int, float, str], goes: str) -> None:
    made = contested()
    runs(made, "first", *first)
    runs(made, "second", *second)
    assert evicted(made, decides()) == [goes]


def test_nobody_goes_before_the_minimum_run_time() -> None:
    made = contested()
    runs(made, "young", 4, HOUR - 1)
    runs(made, "old", 4, 2 * HOUR)
    assert evicted(made, decides(HOUR)) == ["old"]


def test_no_job_goes_more_often_than_it_is_told() -> None:
    by, made = decides(most=1), contested(gpus=4)
    for now, expected in ((NOW, ["only"]), (NOW + HOUR - 1, []), (NOW + HOUR, ["only"])):
        runs(made, "only", 4, 60.0)
        assert evicted(made, by, now) == expected
        made.remove("Pod", "default/only")


def test_a_pod_of_no_job_counts_from_its_start() -> None:
    """Of kube-scheduler's: nobody's victim here, but asked about."""
    made = contested()
    made.put(*pod("plain").gpu(1).on("n").build())
    with_plugin = policy("preempt", [PluginOption(LostWork, LostWorkArgs(evictions_per_hour=1))])
    with Session(made, with_plugin, NOW) as session:
        plugin = session.plugin("lost-work")
        assert plugin.preemptable(None, [made.tasks["default/plain"]]) == [made.tasks["default/plain"]]
        assert plugin.task_order(made.tasks["default/plain"]) == 0.0
