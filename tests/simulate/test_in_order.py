"""Who may go before the first that waits: jobs that no queueing trace has."""

from __future__ import annotations

from pathlib import Path

import pytest

from pumice.api.annotations import ESTIMATE
from pumice.scheduler.actions.in_order import InOrder, InOrderArgs
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.policy import PluginOption, Policy
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.packing.rule import PackingArgs
from pumice.scheduler.plugins.volcano.dot_product import DotProduct
from pumice.scheduler.registry import PLUGINS
from pumice.testing import PodBuilder, cluster, node, pod, podgroup
from pumice.testing.scene import NOW
from tests.simulate.playing import played, starts, swf

EASY, CONSERVATIVE = InOrderArgs("easy"), InOrderArgs("conservative")
BOTH = pytest.mark.parametrize("args", [EASY, CONSERVATIVE], ids=["easy", "conservative"])


def put(made: Cluster, name: str, estimate: str, *pods: PodBuilder, least: int = 1) -> None:
    """A job that comes after those that are there."""
    made.put(*podgroup(name, least).annotation(ESTIMATE, estimate).created(f"2025-12-31T00:00:{len(made.jobs):02}Z").build())
    for each in pods:
        made.put(*each.gang(name).build())


def started(made: Cluster, args: InOrderArgs, *more: PluginOption) -> list[str]:
    policy = Policy((InOrder(args),), ((PluginOption(PLUGINS["gang"]), PluginOption(PLUGINS["predicates"]), *more),))
    return [bind.task.name for bind in cycle(made, policy, NOW).binds]


@BOTH
def test_who_waits_for_a_leaving_pod_is_not_overtaken(args: InOrderArgs) -> None:
    """It is expected to be gone in a second: nothing that runs longer may take the room beside it."""
    made = cluster(node("n").cpu(4), pod("leaves").cpu(2).on("n").leaving())
    put(made, "first", "1m", pod("first").cpu(4))
    put(made, "long", "1m", pod("long").cpu(1))
    put(made, "short", "1s", pod("short").cpu(1))
    assert started(made, args) == ["short"]


@BOTH
def test_who_can_never_start_holds_nobody_up(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(4))
    put(made, "never", "1m", pod("never").cpu(5))
    put(made, "later", "1m", pod("later").cpu(4))
    assert started(made, args) == ["later"]


@BOTH
def test_a_job_goes_before_with_the_pods_that_it_needs(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(4), pod("held").cpu(1).on("n"))
    put(made, "first", "1m", pod("first").cpu(4))
    put(made, "later", "1m", *pod("later").cpu(1).times(3), least=2)
    assert started(made, args) == ["later-0", "later-1"]


@BOTH
def test_neither_half_a_gang_nor_a_pod_whose_claim_is_missing_goes_before(args: InOrderArgs) -> None:
    made = cluster(node("n").cpu(4), pod("held").cpu(1).on("n"))
    put(made, "first", "1m", pod("first").cpu(4))
    gated = pod("gated").cpu(1).having("spec", "schedulingGates", value=[{"name": "example.com/wait"}])
    put(made, "half-gated", "1m", pod("free").cpu(1), gated, least=2)
    chooses_nodes = PluginOption(DotProduct, PackingArgs("best-fit"))  # a plugin that is not told of refusals
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}
    put(made, "claims", "1m", pod("claims").cpu(1).having("spec", "volumes", value=[volume]))
    put(made, "later", "1m", pod("later").cpu(1))
    assert started(made, args, chooses_nodes) == ["later"]


@pytest.mark.parametrize(("at", "end"), [(50, 110), (109, 110), (110, 230), (229, 230), (230, 470)])
@pytest.mark.parametrize("policy", ["EASY", "conservative"])
def test_what_outlives_its_estimate_is_given_twice_as_long_each_time(tmp_path: Path, policy: str, at: int, end: int) -> None:
    """Estimated at 50 s, the first is next expected to end at 110, then at 230, then at 470 s; the third starts if it ends before."""
    jobs = [(0.0, 3, 600.0), (1.0, 4, 5.0), (float(at), 1, 1.0)]
    for estimate, start in ((end - at, at), (end - at + 1, 605)):
        source = swf(tmp_path / "w.swf", jobs, [50, 5, estimate])
        assert starts(played(source, policy)[1]) == [0, 600, start]
