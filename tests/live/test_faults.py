"""Whatever happens between the scheduler and the server: no node is filled twice, no gang stays half placed, all run in the end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pumice.kube.resource import POD_GROUPS, PODS, Resource
from pumice.model import status
from tests.live.faults import CALLS, STREAMS, Faulty
from tests.live.memory import MemoryServer
from tests.live.stories import PREEMPTING, scheduling, until
from tests.live.virtual import run


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


calls = st.lists(st.sampled_from(CALLS), max_size=60)
streams = st.lists(st.sampled_from(STREAMS), max_size=60)
many = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@many
@given(calls, streams)
def test_all_gangs_run_in_the_end(calls: list[str], streams: list[str]) -> None:
    async def story() -> None:
        api = MemoryServer()
        api.queue("root")
        api.queue()
        for name in ("a", "b", "c"):
            api.node(name, cpu=2)
        api.gang("first", pods=3)
        async with scheduling(Faulty(api, calls, streams)) as scheduler:
            api.gang("second", pods=2)
            api.gang("third", pods=1)
            await until(lambda: api.running() == 6, within_s=2000)
            await asyncio.sleep(60)
            scheduler.cluster.check()
            assert all(task.status == status.RUNNING for task in scheduler.cluster.tasks.values())
        assert not api.breaches

    run(story(), limit_s=5000)


@many
@given(calls, streams)
def test_gangs_take_turns_and_nothing_is_lost(calls: list[str], streams: list[str]) -> None:
    """Two gangs that do not fit together: the second runs when the first is over."""

    async def story() -> None:
        api = MemoryServer()
        api.queue("root")
        api.queue()
        api.node("a", cpu=2)
        api.node("b", cpu=2)
        api.gang("first", pods=3)
        api.gang("second", pods=3)
        async with scheduling(Faulty(api, calls, streams)):
            await until(lambda: api.running() == 3, within_s=2000)
            assert len({name.split("-")[0] for name in api.placed()}) == 1, "a gang is never half placed beside another"
            for name in api.placed():
                api.put(PODS, name, status={"phase": "Succeeded"})
            await until(lambda: api.running() == 3, within_s=2000)
        assert not api.breaches

    run(story(), limit_s=5000)


@many
@given(calls, streams)
def test_nobody_is_evicted_for_nothing(calls: list[str], streams: list[str]) -> None:
    """As many victims as the more important gang has pods, and it runs. Where an eviction failed, others may go later."""

    async def story() -> None:
        api = MemoryServer()
        api.queue("root")
        api.queue()
        api.node("a", cpu=2)
        api.node("b", cpu=2)
        classes = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
        for name, value in (("low", 1), ("high", 10)):
            api.put(classes, name, value=value)
        api.put(POD_GROUPS, "low", spec={"minMember": 1, "queue": "default", "priorityClassName": "low"}, status={"phase": "Running"})
        for number in range(4):
            api.pod(f"low-{number}", group="low", node="ab"[number % 2], priority=1)
        api.put(POD_GROUPS, "high", spec={"minMember": 2, "queue": "default", "priorityClassName": "high"})
        for number in range(2):
            api.pod(f"high-{number}", group="high", priority=10)
        async with scheduling(Faulty(api, calls, streams), PREEMPTING) as scheduler:
            await until(lambda: len(api.placed("high")) == 2, within_s=2000)
            await asyncio.sleep(60)
            left = len(api.placed("low"))
            assert left == 2 or (left == 1 and scheduler.metrics.evictions.value("failed"))
        assert not api.breaches

    run(story(), limit_s=5000)
