"""Room by moves on a live cluster: the places are held, also by the scheduler that comes after this one."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from pumice.api.kinds import LEASES, POD_GROUPS, PODS, Kind
from pumice.client.failures import ApiError
from pumice.live.lifecycle import LostLead
from tests.live.memory import MemoryServer
from tests.live.seat import LOCK, Seat
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run

CONFIGURATION = """
actions: "enqueue, allocate, consolidate, backfill"
configurations:
- name: consolidate
  arguments: {minimumRunTime: 0s}
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""
NOTE = "pumice.io/held-places"
OWNER = [{"kind": "Job", "name": "j", "uid": "j", "controller": True}]


def in_pieces(count: int = 3) -> MemoryServer:
    """Nodes of 8, each with a job of one pod of 2."""
    api = server(*(f"n{number}" for number in range(count)), cpu=8)
    for number in range(count):
        api.put(
            POD_GROUPS,
            f"s{number}",
            metadata={"ownerReferences": OWNER},
            spec={"minMember": 1, "queue": "default"},
            status={"phase": "Running"},
        )
        api.pod(f"s{number}-0", 2, group=f"s{number}", node=f"n{number}")
    return api


def job(api: MemoryServer, name: str, cpu: int, created: str) -> None:
    api.put(POD_GROUPS, name, metadata={"creationTimestamp": created}, spec={"minMember": 1, "queue": "default"})
    api.pod(f"{name}-0", cpu, group=name)


def mover(api: MemoryServer) -> str:
    """The pod that has left."""
    return next(name for name in ("s0-0", "s1-0", "s2-0") if not any(pod["metadata"]["name"] == name for pod in api.all(PODS)))


def noted(api: MemoryServer) -> list[str]:
    return [group["metadata"]["name"] for group in api.all(POD_GROUPS) if (group["metadata"].get("annotations") or {}).get(NOTE)]


def test_a_mover_finds_its_place_although_another_scheduler_has_taken_over_and_others_want_it() -> None:
    async def story() -> None:
        api = in_pieces()
        async with scheduling(api, CONFIGURATION) as first:
            await first.synced.wait()
            job(api, "big", 8, "2023-11-14T22:10:00Z")
            await until(lambda: bool(api.deleted))
            gone = noted(api)
            first.metrics.measure(first.cluster)
            page = first.metrics.page()
            assert "\npumice_moves_total 1\n" in page and "\npumice_held_places 2\n" in page
        await until(lambda: len(api.all(PODS)) == 3)
        left = mover(api)
        assert sorted(gone) == ["big", left[:2]]
        async with scheduling(api, CONFIGURATION) as second:
            await second.synced.wait()
            for number in range(3):
                job(api, f"thief{number}", 5, "2023-11-14T22:05:00Z")
            await until(lambda: "big-0" in api.placed() and any(name.startswith("thief") for name in api.placed()))
            assert len(api.placed("thief")) == 1, "of two nodes with room for it one is held for the pod that comes"
            api.pod(left, 2, group=left[:2])
            await until(lambda: left in api.placed())
            await until(lambda: not noted(api))
            assert len(api.placed("thief")) == 1
        assert not api.breaches

    run(story())


def test_nobody_moves_before_his_place_is_noted() -> None:
    async def story() -> None:
        api = in_pieces()
        broken = True

        def refuse(verb: str, resource: Kind, name: str) -> None:
            if broken and resource == POD_GROUPS:
                raise ApiError(500, "InternalError", "no PodGroup can be written")

        api.before_write = refuse
        async with scheduling(api, CONFIGURATION) as first:
            await first.synced.wait()
            job(api, "big", 8, "2023-11-14T22:10:00Z")
            await asyncio.sleep(60)
            assert not api.deleted, "whoever took over now would not know of the places"
            broken = False
            await until(lambda: "big-0" in api.placed())
        assert not api.breaches

    run(story())


@pytest.mark.parametrize("seed", range(4))
def test_everybody_runs_in_the_end_however_often_schedulers_end_in_the_middle(seed: int) -> None:
    """Schedulers end at any instant, requests under way are lost, and pods are made anew late."""

    async def story() -> None:
        random, api = Random(seed), in_pieces()
        sizes, thieves = {f"s{number}-0": 2 for number in range(3)}, set[str]()

        async def controllers() -> None:
            """Make pods of the three jobs anew, some time after they have left. As soon as one goes, others want its place."""
            missing: dict[str, float] = {}
            while True:
                await asyncio.sleep(0.1)
                if api.deleted and not thieves:
                    thieves.update(f"thief{number}" for number in range(3))
                    for name in sorted(thieves):
                        job(api, name, 5, "2023-11-14T22:05:00Z")
                there = {pod["metadata"]["name"] for pod in api.all(PODS)}
                for name in sizes.keys() - there:
                    now = asyncio.get_running_loop().time()
                    if now >= missing.setdefault(name, now + random.uniform(0, 20)):
                        api.pod(name, sizes[name], group=name[:2])
                        del missing[name]

        made_anew = asyncio.create_task(controllers())
        job(api, "big", 8, "2023-11-14T22:10:00Z")
        for _ in range(12):
            async with scheduling(api, CONFIGURATION):
                await asyncio.sleep(random.choice((0.05, 0.2, 0.6, 2, 8)))
            await asyncio.sleep(random.uniform(0, 3))
        async with scheduling(api, CONFIGURATION):
            await until(lambda: sizes.keys() | {"big-0"} <= api.placed().keys())
            await until(lambda: not noted(api))
        made_anew.cancel()
        await asyncio.gather(made_anew, return_exceptions=True)
        assert len(api.deleted) == 1, "one pod had to move, once"
        assert len(api.placed("thief")) == 1 and not api.breaches

    run(story())


async def replica(api: MemoryServer, name: str) -> None:
    """A scheduler that waits to lead, and is started anew whenever it has lost the lead."""
    while True:
        seat = Seat(api, name)
        electing = asyncio.create_task(seat.election.run())
        try:
            await seat.election.won.wait()
            async with scheduling(seat, CONFIGURATION):
                while seat.election.leading():
                    await asyncio.sleep(0.1)
        except LostLead:
            pass
        finally:
            electing.cancel()
            await asyncio.gather(electing, return_exceptions=True)


@pytest.mark.parametrize("lost_at", range(1, 9))
def test_nobody_loses_his_place_if_the_lead_is_lost_at_any_write_of_a_plan(lost_at: int) -> None:
    """Another replica has the lease from one instant to the next, in the middle of what the leader writes; again some writes later."""

    async def story() -> None:
        api = in_pieces(4)
        movers, written, taken = {f"s{number}-0" for number in range(4)}, 0, list[str]()
        waits = False

        def steal(verb: str, resource: Kind, name: str) -> None:
            nonlocal written
            if not waits or resource == LEASES:
                return
            written += 1
            if written in (lost_at, lost_at + 4):
                lease = api.found(LEASES, LOCK.name, LOCK.namespace)["spec"]
                taken.append("second" if lease["holderIdentity"] == "first" else "first")
                api.put(LEASES, LOCK.name, LOCK.namespace, spec=lease | {"holderIdentity": taken[-1]})

        async def controllers() -> None:
            """Make the movers' pods anew, a while after they have left. As soon as one goes, others want its place."""
            missing: dict[str, float] = {}
            wanted = True
            while True:
                await asyncio.sleep(0.1)
                if api.deleted and wanted:
                    wanted = False
                    for number in range(4):
                        job(api, f"thief{number}", 4, "2023-11-14T22:05:00Z")
                now = asyncio.get_running_loop().time()
                for name in movers - {pod["metadata"]["name"] for pod in api.all(PODS)}:
                    if now >= missing.setdefault(name, now + 7):
                        api.pod(name, 2, group=name[:2])
                        del missing[name]

        api.before_write = steal
        tasks = [asyncio.create_task(replica(api, name)) for name in ("first", "second")]
        tasks.append(asyncio.create_task(controllers()))
        await until(lambda: bool(api.all(LEASES)))
        await asyncio.sleep(5)
        waits = True
        api.gang("big", pods=2, cpu=8)
        await until(lambda: movers | {"big-0", "big-1"} <= api.placed().keys())
        await until(lambda: not noted(api))
        assert len(taken) == 2 and len(api.placed("thief")) == 2 and not api.breaches
        assert len(set(api.deleted)) == len(api.deleted), "nobody moves twice"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(story())


def test_a_place_that_nobody_takes_is_given_back_and_counted() -> None:
    async def story() -> None:
        api = in_pieces()
        async with scheduling(api, CONFIGURATION.replace("0s}", "0s, holdFor: 1m}")) as scheduler:
            await scheduler.synced.wait()
            job(api, "big", 8, "2023-11-14T22:10:00Z")
            await until(lambda: "big-0" in api.placed())
            await until(lambda: not noted(api))
            scheduler.metrics.measure(scheduler.cluster)
            page = scheduler.metrics.page()
            assert "\npumice_held_places 0\n" in page and "\npumice_held_places_given_back_total 1\n" in page

    run(story())
