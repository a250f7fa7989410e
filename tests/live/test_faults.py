"""Whatever goes wrong between the scheduler and the server, and whoever is killed: what is promised holds, and the end is the same.

Never a double bind, never a node over its allocatable, never an eviction whose beneficiary does not run, every job in the end as it would
have been without the faults. Each situation is told under drawn faults; `make test` does so a few times, the nightly profile
(`pytest -m nightly`) thousands.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pumice.api.annotations import QUEUE_GATE
from pumice.api.kinds import LEASES, PODS
from pumice.client.reflector import Pace
from pumice.client.transport import Transport
from pumice.extensions import plugins
from pumice.live.lifecycle import LostLead
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.framework.decisions import Decisions
from tests.live.faults import CALLS, WRITES, Faults, Faulty, Plan, outages, plans, queues
from tests.live.memory import MemoryServer
from tests.live.seat import CALM, LOCK, Seat
from tests.live.situations import KUBE, PLAIN, SITUATIONS, Outcome, Situation, outcome, runs, volume_controller, with_fewer_victims_left
from tests.live.stories import running, scheduling, server, until
from tests.live.virtual import VirtualClock, run
from tests.samples import times

QUICK, NIGHTLY = times(3), 1000
SMALL_PAGES = Pace(page=2)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Witnessed(Scheduler):
    """Notes for whom each pod is evicted: by the victim's uid, whom its last eviction was for."""

    def __init__(self, transport: Transport, situation: Situation, evicted: dict[str, str]) -> None:
        read, _ = read_configurations([config_text(situation.conf, "story")], plugins(None))
        options = Options(schedulers=(situation.scheduler,), volume_timeout_s=60.0)
        super().__init__(transport, read, options, VirtualClock(), pace=SMALL_PAGES)
        self._evicted = evicted

    async def turn(self) -> Decisions:
        decisions = await super().turn()
        self._evicted.update({eviction.task.uid: eviction.beneficiary for eviction in decisions.evictions})
        return decisions


async def background(api: MemoryServer, plan: Plan) -> None:
    """What goes on beside the scheduler: the server is away now and then, volumes are made."""
    making = asyncio.create_task(volume_controller(api))
    for after_s, lasts_s, forgets in plan.outages:
        await asyncio.sleep(after_s)
        await api.outage(lasts_s, forgets=forgets)
    await making


async def played(situation: Situation, plan: Plan, ended: Callable[[MemoryServer, bool], bool]) -> MemoryServer:
    """The situation under the plan, until it has ended, and one minute more. `ended` is told whether a decision may be half carried out."""
    api, faults, evicted = situation.build(), Faults(plan), dict[str, str]()
    beside = asyncio.create_task(background(api, plan))
    for life_s in plan.lives_s:
        way = Faulty(api, faults)
        async with running(Witnessed(way, situation, evicted)):
            await asyncio.sleep(life_s)
            way.dead = True
    async with running(Witnessed(Faulty(api, faults), situation, evicted)) as scheduler:

        def right() -> bool:
            return ended(api, bool(plan.lives_s or scheduler.metrics.evictions.value("failed")))

        try:
            await until(right, within_s=6000, every_s=1.0)
        except TimeoutError:
            pytest.fail(f"it ended otherwise: {outcome(api)}")
        await asyncio.sleep(60)
        assert right(), f"it did not stay so: {outcome(api)}"
        scheduler.cluster.check()
    beside.cancel()
    await asyncio.gather(beside, return_exceptions=True)
    in_vain = [uid for uid in api.deleted if not runs(api, evicted[uid])]
    assert not in_vain, f"evicted for nobody: {in_vain}"
    assert not api.breaches, api.breaches
    return api


@cache
def calm_end(name: str) -> Outcome:
    """How it ends without faults."""
    waits = iter(range(60))  #: turns of `until`
    return outcome(run(played(SITUATIONS[name], CALM, lambda api, halved: next(waits, None) is None), limit_s=5000))


async def ends_as_without_faults(name: str, expected: Outcome, plan: Plan) -> None:
    await played(SITUATIONS[name], plan, lambda api, halved: is_end(api, expected, halved))


GATES_TOLD = re.compile(rf" Held by scheduling gates: \d+ {re.escape(QUEUE_GATE)}\.")


def is_end(api: MemoryServer, expected: Outcome, halved: bool) -> bool:
    found = outcome(api)
    gated = {pod["metadata"]["name"] for pod in api.all(PODS) if pod["spec"].get("schedulingGates")}  # by a queue that filled meanwhile
    expected = expected._replace(keep_raw={name: words for name, words in expected.keep_raw.items() if name not in gated})
    if gated:
        keep_raw = {name: (status, GATES_TOLD.sub("", words)) for name, (status, words) in found.keep_raw.items()}
        found = found._replace(keep_raw=keep_raw)
    return found == expected or (halved and with_fewer_victims_left(found, expected))


def test_a_pod_that_was_read_while_its_watch_was_behind_does_not_go_back_in_time() -> None:
    async def story() -> None:
        api = server("a")
        api.gang("work", pods=1)
        async with scheduling(Faulty(api, Faults(Plan(streams={"pods": ["very late", "silence"]})))) as scheduler:
            await until(lambda: outcome(api).phases["work"] == ("Running", 1))
            assert scheduler.metrics.expired.value() == 1
            await asyncio.sleep(60)
            assert outcome(api).phases["work"] == ("Running", 1)

    run(story())


# ---- stories in which something else happens, too


async def gangs_take_turns(plan: Plan) -> None:
    """Two gangs that do not fit together: the second runs when the first is over."""
    api = server("a", "b")
    api.gang("first", pods=3)
    api.gang("second", pods=3)
    beside = asyncio.create_task(background(api, plan))
    async with running(Witnessed(Faulty(api, Faults(plan)), Situation(lambda: api), {})):
        await until(lambda: api.running() >= 3, within_s=4000)
        await asyncio.sleep(60)
        assert not api.breaches, api.breaches
        assert len({name.split("-")[0] for name in api.placed()}) == 1, "a gang is never half placed beside another"
        for name in api.placed():
            api.put(PODS, name, status={"phase": "Succeeded"})
        await until(lambda: api.running() == 3, within_s=4000)
    beside.cancel()
    assert not api.breaches, api.breaches


async def a_plain_pod_waits_for_a_node_that_grows(plan: Plan) -> None:
    """Only hints and back-offs wake it."""
    api = server("a")
    api.pod("late", 2, nodeSelector={"disk": "ssd"}, **PLAIN)
    beside = asyncio.create_task(background(api, plan))
    chosen = Witnessed(Faulty(api, Faults(plan)), Situation(lambda: api, KUBE, "default-scheduler"), {})
    async with running(chosen):
        await asyncio.sleep(5)
        api.node("b", cpu=1, labels={"disk": "ssd"})
        await asyncio.sleep(5)
        api.node("b", cpu=2, labels={"disk": "ssd"})
        await until(lambda: api.placed("late") == {"late": "b"}, within_s=4000)
        await asyncio.sleep(60)
        chosen.cluster.check()
    beside.cancel()
    assert not api.breaches, api.breaches


STORIES = (gangs_take_turns, a_plain_pod_waits_for_a_node_that_grows)


@pytest.mark.parametrize("fault", ["lose request", "403", "500"])
def test_a_gang_whose_binds_fail_for_a_while_keeps_its_room(fault: str) -> None:
    run(gangs_take_turns(Plan({"bind": [fault] * 17})), limit_s=20_000)


# ---- two schedulers

#: a request that is on its way for longer than a lease lasts cannot be called back
IN_TIME = [fault for fault in CALLS if fault != "late request"]
cuts = st.lists(st.tuples(st.booleans(), st.sampled_from(["lease", "rest", "kill"]), st.floats(0.0, 25.0)), max_size=6)
rough = st.builds(lambda calls, outages: Plan(calls, outages=outages), queues(WRITES, IN_TIME, 6), outages)
leases = st.builds(lambda calls: Plan(calls), queues(["get", "other"], IN_TIME, 6))


class Watched(Seat):
    """A seat whose every write must find its name in the lease on the server."""

    def __init__(self, api: MemoryServer, name: str, faults: Faults, of_lease: Faults, intruders: list[str]) -> None:
        super().__init__(api, name, faults, of_lease)
        self._api, self._name, self._intruders = api, name, intruders

    async def _call(self, kind: str, make: Callable[[], Awaitable[Any]]) -> Any:
        async def written() -> Any:
            holder = self._api.found(LEASES, LOCK.name, LOCK.namespace)["spec"]["holderIdentity"]
            if holder != self._name and kind != "get":
                self._intruders.append(f"{self._name} wrote while {holder} led")
            return await make()

        return await super()._call(kind, written)


class Fight:
    """Two replicas over one server; whoever loses the lead or is killed is started again, as a new process."""

    def __init__(self, situation: Situation, plan: Plan, of_lease: Plan) -> None:
        self.api = situation.build()
        self.intruders: list[str] = []
        self.evicted: dict[str, str] = {}
        self.seats: dict[bool, Watched] = {}
        self._situation = situation
        self._faults, self._of_lease = Faults(plan), Faults(of_lease)

    async def replica(self, which: bool) -> None:
        for life in range(1000):
            seat = self.seats[which] = Watched(self.api, f"{which}-{life}", self._faults, self._of_lease, self.intruders)
            electing = asyncio.create_task(seat.election.run())
            working = asyncio.create_task(self._work(seat))
            try:
                while not working.done() and not seat.dead:
                    await asyncio.sleep(0.1)
                if working.done():
                    working.result()
            finally:
                for task in (electing, working):
                    task.cancel()
                await asyncio.gather(electing, working, return_exceptions=True)

    async def _work(self, seat: Watched) -> None:
        await seat.election.won.wait()
        with suppress(LostLead):
            await Witnessed(seat, self._situation, self.evicted).run()

    async def disturb(self, cuts: list[tuple[bool, str, float]]) -> None:
        for which, link, pause_s in cuts:
            await asyncio.sleep(pause_s)
            seat = self.seats[which]
            if link == "kill":
                seat.killed()
                continue
            way = seat.wire if link == "lease" else seat
            way.cut = not way.cut
        for seat in self.seats.values():
            seat.cut = seat.wire.cut = False


async def a_fight_for_the_lease_changes_nothing(
    name: str, expected: Outcome, cuts: list[tuple[bool, str, float]], plan: Plan, of_lease: Plan
) -> None:
    fight = Fight(SITUATIONS[name], plan, of_lease)
    api = fight.api
    tasks = [asyncio.create_task(work) for work in (fight.replica(False), fight.replica(True), background(api, plan))]
    await asyncio.sleep(0.1)
    await fight.disturb(cuts)
    await until(lambda: is_end(api, expected, True), within_s=6000, every_s=1.0)
    await asyncio.sleep(60)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert is_end(api, expected, True)
    assert not api.breaches and not fight.intruders, (api.breaches, fight.intruders)
    assert all(runs(api, fight.evicted[uid]) for uid in api.deleted)


# ---- told


def tell(examples: int, story: Callable[..., Any], *drawn: st.SearchStrategy[Any]) -> None:
    @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.tuples(*drawn))
    def once(values: tuple[Any, ...]) -> None:
        run(story(*values), limit_s=20_000)

    once()


each_situation = pytest.mark.parametrize("name", SITUATIONS)
each_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
fought_over = pytest.mark.parametrize("name", ["room for all", "preempt", "reclaim", "plain pods"])


def end_under_faults(name: str, examples: int) -> None:
    tell(examples, partial(ends_as_without_faults, name, calm_end(name)), plans)


def end_of_fight(name: str, examples: int) -> None:
    tell(examples, partial(a_fight_for_the_lease_changes_nothing, name, calm_end(name)), cuts, rough, leases)


@each_situation
def test_it_ends_as_without_faults(name: str) -> None:
    end_under_faults(name, QUICK)


@pytest.mark.nightly
@each_situation
def test_it_ends_as_without_many_faults(name: str) -> None:
    end_under_faults(name, NIGHTLY)


@each_story
def test_promises_hold_under_faults(story: Callable[..., Any]) -> None:
    tell(QUICK, story, plans)


@pytest.mark.nightly
@each_story
def test_promises_hold_under_many_faults(story: Callable[..., Any]) -> None:
    tell(NIGHTLY, story, plans)


@fought_over
def test_two_schedulers_fight_for_the_lease_and_it_ends_as_it_would_have(name: str) -> None:
    end_of_fight(name, QUICK)


@pytest.mark.nightly
@fought_over
def test_two_schedulers_fight_many_times_for_the_lease_and_it_ends_as_it_would_have(name: str) -> None:
    end_of_fight(name, NIGHTLY)
