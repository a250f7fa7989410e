"""The live scheduler on a real API server: gangs, queues, preemption, reclaim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from live_scheduler import PREEMPTING, events, scheduling
from realcluster import RealCluster
from stage import absent, until_true

from pumice.api.kinds import PRIORITY_CLASSES, QUEUES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import as_dict
from pumice.scheduler.config.volcano_conf import DEFAULT

pytestmark = pytest.mark.cluster
Play = Callable[..., None]


def test_a_gang_is_placed_whole_and_says_so(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, scheduler):
            nodes = [await stage.node(name, cpu=2) for name in ("a", "b")]
            await stage.gang("train", pods=4, cpu=1, queue="default", automountServiceAccountToken=True)
            placed = await stage.until_placed("train", 4)
            tokens = {pod["spec"]["volumes"][0]["name"] for pod in (await stage.pods()).values()}
            assert len(tokens) == 4, "the server gives each pod a token under a name of its own"
            assert len({task.template for task in scheduler.cluster.tasks.values() if task.namespace == namespace}) == 1
            assert sorted(placed.values()) == sorted(nodes * 2)
            await stage.until_phase("train", "Running")
            await stage.until_told_of("train", running=4)
            assert "Scheduled" in [condition["type"] for condition in (await stage.group("train"))["conditions"]]

            async def told() -> bool:
                found = {(event["involvedObject"]["kind"], event["reason"]) for event in await events(client, namespace)}
                return {("Pod", "Scheduled"), ("PodGroup", "Scheduled")} <= found

            await until_true(told)

    play(story)


def test_a_gang_that_does_not_fit_gets_nothing_and_is_told_why(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, scheduler):
            await stage.node("a", cpu=3)
            await stage.gang("train", pods=4, cpu=1, queue="default")
            reasons: set[str] = set()
            while "Unschedulable" not in reasons:
                conditions = [c for pod in (await stage.pods()).values() for c in pod["status"].get("conditions", ())]
                reasons = {c["reason"] for c in conditions if c["type"] == "PodScheduled"}
                await asyncio.sleep(0.05)
            assert not await stage.placed()
            await stage.until_phase("train", "Inqueue")
            await asyncio.sleep(1.0)
            writes = scheduler.metrics.writes.value("PodGroup", "written")
            await asyncio.sleep(1.0)
            assert scheduler.metrics.writes.value("PodGroup", "written") == writes, "a waiting group costs no writes"
            await stage.node("b", cpu=1)
            await stage.until_placed("train", 4)

    play(story)


def test_queues_tell_what_they_hold_up_to_the_root(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=4)
            queue = await stage.queue("q", weight=1)
            await stage.gang("train", pods=2, cpu=1.5, queue=queue)
            await stage.until_placed("train", 2)

            async def allocated(name: str) -> Any:
                return (as_dict(await client.get(QUEUES, ObjectRef(name))).get("status") or {}).get("allocated")

            while await allocated(queue) != {"cpu": "3", "memory": "0", "pods": "2"}:
                await asyncio.sleep(0.05)
            assert (await allocated("root"))["cpu"] == "3"

    play(story)


def test_a_more_important_gang_takes_the_place_of_another(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        for name, value in (("low", 10), ("high", 1000)):
            await absent(client.create(PRIORITY_CLASSES, {"metadata": {"name": f"{namespace}-{name}"}, "value": value}))
        async with scheduling(client, namespace, PREEMPTING) as (stage, _):
            await stage.node("a", cpu=4)
            low, high = f"{namespace}-low", f"{namespace}-high"
            await stage.gang("low", pods=4, cpu=1, queue="default", minimum=1, priorityClassName=low)
            await stage.until_placed("low", 4)
            await stage.until_phase("low", "Running")
            await stage.gang("high", pods=2, cpu=1, queue="default", priority_class=high, priorityClassName=high)
            await stage.until_placed("high", 2)
            assert len(await stage.placed("low")) == 2

            async def told() -> bool:
                return "Evict" in {event["reason"] for event in await events(client, namespace)}

            await until_true(told)

    play(story)


def test_an_api_server_that_is_killed_amid_the_binds_finds_nothing_done_twice(cluster: RealCluster, play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            for name in ("a", "b"):
                await stage.node(name, cpu=20)
            for number in range(4):
                await stage.gang(f"g{number}", pods=10, cpu=1, queue="default")
            await stage.until_placed("g", 1)
            cluster.kill_apiserver()
            await asyncio.to_thread(cluster.start_apiserver)
            placed = await stage.until_placed("g", 40)
            assert sorted(list(placed.values()).count(node) for node in set(placed.values())) == [20, 20]

    play(story)


def test_a_queue_takes_back_what_it_deserves(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, PREEMPTING) as (stage, _):
            await stage.node("a", cpu=4)
            greedy, poor = await stage.queue("greedy", weight=1), await stage.queue("poor", weight=1)
            await stage.gang("first", pods=4, cpu=1, queue=greedy, minimum=1)
            await stage.until_placed("first", 4)
            await stage.until_phase("first", "Running")
            await stage.gang("second", pods=2, cpu=1, queue=poor)
            await stage.until_placed("second", 2)
            assert len(await stage.placed("first")) == 2

    play(story)


def test_pods_at_the_gate_of_their_queue_are_let_through_as_far_as_it_has_room(play: Play) -> None:
    gate = "scheduling.volcano.sh/queue-allocation-gate"

    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, DEFAULT.replace("proportion", "capacity")) as (stage, _):
            await stage.node("a", cpu=8)
            queue = await stage.queue("small", capability={"cpu": "2"})
            await stage.gang("wait", 0, 1, queue=queue, minimum=1)
            for number in range(3):
                await stage.pod(f"wait-{number}", 1, group="wait", annotations={gate: "true"}, schedulingGates=[{"name": gate}])
            await stage.until_placed("wait", 2)
            await asyncio.sleep(1.0)
            held = [name for name, pod in (await stage.pods()).items() if pod["spec"].get("schedulingGates")]
            assert len(held) == 1 and len(await stage.placed("wait")) == 2

    play(story)
