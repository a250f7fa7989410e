"""What waits on a real API server, what is told of it, and what ends the waiting: nodes, gates, classes and queues that change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from live_scheduler import CAPACITY, TESTED, events, scheduling
from stage import Stage, until_true

from pumice.api.kinds import POD_GROUPS, PODS, QUEUES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import PatchType
from pumice.scheduler.config.volcano_conf import DEFAULT

pytestmark = pytest.mark.cluster
Play = Callable[..., None]


async def why(stage: Stage, pod: str) -> str:
    """The message of the pod's PodScheduled=False; empty if there is none."""
    conditions = (await stage.pods())[pod]["status"].get("conditions") or ()
    return next((c.get("message", "") for c in conditions if (c["type"], c["status"]) == ("PodScheduled", "False")), "")


async def until_told(stage: Stage, gang: str, words: str) -> None:
    """Until one of its pods is told so."""

    async def told() -> bool:
        return any([words in await why(stage, name) for name in await stage.pods() if name.startswith(gang)])

    await until_true(told)


TAINTS = [{"key": "example.com/reserved", "value": "yes", "effect": "NoSchedule"}]
OBSTACLES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "cordoned": ({"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}, "were unschedulable"),
    "tainted": ({"spec": {"taints": TAINTS}}, {"spec": {"taints": None}}, "untolerated taint"),
    "unlabelled": (
        {"metadata": {"labels": {"disk": "hdd"}}},
        {"metadata": {"labels": {"disk": "ssd"}}},
        "didn't match Pod's node affinity",
    ),
    "small": (
        {"status": {"allocatable": {"cpu": "1", "memory": "16Gi", "pods": "110"}}},
        {"status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}},
        " cpu",
    ),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_gang_is_placed_as_soon_as_its_node_takes_it(play: Play, obstacle: str) -> None:
    before, after, words = OBSTACLES[obstacle]

    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=4)
            await stage.change_node("a", **before)
            await stage.gang("train", pods=2, cpu=1, nodeSelector={"story": namespace, **({"disk": "ssd"} if "label" in obstacle else {})})
            await until_told(stage, "train", words)
            await stage.change_node("a", **after)
            await stage.until_placed("train", 2)

    play(story)


def test_pods_at_a_gate_of_their_own_are_left_alone_until_it_is_gone(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=4)
            await stage.gang("train", pods=2, cpu=1, schedulingGates=[{"name": "example.com/hold"}])
            await stage.gang("other", pods=3, cpu=1)
            await stage.until_placed("other", 3)
            await asyncio.sleep(1.0)
            for name, pod in (await stage.pods()).items():
                reasons = [c["reason"] for c in pod["status"]["conditions"] if c["type"] == "PodScheduled" and c["status"] == "False"]
                assert reasons == (["SchedulingGated"] if name.startswith("train") else [])
            for number in range(2):
                patch = {"spec": {"schedulingGates": []}}
                await client.patch(PODS, ObjectRef(f"train-{number}", namespace), patch, PatchType.MERGE)
            await until_told(stage, "train", " cpu")
            assert not await stage.placed("train"), "half a gang is nothing"
            await client.delete(PODS, ObjectRef("other-0", namespace))
            await stage.until_placed("train", 2)

    play(story)


def test_an_elastic_gang_runs_with_its_minimum_and_grows_with_the_cluster(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=3)
            await stage.gang("train", pods=5, cpu=1, minimum=2)
            assert len(await stage.until_placed("train", 3)) == 3
            await stage.until_phase("train", "Running")

            async def all_told() -> bool:
                waiting = set(await stage.pods()) - set(await stage.placed())
                return len(waiting) == 2 and all([await why(stage, name) for name in waiting])

            await until_true(all_told)

            async def counted() -> bool:
                return (await stage.group("train")).get("running") == 3

            await until_true(counted)
            await stage.node("b", cpu=1)
            await stage.until_placed("train", 4)
            await client.delete(PODS, ObjectRef("train-0", namespace))
            await stage.until_placed("train", 4)
            assert (await stage.group("train"))["phase"] == "Running"

    play(story)


def test_what_a_gang_that_finds_part_of_its_places_is_told(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, TESTED) as (stage, _):
            for name in "abc":
                await stage.node(name, cpu=2)
            await stage.gang("frag", pods=4, cpu=1.5)
            places = "0/3 nodes are unavailable: 3 Insufficient cpu."

            async def marked() -> bool:
                return len([name for name in await stage.pods() if await why(stage, name)]) == 4

            await until_true(marked)
            messages = {name: await why(stage, name) for name in await stage.pods()}
            (short,) = [name for name, message in messages.items() if message == places]
            for name in set(messages) - {short}:
                assert messages[name].startswith(f"Pod {namespace}/{name} can possibly be assigned to {namespace}-")
                assert messages[name].endswith(", once resource is released and minAvailable is satisfied")
            (condition,) = (await stage.group("frag"))["conditions"]
            assert (condition["type"], condition["reason"]) == ("Unschedulable", "NotEnoughResources")
            assert condition["message"] == (
                "4/4 tasks in gang unschedulable: pod group is not ready, 1 Pending, 3 Pipelined, 4 minAvailable; "
                f"Pending: 1 Unschedulable. Origin reason is {short}: {places}"
            )

            async def told() -> bool:
                found = {(e["involvedObject"]["kind"], e["type"], e["reason"], e["message"]) for e in await events(client, namespace)}
                wanted = ("PodGroup", "Warning", "Unschedulable", condition["message"])
                return {wanted, ("Pod", "Warning", "FailedScheduling", places)} <= found

            await until_true(told)

    play(story)


def test_a_group_that_is_not_let_in_says_so_and_comes_in_when_there_is_room(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=2)
            await stage.gang("train", pods=0, cpu=1, minimum=4, asks={"minResources": {"cpu": "4"}})
            await stage.until_phase("train", "Pending")

            async def told() -> set[tuple[str, str]]:
                return {(e["type"], e["reason"]) for e in await events(client, namespace) if e["involvedObject"]["name"] == "train"}

            async def complained() -> bool:
                return ("Warning", "Unschedulable") in await told()

            await until_true(complained)
            assert ("Normal", "Unschedulable") not in await told()
            await stage.node("b", cpu=2)
            await stage.until_phase("train", "Inqueue")

    play(story)


def test_the_more_important_gang_comes_first_even_if_its_class_comes_late(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.gang("first", pods=2, cpu=1)
            await stage.gang("second", pods=2, cpu=1, priority_class=f"{namespace}-high")
            await stage.until_phase("second", "Inqueue")
            await stage.priority_class("high", 1000)
            await stage.node("a", cpu=2)
            await stage.until_placed("", 2)
            assert len(await stage.placed("second")) == 2

    play(story)


@pytest.mark.parametrize("conf", [DEFAULT, CAPACITY], ids=["proportion", "capacity"])
def test_a_queue_whose_limit_is_raised_takes_more_and_one_that_is_closed_takes_nothing(play: Play, conf: str) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, conf) as (stage, _):
            await stage.node("a", cpu=8)
            queue = await stage.queue("q", capability={"cpu": "2"})
            for number in range(3):
                await stage.gang(f"g{number}", pods=2, cpu=1, queue=queue, asks={"minResources": {"cpu": "2"}})
            await stage.until_placed("g", 2)
            await asyncio.sleep(1.0)
            assert len(await stage.placed("g")) == 2
            await stage.change_queue(queue, capability={"cpu": "4"})
            await stage.until_placed("g", 4)
            await client.patch(QUEUES, ObjectRef(queue), {"status": {"state": "Closed"}}, PatchType.MERGE, subresource="status")
            await stage.change_queue(queue, capability={"cpu": "6"})
            await asyncio.sleep(1.0)
            assert len(await stage.placed("g")) == 4
            await stage.open_queue(queue)
            await stage.until_placed("g", 6)

    play(story)


def test_queues_share_by_their_weights(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            small, large = await stage.queue("small", weight=1), await stage.queue("large", weight=3)
            await stage.gang("s", pods=8, cpu=1, minimum=1, queue=small)
            await stage.gang("l", pods=8, cpu=1, minimum=1, queue=large)
            await stage.until_phase("s", "Inqueue")
            await stage.until_phase("l", "Inqueue")
            await stage.node("a", cpu=8)
            await stage.until_placed("", 8)
            assert (len(await stage.placed("s")), len(await stage.placed("l"))) == (2, 6)

    play(story)


def test_a_guarantee_keeps_room_for_a_queue_that_has_no_jobs_yet(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, CAPACITY) as (stage, _):
            await stage.node("a", cpu=4)
            await stage.queue("later", guarantee={"resource": {"cpu": "3"}})
            now = await stage.queue("now")
            await stage.gang("g", pods=4, cpu=1, minimum=1, queue=now)
            await stage.until_placed("g", 1)
            await asyncio.sleep(1.0)
            assert len(await stage.placed("g")) == 1
            await stage.change_queue(f"{namespace}-later", guarantee={"resource": {"cpu": "1"}})
            await stage.until_placed("g", 3)

    play(story)


def test_a_queue_that_is_made_late_takes_the_jobs_that_named_it(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=2)
            await stage.gang("train", pods=2, cpu=1, queue=f"{namespace}-late")
            await asyncio.sleep(0.5)
            assert not await stage.placed()
            await stage.queue("late")
            await stage.until_placed("train", 2)

    play(story)


def test_pods_that_come_before_their_group_and_groups_that_go_and_come_back(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=2)
            for number in range(2):
                await stage.pod(f"train-{number}", 1, group="train")
            await stage.gang("train", pods=0, cpu=1, minimum=3)
            await stage.until_phase("train", "Inqueue")
            await client.delete(POD_GROUPS, ObjectRef("train", namespace))
            await stage.gang("train", pods=0, cpu=1, minimum=2)
            await stage.until_placed("train", 2)
            await stage.until_phase("train", "Running")

    play(story)
