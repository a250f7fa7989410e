"""kube-scheduler's metrics of groups, preemption and its queue: upstream's names and labels, and what is counted."""

from __future__ import annotations

from typing import Any

from pumice.live.scheduler.cycle_metrics import CycleTiming
from pumice.live.scheduler.kube_metrics import KubeMetrics
from pumice.live.scheduler.metrics import LiveMetrics
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.world import NOWHERE
from pumice.scheduler.kube.scheduling_queue import SchedulingQueue
from pumice.testing import NOW
from tests.kube_scheduler.native import TREES, group, member, policy, running, tree
from tests.kube_scheduler.stage import budget, cluster, existing, machine, waiting

NAMES = """
podgroup_schedule_attempts_total podgroup_scheduling_attempt_duration_seconds podgroup_scheduling_algorithm_duration_seconds
workload_preemption_attempts_total workload_preemption_victims preemption_victims preemption_workload_disruptions
preemption_evaluation_duration_seconds preemption_execution_duration_seconds preemption_pdb_violations_total
generated_placements_total placement_evaluations_total placement_evaluation_duration_seconds
framework_extension_point_duration_seconds queued_entities queue_incoming_entities_total pending_pods
batch_rescore_attempts_total batch_rescore_duration_seconds pre_queueing_hint_evaluations_total
"""
PROFILE = 'profile="default-scheduler"'


def page(*objects: Any, gates: dict[str, bool] | None = None, cycles: int = 1) -> list[str]:
    """The lines of a scrape after some cycles, without those of buckets and of sums of seconds."""
    chosen = policy(gates)
    made, metrics = cluster(chosen, *objects), LiveMetrics()
    queue = metrics.kube.queue = SchedulingQueue(made)
    for number in range(cycles):
        decided = cycle(made, chosen, NOW + number, NOWHERE, queue, CycleTiming(metrics))
        metrics.observe_cycle(decided, NOW, 0.0)
    metrics.measure(made)
    lines = [line.removeprefix("scheduler_") for line in metrics.page().splitlines() if line.startswith("scheduler_")]
    return [line for line in lines if "_bucket{" not in line and "_seconds_sum" not in line and not line.endswith(" 0")]


def test_the_names_are_upstreams() -> None:
    assert [family.name for family in KubeMetrics().declared] == [f"scheduler_{name}" for name in NAMES.split()]


def test_families_without_a_step_here_are_known_to_a_scrape() -> None:
    lines = LiveMetrics().page().splitlines()
    for name in ("batch_rescore_attempts", "pre_queueing_hint_evaluations"):
        assert f"# TYPE scheduler_{name}_total counter" in lines
    assert "# TYPE scheduler_batch_rescore_duration_seconds histogram" in lines


def test_a_gang_in_a_rack_is_counted_with_its_placements() -> None:
    racks = [machine(name, cpu=cpu, rack=name) for name, cpu in (("a", 2), ("b", 2), ("c", 1))]
    lines = page(*racks, group("g", 2, key="rack"), member("p1", "g"), member("p2", "g"), gates=TREES)
    assert lines == [
        f'podgroup_schedule_attempts_total{{result="scheduled",{PROFILE}}} 1',
        f'podgroup_scheduling_attempt_duration_seconds_count{{result="scheduled",{PROFILE}}} 1',
        "podgroup_scheduling_algorithm_duration_seconds_count 1",
        f"generated_placements_total{{{PROFILE}}} 3",
        f'placement_evaluations_total{{result="feasible",{PROFILE}}} 2',
        f'placement_evaluations_total{{result="infeasible",{PROFILE}}} 1',
        f'placement_evaluation_duration_seconds_count{{result="feasible",{PROFILE}}} 2',
        f'placement_evaluation_duration_seconds_count{{result="infeasible",{PROFILE}}} 1',
        f'framework_extension_point_duration_seconds_count{{extension_point="PlacementGenerate",status="Success",{PROFILE}}} 1',
        f'framework_extension_point_duration_seconds_count{{extension_point="PlacementScore",status="Success",{PROFILE}}} 1',
        'queue_incoming_entities_total{queue="active",event="UnscheduledPodAdd",type="podgroup"} 1',
    ]


def test_placements_of_a_tree_are_not_counted_but_those_of_its_leaves() -> None:
    objects = [tree("t", key="rack"), group("g", 1, parent="t"), member("p", "g")]
    lines = page(machine("a", rack="a"), machine("b", rack="b"), *objects, gates=TREES)
    assert f"generated_placements_total{{{PROFILE}}} 2" in lines  # the leaf has one placement in each of the tree's
    assert not [line for line in lines if line.startswith("queue")], "upstream counts no CompositePodGroup"


def test_a_gang_that_evicts_a_gang_with_a_budget() -> None:
    victims = [group("low", 2, whole=True), *(running(name, "low", "n1").label("app", "low") for name in ("v1", "v2"))]
    guard = budget("b", 0, {"matchLabels": {"app": "low"}})
    lines = page(machine("n1", cpu=2), *victims, guard, group("g", 1, priority=9), member("p", "g", 2, priority=9))
    assert f'podgroup_schedule_attempts_total{{result="waiting_on_preemption",{PROFILE}}} 1' in lines
    assert 'workload_preemption_attempts_total{result="Success"} 1' in lines
    assert "workload_preemption_victims_sum 2" in lines and "workload_preemption_victims_count 1" in lines
    assert 'preemption_workload_disruptions_count{preemptor="podgroup"} 1' in lines
    assert 'preemption_pdb_violations_total{preemptor="podgroup"} 2' in lines
    assert 'preemption_evaluation_duration_seconds_count{preemptor="podgroup",result="Success"} 1' in lines
    assert 'preemption_execution_duration_seconds_count{preemptor="podgroup",result="success"} 1' in lines
    point = f'extension_point="PodGroupPostFilter",status="Success",{PROFILE}'
    assert f"framework_extension_point_duration_seconds_count{{{point}}} 1" in lines
    assert 'pending_pods{queue="backoff"} 1' in lines and 'queued_entities{queue="backoff",type="podgroup"} 1' in lines
    assert 'queue_incoming_entities_total{queue="backoff",event="ScheduleAttemptFailure",type="podgroup"} 1' in lines
    assert not [line for line in lines if line.startswith("preemption_victims")]


def test_victims_of_a_single_pod_are_counted_by_themselves() -> None:
    lines = page(machine("n1", cpu=2), existing("v", "n1", cpu=2), waiting("p", 2, priority=9))
    assert "preemption_victims_sum 1" in lines and 'pending_pods{queue="unschedulable"} 1' in lines
    assert 'preemption_evaluation_duration_seconds_count{preemptor="pod",result="Success"} 1' in lines
    assert 'queue_incoming_entities_total{queue="unschedulable",event="ScheduleAttemptFailure",type="pod"} 1' in lines
    assert not [line for line in lines if "workload" in line]


def test_pods_that_are_held_back_are_gated_or_incomplete() -> None:
    gated = waiting("p").having("spec", "schedulingGates", value=[{"name": "example.com/wait"}])
    lines = page(machine("n1"), gated, member("lost", "nowhere"), group("g", 2), member("few", "g"))
    assert [line for line in lines if line.startswith("pending_pods")] == [
        'pending_pods{queue="gated"} 2',
        'pending_pods{queue="incomplete"} 1',
    ]
    assert 'queued_entities{queue="gated",type="pod"} 1' in lines and 'queued_entities{queue="gated",type="podgroup"} 1' in lines
