"""Preemption and reclaim on a real API server, over several cycles, with pods that take their time to end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest
from live_scheduler import CAPACITY, PREEMPTING, TESTED, events, scheduling
from stage import Stage, until_true

from pumice.api.kinds import PODS, QUEUES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import PatchType, as_dict

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

SLOW_S = 2.0
SLOW = {"terminationGracePeriodSeconds": 30}
GANGS = PREEMPTING.replace("preempt, reclaim", "gangpreempt, gangreclaim")
EARLY = PREEMPTING.replace("allocate, preempt, reclaim", "reclaim, preempt, allocate")


async def running(stage: Stage, name: str, pods: int, **more: Any) -> None:
    """An elastic gang of slow pods that stands."""
    await stage.gang(name, pods=pods, cpu=1, minimum=more.pop("minimum", 1), **SLOW, **more)
    await stage.until_placed(name, pods)
    await stage.until_told_of(name, running=pods)


async def leaving(stage: Stage) -> dict[str, dict[str, Any]]:
    return {name: pod for name, pod in (await stage.pods()).items() if pod["metadata"].get("deletionTimestamp")}


async def until_leaving(stage: Stage, count: int) -> dict[str, dict[str, Any]]:
    async def enough() -> bool:
        return len(await leaving(stage)) >= count

    await until_true(enough)
    return await leaving(stage)


def conditions(pod: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    return {c["type"]: (c["status"], c.get("reason", ""), c.get("message", "")) for c in pod["status"]["conditions"]}


@pytest.mark.parametrize("conf", [PREEMPTING, TESTED, GANGS], ids=["preempt-first", "reclaim-first", "gangs"])
def test_victims_end_in_peace_and_no_more_go_than_must(play: Play, conf: str) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, conf, stop_s=SLOW_S) as (stage, _):
            low, high = await stage.priority_class("low", 10), await stage.priority_class("high", 1000)
            await stage.node("a", cpu=4)
            await running(stage, "low", 4, minimum=2, priority_class=low, priorityClassName=low)
            await stage.gang("high", pods=2, cpu=1, priority_class=high, priorityClassName=high)
            victims = await until_leaving(stage, 2)
            for pod in victims.values():
                told = conditions(pod)
                action, _, beneficiary = told["Ready"][2].removeprefix("Pod is evicted, because of ").partition(" for ")
                assert told["Ready"][:2] == ("False", "Evict") and action.endswith("preempt")
                assert beneficiary.startswith(f"{stage.namespace}/high")
                text = "volcano: preempting to accommodate a higher priority pod"
                assert told["DisruptionTarget"] == ("True", "PreemptionByScheduler", text)

            async def nominated() -> bool:
                pods = await stage.pods()
                return {pods[f"high-{number}"]["status"].get("nominatedNodeName") for number in range(2)} == {f"{namespace}-a"}

            await until_true(nominated)
            await stage.until_placed("high", 2)
            await asyncio.sleep(1.0)
            assert len(await stage.placed("low")) == 2 and not set(victims) & set(await stage.pods())

            async def both_told() -> bool:
                found = {(e["involvedObject"]["kind"], e["type"], e["reason"], e["message"]) for e in await events(client, namespace)}
                groups = [event[3] for event in found if event[:3] == ("PodGroup", "Normal", "Evict")]
                return ("Pod", "Warning", "Evict", told["Ready"][2]) in found and any(
                    re.match(f"low-\\d: {action} for ", text) for text in groups
                )

            await until_true(both_told)

    play(story)


@pytest.mark.parametrize("conf", [PREEMPTING, CAPACITY, GANGS, EARLY], ids=["proportion", "capacity", "gangs", "before allocate"])
def test_a_queue_gets_its_share_back_while_the_others_pods_come_again(play: Play, conf: str) -> None:
    """A controller makes a new pod for each that was evicted; it waits."""

    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, conf, stop_s=SLOW_S) as (stage, _):
            await stage.node("a", cpu=3)
            await stage.node("b", cpu=3)
            shares = {"deserved": {"cpu": "3", "memory": "8Gi"}} if "capacity" in conf else {}
            greedy, poor = await stage.queue("greedy", **shares), await stage.queue("poor", **shares)
            await running(stage, "greedy", 6, queue=greedy)
            await stage.gang("poor", pods=3, cpu=1, queue=poor, **SLOW)
            await until_leaving(stage, 3)
            for number in range(3):
                await stage.pod(f"greedy-again-{number}", 1, group="greedy")
            await stage.until_placed("poor", 3)
            await asyncio.sleep(2.0)
            assert (len(await stage.placed("greedy")), len(await stage.placed("poor"))) == (3, 3)

    play(story)


def test_room_that_was_made_for_a_gang_that_is_gone_goes_back_and_nobody_else_is_evicted(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, PREEMPTING, stop_s=SLOW_S) as (stage, _):
            high = await stage.priority_class("high", 1000)
            await stage.node("a", cpu=4)
            await running(stage, "low", 4)
            await stage.gang("high", pods=2, cpu=1, priority_class=high, priorityClassName=high)
            await until_leaving(stage, 2)
            for number in range(2):
                await client.delete(PODS, ObjectRef(f"high-{number}", namespace))
            await stage.gang("next", pods=2, cpu=1)
            await stage.until_placed("next", 2)
            assert len(await stage.placed("low")) == 2

    play(story)


def test_who_may_not_be_evicted_stays(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, PREEMPTING) as (stage, _):
            high = await stage.priority_class("high", 1000)
            await stage.node("a", cpu=4)
            await stage.gang("whole", pods=2, cpu=1)
            await stage.gang("kept", pods=2, cpu=1, minimum=1, annotations={"volcano.sh/preemptable": "false"})
            await stage.until_placed("", 4)
            await stage.gang("high", pods=2, cpu=1, priority_class=high, priorityClassName=high)
            await asyncio.sleep(2.0)
            assert not await stage.placed("high") and len(await stage.placed()) == 4

    play(story)


def test_who_never_preempts_waits_for_room(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, PREEMPTING) as (stage, _):
            high = await stage.priority_class("high", 1000, preemptionPolicy="Never")
            await stage.node("a", cpu=2)
            await running(stage, "low", 2)
            await stage.gang("high", pods=1, cpu=1, priority_class=high, priorityClassName=high)
            await asyncio.sleep(1.5)
            assert len(await stage.placed("low")) == 2
            await client.delete(PODS, ObjectRef("low-0", namespace))
            await stage.until_placed("high", 1)

    play(story)


def test_a_queue_that_may_not_be_reclaimed_keeps_what_it_has_until_it_may(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, PREEMPTING) as (stage, _):
            await stage.node("a", cpu=4)
            greedy, poor = await stage.queue("greedy", reclaimable=False), await stage.queue("poor")
            await running(stage, "greedy", 4, queue=greedy)
            await stage.gang("poor", pods=2, cpu=1, queue=poor)
            await asyncio.sleep(1.5)
            assert not await stage.placed("poor")
            await stage.change_queue(greedy, reclaimable=True)
            await stage.until_placed("poor", 2)
            assert len(await stage.placed("greedy")) == 2

    play(story)


def test_what_a_queue_deserves_may_change_while_its_jobs_run(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, CAPACITY, stop_s=0.5) as (stage, _):
            await stage.node("a", cpu=4)
            one, two = await stage.queue("one", deserved={"cpu": "4"}), await stage.queue("two", deserved={"cpu": "0"})
            await running(stage, "one", 4, queue=one)
            await stage.gang("two", pods=3, cpu=1, minimum=1, queue=two)
            await asyncio.sleep(1.5)
            assert not await stage.placed("two")
            await stage.change_queue(one, deserved={"cpu": "3"})
            await stage.change_queue(two, deserved={"cpu": "1"})
            await stage.until_placed("two", 1)
            await asyncio.sleep(1.0)
            assert (len(await stage.placed("one")), len(await stage.placed("two"))) == (3, 1)

            async def allocated(queue: str) -> Any:
                status = as_dict(await client.get(QUEUES, ObjectRef(queue))).get("status") or {}
                return (status.get("allocated") or {}).get("cpu")

            async def told() -> bool:
                return (await allocated(one), await allocated(two)) == ("3", "1")

            await until_true(told)

    play(story)


def test_a_gang_that_loses_a_pod_while_others_run_is_unknown_until_it_stands_again(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=3)
            await stage.gang("train", pods=3, cpu=1)
            await stage.until_placed("train", 3)
            await stage.until_phase("train", "Running")
            await stage.change_node("a", spec={"unschedulable": True})
            await client.delete(PODS, ObjectRef("train-2", namespace))
            await stage.pod("train-3", 1, group="train")
            await stage.until_phase("train", "Unknown")
            types = {condition["type"] for condition in (await stage.group("train"))["conditions"]}
            assert types == {"Scheduled", "Unschedulable"}
            await stage.change_node("a", spec={"unschedulable": None})
            await stage.until_phase("train", "Running")

    play(story)


def test_a_gang_that_has_ended_is_completed_and_its_room_is_free(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await stage.node("a", cpu=2)
            await stage.gang("first", pods=2, cpu=1)
            await stage.gang("second", pods=2, cpu=1)
            await stage.until_placed("", 2)
            (done,) = {name.partition("-")[0] for name in await stage.placed()}
            await stage.until_told_of(done, running=2)
            for number, phase in enumerate(("Succeeded", "Failed")):
                ref = ObjectRef(f"{done}-{number}", namespace)
                await client.patch(PODS, ref, {"status": {"phase": phase}}, PatchType.MERGE, subresource="status")
            await stage.until_phase(done, "Completed")
            status = await stage.group(done)
            assert (status["succeeded"], status["failed"]) == (1, 1)
            other = "second" if done == "first" else "first"
            await stage.until_placed(other, 2)

    play(story)
