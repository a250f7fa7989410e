"""Whatever happens between the scheduler and the server: no node is filled twice, no gang stays half placed, all run in the end.

Each promise is a story over drawn faults; `make test` tells it a few dozen times, the nightly profile (`pytest -m nightly`) thousands.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pumice.config.reading import config_text, read_configurations
from pumice.kube.resource import LEASES, PODS
from pumice.live.loop import LostLead, Scheduler
from pumice.live.options import Options
from pumice.model import status
from pumice.plugins.registry import plugins
from tests.live.faults import CALLS, STREAMS, Faulty
from tests.live.memory import MemoryServer
from tests.live.seat import LOCK, Seat
from tests.live.stories import PREEMPTING, crowded, policy, running, scheduling, server, until
from tests.live.virtual import VirtualClock, run

QUICK, NIGHTLY = 40, 5000
KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
Story = Callable[..., Coroutine[Any, Any, None]]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


calls = st.lists(st.sampled_from(CALLS), max_size=60)
streams = st.lists(st.sampled_from(STREAMS), max_size=60)
instants = st.lists(st.floats(0.0, 3.0), max_size=5)
cuts = st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0.0, 25.0)), max_size=6)


async def all_gangs_run_in_the_end(calls: list[str], streams: list[str]) -> None:
    api = server("a", "b", "c")
    api.gang("first", pods=3)
    async with scheduling(Faulty(api, calls, streams)) as scheduler:
        api.gang("second", pods=2)
        api.gang("third", pods=1)
        await until(lambda: api.running() == 6, within_s=2000)
        await asyncio.sleep(60)
        scheduler.cluster.check()
        assert all(task.status == status.RUNNING for task in scheduler.cluster.tasks.values())
    assert not api.breaches


async def gangs_take_turns_and_nothing_is_lost(calls: list[str], streams: list[str]) -> None:
    """Two gangs that do not fit together: the second runs when the first is over."""
    api = server("a", "b")
    api.gang("first", pods=3)
    api.gang("second", pods=3)
    async with scheduling(Faulty(api, calls, streams)):
        await until(lambda: api.running() == 3, within_s=2000)
        assert len({name.split("-")[0] for name in api.placed()}) == 1, "a gang is never half placed beside another"
        for name in api.placed():
            api.put(PODS, name, status={"phase": "Succeeded"})
        await until(lambda: api.running() == 3, within_s=2000)
    assert not api.breaches


async def nobody_is_evicted_for_nothing(calls: list[str], streams: list[str]) -> None:
    """As many victims as the more important gang has pods, and it runs. Where an eviction failed, others may go later."""
    api = crowded()
    async with scheduling(Faulty(api, calls, streams), PREEMPTING) as scheduler:
        await until(lambda: len(api.placed("high")) == 2, within_s=2000)
        await asyncio.sleep(60)
        left = len(api.placed("low"))
        assert left == 2 or (left == 1 and scheduler.metrics.evictions.value("failed"))
    assert not api.breaches


async def a_scheduler_that_is_killed_at_any_instant_leaves_nothing_behind(
    calls: list[str], streams: list[str], instants: list[float]
) -> None:
    """Killed as by kill -9, again and again; the last one finishes the work of the others."""
    api = crowded()
    left_calls, left_streams = iter(calls), iter(streams)
    for instant in instants:
        way = Faulty(api, left_calls, left_streams)
        async with scheduling(way, PREEMPTING):
            await asyncio.sleep(instant)
            way.dead = True
    async with scheduling(Faulty(api, left_calls, left_streams), PREEMPTING):
        await until(lambda: len(api.placed("high")) == 2, within_s=2000)
        await asyncio.sleep(60)
        assert len(api.placed("low")) >= 1
    assert not api.breaches


async def plain_pods_run_in_the_end_however_often_they_are_refused(calls: list[str], streams: list[str]) -> None:
    """kube-scheduler's pods, which only hints and back-offs wake: two are evicted for a third, a fourth waits for a node that grows."""
    api = server("a")
    plain: Any = {"scheduler": "default-scheduler"}
    for number in range(2):
        api.pod(f"low-{number}", node="a", priority=1, **plain)
    api.pod("high", 2, priority=10, **plain)
    api.pod("late", 2, priority=1, nodeSelector={"disk": "ssd"}, **plain)
    read, _ = read_configurations([config_text(KUBE, "story")], plugins(None))
    chosen = Scheduler(Faulty(api, calls, streams), read, Options(schedulers=("default-scheduler",)), VirtualClock())
    async with running(chosen):
        await until(lambda: api.placed("high") == {"high": "a"}, within_s=2000)
        api.node("b", cpu=1, labels={"disk": "ssd"})
        await asyncio.sleep(5)
        api.node("b", cpu=2, labels={"disk": "ssd"})
        await until(lambda: api.placed("late") == {"late": "b"}, within_s=2000)
        await asyncio.sleep(60)
        chosen.cluster.check()
    assert not api.breaches


class Watched(Seat):
    """A seat whose every write must find its name in the lease on the server."""

    def __init__(self, api: MemoryServer, name: str, intruders: list[str]) -> None:
        super().__init__(api, name)
        self._api, self._name, self._intruders = api, name, intruders

    async def _call(self, make: Callable[[], Any]) -> Any:
        async def written() -> Any:
            holder = self._api.found(LEASES, LOCK.name, LOCK.namespace)["spec"]["holderIdentity"]
            if holder != self._name:
                self._intruders.append(f"{self._name} wrote while {holder} led")
            return await make()

        return await super()._call(written)


async def two_schedulers_fight_for_the_lease(cuts: list[tuple[bool, bool, float]]) -> None:
    """The links of either to the lease and to the rest are cut and mended; whoever loses the lead is started again, as a new process."""
    api = server("a", "b", "c")
    intruders: list[str] = []
    seats: dict[bool, Watched] = {}

    async def replica(which: bool) -> None:
        for life in range(1000):
            seat = seats[which] = Watched(api, f"{which}-{life}", intruders)
            electing = asyncio.create_task(seat.election.run())
            try:
                await seat.election.won.wait()
                await Scheduler(seat, policy(), Options(), VirtualClock()).run()
            except LostLead:
                electing.cancel()
                await asyncio.gather(electing, return_exceptions=True)

    replicas = [asyncio.create_task(replica(which)) for which in (False, True)]
    for number, (which, lease, pause_s) in enumerate(cuts):
        api.gang(f"g{number}", pods=1)
        await asyncio.sleep(pause_s)
        way = seats[which].wire if lease else seats[which]
        way.cut = not way.cut
    for seat in seats.values():
        seat.cut = seat.wire.cut = False
    await until(lambda: len(api.placed()) == len(cuts), within_s=2000)
    for task in replicas:
        task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.gather(*replicas)
    assert not api.breaches and not intruders


STORIES: dict[Story, tuple[st.SearchStrategy[Any], ...]] = {
    all_gangs_run_in_the_end: (calls, streams),
    gangs_take_turns_and_nothing_is_lost: (calls, streams),
    nobody_is_evicted_for_nothing: (calls, streams),
    a_scheduler_that_is_killed_at_any_instant_leaves_nothing_behind: (calls, streams, instants),
    plain_pods_run_in_the_end_however_often_they_are_refused: (calls, streams),
    two_schedulers_fight_for_the_lease: (cuts,),
}
each_promise = pytest.mark.parametrize("promise", STORIES, ids=lambda promise: promise.__name__)


def tell(promise: Story, times: int) -> None:
    @settings(max_examples=times, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*STORIES[promise]))
    def story(drawn: tuple[Any, ...]) -> None:
        run(promise(*drawn), limit_s=5000)

    story()


@each_promise
def test_promises_hold_under_faults(promise: Story) -> None:
    tell(promise, QUICK)


@pytest.mark.nightly
@each_promise
def test_promises_hold_under_many_faults(promise: Story) -> None:
    tell(promise, NIGHTLY)
