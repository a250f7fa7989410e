"""gangpreempt and gangreclaim on a real API server: whole gangs go where a part would not do, and domains of the network are cleared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from live_scheduler import PREEMPTING, scheduling
from stage import until_true
from test_scheduler_domains import NEAR, leaves, tree, within

from pumice.client.client import Client

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

SLOW = {"terminationGracePeriodSeconds": 30}
GANGS = PREEMPTING.replace("preempt, reclaim", "gangpreempt, gangreclaim")
CAUTIOUS = "configurations:\n- name: gangpreempt\n  arguments:\n    allowWholeBundle: false\n"
IN_DOMAINS = NEAR.replace("allocate, backfill", "allocate, gangpreempt, backfill")


def test_a_whole_gang_gives_way_where_a_part_of_it_would_not_do(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, GANGS, stop_s=1.0) as (stage, _):
            low, high = await stage.priority_class("low", 10), await stage.priority_class("high", 1000)
            await stage.node("a", cpu=4)
            await stage.gang("low", pods=4, cpu=1, priority_class=low, priorityClassName=low, **SLOW)
            await stage.until_placed("low", 4)
            await stage.until_phase("low", "Running")
            await stage.gang("high", pods=2, cpu=1, priority_class=high, priorityClassName=high, **SLOW)
            await stage.until_placed("high", 2)
            assert not await stage.placed("low"), "half of it would be of no use"

    play(story)


def test_a_whole_gang_stays_if_only_spare_pods_may_go(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, GANGS + CAUTIOUS) as (stage, _):
            low, high = await stage.priority_class("low", 10), await stage.priority_class("high", 1000)
            await stage.node("a", cpu=4)
            await stage.gang("low", pods=4, cpu=1, minimum=3, priority_class=low, priorityClassName=low)
            await stage.until_placed("low", 4)
            await stage.until_phase("low", "Running")
            await stage.gang("two", pods=2, cpu=1, priority_class=high, priorityClassName=high)
            await asyncio.sleep(1.5)
            assert len(await stage.placed("low")) == 4 and not await stage.placed("two")
            await stage.gang("one", pods=1, cpu=1, priority_class=high, priorityClassName=high)
            await stage.until_placed("one", 1)
            assert len(await stage.placed("low")) == 3

    play(story)


def test_a_leaf_is_cleared_for_a_gang_that_must_stay_below_one(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace, IN_DOMAINS, stop_s=1.0) as (stage, _):
            low, high = await stage.priority_class("low", 10), await stage.priority_class("high", 1000)
            await tree(stage)
            await stage.gang("low", pods=8, cpu=1, minimum=1, priority_class=low, priorityClassName=low, **SLOW)
            await stage.until_placed("low", 8)
            await stage.until_phase("low", "Running")
            await stage.gang("high", pods=4, cpu=1, priority_class=high, priorityClassName=high, asks=within(1), **SLOW)
            assert len(leaves(stage, await stage.until_placed("high", 4))) == 1

            async def rest() -> bool:
                return len(await stage.placed("low")) == 4

            await until_true(rest)

    play(story)
