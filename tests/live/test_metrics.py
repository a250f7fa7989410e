"""What a scrape shows: Volcano's metrics under their names, fed by what happened."""

from __future__ import annotations

import asyncio

import pytest

from pumice.api.kinds import POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, Kind
from pumice.client.failures import ApiError
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.metrics import KEPT_JOBS
from pumice.live.scheduler.queue_metrics import QueueMetrics
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.cycle import cycle
from pumice.testing import cluster, node, podgroup
from pumice.testing.scene import NOW, policy
from tests.live.stories import PREEMPTING, scheduling, server, until
from tests.live.virtual import run

JOB, QUEUE = "job_name queue job_namespace", "queue_name"
NAMES = {
    "e2e_scheduling_latency_milliseconds": "histogram",
    "e2e_job_scheduling_latency_milliseconds": "histogram",
    "e2e_job_scheduling_duration": "gauge",
    "e2e_job_scheduling_start_time": "gauge",
    "e2e_job_scheduling_last_time": "gauge",
    "open_session_duration_milliseconds": "histogram",
    "plugin_scheduling_latency_milliseconds": "histogram",
    "action_scheduling_latency_milliseconds": "histogram",
    "task_scheduling_latency_milliseconds": "histogram",
    "scheduling_stage_duration_milliseconds": "histogram",
    "schedule_attempts_total": "counter",
    "pod_preemption_victims": "gauge",
    "total_preemption_attempts": "counter",
    "eviction_transactions_total": "counter",
    "unschedule_task_count": "gauge",
    "unschedule_job_count": "gauge",
    "job_share": "gauge",
    "job_retry_counts": "counter",
    "queue_share": "gauge",
    "queue_weight": "gauge",
    "queue_overused": "gauge",
    **{
        f"queue_{what}_{unit}": "gauge"
        for what in ("allocated", "request", "deserved", "capacity", "real_capacity", "inqueue")
        for unit in ("milli_cpu", "memory_bytes", "scalar_resources")
    },
    **{f"queue_pod_group_{phase}_count": "gauge" for phase in ("inqueue", "pending", "running", "unknown")},
}


def page(scheduler: Scheduler) -> str:
    scheduler.metrics.measure(scheduler.cluster)
    return scheduler.metrics.page()


def scraped(scheduler: Scheduler) -> dict[str, float]:
    lines = page(scheduler).splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))}


@pytest.mark.parametrize("name", NAMES)
def test_every_metric_of_volcanos_is_there(name: str) -> None:
    async def story() -> None:
        async with scheduling(server()) as scheduler:
            assert f"# TYPE volcano_{name} {NAMES[name]}\n" in page(scheduler)

    run(story())


def test_jobs_that_start_and_jobs_that_cannot() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=2)
        api.gang("train", pods=2)
        async with scheduling(api) as scheduler:
            await until(lambda: api.running() == 2)
            api.gang("more", pods=3, minimum=2)
            await asyncio.sleep(3)
            page = scraped(scheduler)
            assert page['volcano_schedule_attempts_total{result="scheduled"}'] == 2
            assert page['volcano_schedule_attempts_total{result="unschedulable"}'] >= 3
            assert page["volcano_unschedule_job_count"] == 1 and page['volcano_unschedule_task_count{job_id="default/more"}'] == 2
            assert page["pumice_waiting_pods"] == 3
            assert page['volcano_job_retry_counts{job_id="default/more"}'] >= 2
            assert page["volcano_e2e_job_scheduling_latency_milliseconds_count"] == 1
            labels = 'job_name="train",queue="default",job_namespace="default"'
            assert page[f"volcano_e2e_job_scheduling_duration{{{labels}}}"] > 0
            begun, last = (page[f"volcano_e2e_job_scheduling_{end}_time{{{labels}}}"] for end in ("start", "last"))
            assert 1.7e9 <= begun <= last <= scheduler.clock.now()
            assert page['volcano_job_share{job_ns="default",job_id="train"}'] == 1
            for gone in ("train", "more"):
                api.remove(POD_GROUPS, gone)
            for name in ("train-0", "train-1", "more-0", "more-1", "more-2"):
                api.remove(PODS, name)
            await until(lambda: not scheduler.cluster.jobs)
            assert not [name for name in scraped(scheduler) if "train" in name or "more" in name], "what is gone is not told of"

    run(story())


def test_jobs_that_are_gone_leave_nothing_where_nobody_scrapes() -> None:
    async def story() -> None:
        api = server("a")
        async with scheduling(api) as scheduler:
            await scheduler.synced.wait()
            for number in range(3):
                names = [f"{number}-{name}" for name in range(KEPT_JOBS)]
                for name in names:
                    api.gang(name, pods=1, cpu=0.01)
                    api.gang(f"large-{name}", pods=1, cpu=100)
                await until(lambda: len(api.placed()) == KEPT_JOBS)
                for name in (*names, *(f"large-{name}" for name in names)):
                    api.remove(PODS, f"{name}-0")
                    api.remove(POD_GROUPS, name)
                await until(lambda: not scheduler.cluster.jobs)
            await asyncio.sleep(1)
            lines = scheduler.metrics.page().splitlines()
        assert sum('job_name="' in line for line in lines) <= 3 * KEPT_JOBS
        assert sum('job_id="' in line for line in lines) <= KEPT_JOBS

    run(story())


def test_how_long_sessions_plugins_actions_and_stages_take() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=2)
        api.gang("train", pods=2)
        async with scheduling(api) as scheduler:
            await until(lambda: api.running() == 2)
            page = scraped(scheduler)
        cycles = page["volcano_e2e_scheduling_latency_milliseconds_count"]
        assert page["volcano_open_session_duration_milliseconds_count"] == cycles > 0
        assert page['volcano_action_scheduling_latency_milliseconds_count{action="allocate"}'] == cycles
        for when in ("OnSessionOpen", "OnSessionClose"):
            assert page[f'volcano_plugin_scheduling_latency_milliseconds_count{{plugin="gang",OnSession="{when}"}}'] == cycles
        for stage in ("Watched", "Assumed", "PreBound", "Bound"):
            assert page[f'volcano_task_scheduling_latency_milliseconds_count{{stage="{stage}"}}'] == 2
        assert page['volcano_scheduling_stage_duration_milliseconds_count{stage="Bind"}'] == 2
        for stage in ("Predicate", "Scoring"):
            label = f'{{stage="{stage}"}}'
            assert page[f"volcano_scheduling_stage_duration_milliseconds_count{label}"] == 1, "one cycle had to place pods"
            assert page[f"volcano_scheduling_stage_duration_milliseconds_sum{label}"] > 0
        assert page['pumice_binds_total{result="bound"}'] == 2

    run(story())


def test_evictions_count_by_whom_they_are_for() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        api.put(PRIORITY_CLASSES, "high", value=10)
        api.gang("low", pods=4, minimum=1)
        async with scheduling(api, PREEMPTING) as scheduler:
            await until(lambda: api.running() == 4)
            api.put(POD_GROUPS, "high", spec={"minMember": 2, "queue": "default", "priorityClassName": "high"})
            for number in range(2):
                api.pod(f"high-{number}", group="high", priority=10)
            await until(lambda: len(api.placed("high")) == 2)
            page = scraped(scheduler)
        assert page["volcano_pod_preemption_victims"] == 2 and page["volcano_total_preemption_attempts"] == 1
        assert 1 <= page['volcano_eviction_transactions_total{action="preempt"}'] <= 2
        assert page['pumice_evictions_total{result="deleted"}'] == 2

    run(story())


@pytest.mark.parametrize(
    ("conf", "deserved", "limit"),
    [(DEFAULT, {"one": 1000, "two": 3000}, 4000), (DEFAULT.replace("proportion", "capacity"), {"one": 0, "two": 2000}, 4000)],
    ids=["proportion", "capacity"],
)
def test_queues_tell_what_they_hold_and_what_is_theirs(conf: str, deserved: dict[str, float], limit: float) -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=4)
        api.put(QUEUES, "one", spec={"weight": 1, "capability": {"cpu": "8"}}, status={"state": "Open"})
        api.put(QUEUES, "two", spec={"weight": 3, "deserved": {"cpu": "2"}}, status={"state": "Open"})
        for queue in deserved:
            api.gang(f"g{queue}", pods=4, minimum=1, queue=queue)
        async with scheduling(api, conf) as scheduler:
            await until(lambda: api.running() == 4)
            await asyncio.sleep(2)
            page = scraped(scheduler)
        for queue, wanted in deserved.items():
            label = f'{{queue_name="{queue}"}}'
            assert page[f"volcano_queue_deserved_milli_cpu{label}"] == wanted
            assert page[f"volcano_queue_real_capacity_milli_cpu{label}"] == limit
            held = page[f"volcano_queue_allocated_milli_cpu{label}"]
            assert page[f"volcano_queue_request_milli_cpu{label}"] == 4000 and held == 1000 * len(api.placed(f"g{queue}"))
            assert page[f"volcano_queue_share{label}"] == (held / wanted if wanted else 0)
            assert page[f"volcano_queue_overused{label}"] == (wanted > 0 and held >= wanted)
            assert page[f"volcano_queue_pod_group_running_count{label}"] == 1
        assert page['volcano_queue_capacity_milli_cpu{queue_name="one"}'] == 8000
        assert page['volcano_queue_weight{queue_name="two"}'] == 3

    run(story())


def test_what_a_cycle_lets_in_is_counted_at_once() -> None:
    made, metrics = cluster(node("n").cpu(4), podgroup("g").needs(cpu=3).pods(1, cpu=1)), QueueMetrics()
    cycle(made, policy("enqueue", ["gang", "proportion"]), NOW)
    metrics.measure(made)
    lines = [line for family in metrics.families for line in family.samples()]
    assert 'volcano_queue_inqueue_milli_cpu{queue_name="default"} 3000' in lines


def test_events_that_were_dropped_are_counted() -> None:
    async def story() -> None:
        api = server()
        api.node("a", cpu=2)
        api.gang("train", pods=1)

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if resource.plural == "events":
                raise ApiError(403, "Forbidden", "no")

        api.before_write = refuse
        async with scheduling(api) as scheduler:
            await until(lambda: api.running() == 1)
            await asyncio.sleep(5)
            assert scraped(scheduler)["pumice_events_dropped"] >= 1

    run(story())
