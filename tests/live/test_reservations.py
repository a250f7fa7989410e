"""The head of the line is promised room on a live cluster, too, and is told so; who would delay it waits."""

from __future__ import annotations

import asyncio

from pumice.api.annotations import ESTIMATE
from pumice.api.kinds import EVENTS, POD_GROUPS, PODS
from pumice.extensions import plugins
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations, schedulers_of
from tests.live.memory import MemoryServer
from tests.live.stories import running, scheduling, server, until
from tests.live.virtual import VirtualClock, run

EASY = """
actions: "in-order"
configurations:
- name: in-order
  arguments: {backfill: easy}
tiers:
- plugins: [{name: gang}, {name: predicates}]
"""


def job(api: MemoryServer, name: str, cpu: float, estimate: str, created: str) -> None:
    meta = {"annotations": {ESTIMATE: estimate}, "creationTimestamp": f"2023-11-14T22:00:{created}Z"}
    api.put(POD_GROUPS, name, metadata=meta, spec={"minMember": 1, "queue": "default"})
    api.pod(f"{name}-0", cpu, group=name)


def test_only_who_ends_in_time_goes_before_the_first() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        async with scheduling(api, EASY) as scheduler:
            await scheduler.synced.wait()
            job(api, "runs", 2, "1h", "00")
            await until(lambda: api.placed() == {"runs-0": "a"})
            job(api, "first", 4, "1h", "01")
            job(api, "long", 1, "2h", "02")
            job(api, "short", 1, "30m", "03")
            await until(lambda: len(api.placed()) == 2)
            assert set(api.placed()) == {"runs-0", "short-0"}
            await until(lambda: any(event["reason"] == "Reserved" for event in api.all(EVENTS)))
            for name in ("short-0", "runs-0"):
                api.remove(PODS, name)
            await until(lambda: set(api.placed()) == {"first-0"})
        assert not api.breaches

    run(story())


def test_jobs_start_in_order_beside_plain_pods_of_the_same_scheduler() -> None:
    """As in `pumice up --conf`, where kube-scheduler's profiles are configured as well."""

    async def story() -> None:
        api = server("a", cpu=4)
        chosen = read_configurations([config_text(text, "test") for text in (EASY, KUBE_DEFAULT)], plugins(None))[0]
        async with running(Scheduler(api, chosen, Options(schedulers=schedulers_of(chosen)), VirtualClock())) as scheduler:
            await scheduler.synced.wait()
            job(api, "first", 2, "1h", "00")
            api.pod("plain", 1, scheduler="default-scheduler")
            await until(lambda: api.placed() == {"first-0": "a", "plain": "a"})
        assert not api.breaches

    run(story())


def test_a_job_without_pods_is_admitted_so_that_its_controller_makes_them() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        async with scheduling(api, EASY) as scheduler:
            await scheduler.synced.wait()
            api.put(POD_GROUPS, "made", spec={"minMember": 1, "queue": "default"}, status={"phase": "Pending"})
            await until(lambda: api.found(POD_GROUPS, "made")["status"]["phase"] == "Inqueue")

    run(story())


def test_what_the_action_enqueue_does_not_let_in_does_not_start() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        enqueued = EASY.replace('"in-order"', '"enqueue, in-order"').replace("{name: gang}", "{name: gang}, {name: overcommit}")
        async with scheduling(api, enqueued) as scheduler:
            await scheduler.synced.wait()
            for name in ("first", "second"):
                api.put(POD_GROUPS, name, spec={"minMember": 1, "queue": "default", "minResources": {"cpu": "3"}})
            await until(lambda: api.found(POD_GROUPS, "first").get("status", {}).get("phase") == "Inqueue")
            api.pod("second-0", 1, group="second")
            api.pod("first-0", 1, group="first")
            await until(lambda: api.placed() == {"first-0": "a"})
            await asyncio.sleep(60)
            assert api.placed() == {"first-0": "a"}

    run(story())
