"""Several replicas: one leads, and whoever does not lead writes nothing."""

from __future__ import annotations

import asyncio

import pytest

from pumice.api.kinds import EVENTS, LEASES, POD_GROUPS, PODS, Kind
from pumice.live.lifecycle import LostLead
from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.live.seat import LOCK, Seat
from tests.live.stories import policy, server, until
from tests.live.virtual import VirtualClock, run

HOUR_S = 3600.0


async def replica(seat: Seat) -> None:
    """As the process does it: wait to lead, then read the cluster and schedule."""
    electing = asyncio.create_task(seat.election.run())
    try:
        await seat.election.won.wait()
        await Scheduler(seat, policy(), Options(), VirtualClock()).run()
    finally:
        electing.cancel()
        await asyncio.gather(electing, return_exceptions=True)


def test_a_leader_that_is_cut_off_writes_nothing_more_even_when_it_is_back() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        seat = Seat(api, "first")
        running = asyncio.create_task(replica(seat))
        api.gang("one", pods=1)
        await until(lambda: len(api.placed("one")) == 1)
        seat.wire.cut = True  # the lease cannot be renewed, everything else can be written
        await asyncio.sleep(11)
        assert not seat.election.leading()
        before = list(api.writes)
        api.gang("two", pods=1)
        with pytest.raises(LostLead):
            await asyncio.wait_for(running, 60)
        await asyncio.sleep(30)
        assert api.writes == before and not api.placed("two")

    run(story())


def test_a_successor_takes_over_within_the_lease_and_finishes_the_work() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        first, second = Seat(api, "first"), Seat(api, "second")
        running = [asyncio.create_task(replica(first))]
        await first.election.won.wait()
        running.append(asyncio.create_task(replica(second)))
        api.gang("one", pods=2)
        await until(lambda: len(api.placed("one")) == 2)
        first.cut_off()
        api.gang("two", pods=2)
        began = VirtualClock().now()
        await until(lambda: len(api.placed("two")) == 2)
        assert VirtualClock().now() - began < 15 + 2 * 2.4 + 1
        lease = api.found(LEASES, "volcano", "volcano-system")["spec"]
        assert lease["holderIdentity"] == "second" and lease["leaseTransitions"] == 1
        assert not api.breaches
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    run(story())


@pytest.mark.parametrize(("ahead_s", "other_s"), [(HOUR_S, 0.0), (-HOUR_S, 0.0), (0.0, HOUR_S), (0.0, -HOUR_S)])
def test_a_clock_that_is_an_hour_off_takes_no_lease_that_is_renewed_and_every_lease_that_is_not(ahead_s: float, other_s: float) -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        first, second = Seat(api, "first", ahead_s=ahead_s), Seat(api, "second", ahead_s=other_s)
        running = [asyncio.create_task(replica(first))]
        await first.election.won.wait()
        running.append(asyncio.create_task(replica(second)))
        await asyncio.sleep(40)
        assert first.election.leading() and not second.election.leading()
        api.gang("one", pods=2)
        await until(lambda: len(api.placed("one")) == 2)
        first.cut_off()
        api.gang("two", pods=2)
        await until(lambda: len(api.placed("two")) == 2)
        assert second.election.leading() and not first.election.leading() and not api.breaches
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    run(story())


def test_a_lease_that_is_stolen_in_the_middle_of_a_cycle_costs_no_pod_its_node_and_no_gang_a_pod() -> None:
    async def story() -> None:
        api = server("a", "b", "c", cpu=2)
        first, second = Seat(api, "first"), Seat(api, "second")
        running = [asyncio.create_task(replica(first))]
        await first.election.won.wait()
        running.append(asyncio.create_task(replica(second)))
        binds: list[str] = []

        def steal(verb: str, resource: Kind, name: str) -> None:
            """At the third bind, the server gives the lease to the other one, whatever it said before."""
            if (verb, resource) != ("create", PODS):
                return
            binds.append(name)
            if len(binds) == 3:
                lease = api.found(LEASES, LOCK.name, LOCK.namespace)["spec"]
                api.put(LEASES, LOCK.name, LOCK.namespace, spec=lease | {"holderIdentity": "second"})

        api.before_write = steal
        api.gang("one", pods=6)
        await until(lambda: len(api.placed("one")) == 6)
        where = api.placed("one")
        await until(second.election.leading)
        api.gang("two", pods=1)
        await asyncio.sleep(20)
        assert api.placed("one") == where and not api.breaches and not api.placed("two") and not first.election.leading()
        api.node("d")
        with pytest.raises(LostLead):
            await asyncio.wait_for(running[0], 60)
        await until(lambda: len(api.placed("two")) == 1)
        running[1].cancel()
        await asyncio.gather(*running, return_exceptions=True)

    run(story())


def test_two_schedulers_side_by_side_place_each_their_own() -> None:
    async def story() -> None:
        api = server("a", cpu=4)
        for name in ("volcano", "other"):
            for number in range(2):
                api.put(POD_GROUPS, f"{name}{number}", spec={"minMember": 1, "queue": "default"})
                api.pod(f"{name}{number}", group=f"{name}{number}", scheduler=name)
        ours = [Scheduler(api, policy(), Options(schedulers=(name,)), VirtualClock()) for name in ("volcano", "other")]
        running = [asyncio.create_task(scheduler.run()) for scheduler in ours]
        await until(lambda: len(api.placed()) == 4)
        await asyncio.sleep(1)
        keep_raw = {
            (e["involvedObject"]["name"].rstrip("01"), e["source"]["component"]) for e in api.all(EVENTS) if e["reason"] == "Scheduled"
        }
        assert {("volcano", "volcano"), ("other", "other")} <= keep_raw
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    run(story())


def test_of_a_gang_only_the_scheduler_speaks_that_places_its_pods() -> None:
    """Whatever becomes of it: the other one does not see its pods as long as they have no node, nor once they have ended."""

    async def story() -> None:
        api = server("a", cpu=3)
        ours = [Scheduler(api, policy(), Options(schedulers=(name,)), VirtualClock()) for name in ("volcano", "other")]
        running = [asyncio.create_task(scheduler.run()) for scheduler in ours]

        async def settles_in(phase: str) -> None:
            await until(lambda: api.found(POD_GROUPS, "gang")["status"].get("phase") == phase)
            await asyncio.sleep(5)
            before = len(api.writes)
            await asyncio.sleep(10)
            assert "podgroups" not in [plural for _, plural, _, _ in api.writes[before:]]
            assert api.found(POD_GROUPS, "gang")["status"]["phase"] == phase

        api.gang("gang", pods=3, cpu=1)
        await until(lambda: api.running() == 3)
        await settles_in("Running")
        api.remove(PODS, "gang-1")
        api.pod("foreign", 1, node="a", scheduler="third")
        api.pod("gang-1", 1, group="gang")
        await settles_in("Unknown")
        api.remove(PODS, "foreign")
        await until(lambda: api.running() == 3)
        for pod in api.all(PODS):
            api.put(PODS, pod["metadata"]["name"], metadata=pod["metadata"], status=pod["status"] | {"phase": "Succeeded"})
        await settles_in("Completed")
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    run(story())


def test_a_gang_of_which_we_place_some_pods_is_ours_whoever_places_the_others() -> None:
    async def story() -> None:
        api = server("a", cpu=3)
        api.gang("gang", pods=1, minimum=2)
        api.pod("theirs", group="gang", node="a", scheduler="third")
        deciding = asyncio.create_task(Scheduler(api, policy(), Options(), VirtualClock()).run())
        await until(lambda: api.found(POD_GROUPS, "gang").get("status", {}).get("phase") == "Running")
        deciding.cancel()
        await asyncio.gather(deciding, return_exceptions=True)

    run(story())
