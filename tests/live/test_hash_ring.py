"""Replicas that all work, each for its share of the jobs on its share of the nodes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from pumice.api.kinds import POD_GROUPS, PODS
from pumice.api.meta import Metadata
from pumice.api.structs import convert
from pumice.live.scheduler.hash_ring import Ring, numbered
from pumice.live.scheduler.options import Options, Sharding
from tests.live.memory import MemoryServer
from tests.live.stories import scheduling, server, until
from tests.live.virtual import run

NAMES = [f"n{number}" for number in range(1000)]


def meta(name: str, *, owner: str = "", group: str = "", uid: str = "u") -> Metadata:
    owners = [{"name": owner}] if owner else []
    annotations = {"scheduling.k8s.io/group-name": group} if group else {}
    return convert({"name": name, "uid": uid, "ownerReferences": owners, "annotations": annotations}, Metadata)


def owners(count: int) -> dict[str, str]:
    ring = numbered("s-0", count)
    return {name: ring.owner(name) for name in NAMES}


def test_everything_is_somebodys_and_nobody_has_much_more_than_his_share() -> None:
    shares = Counter(owners(4).values())
    assert set(shares) == {"s-0", "s-1", "s-2", "s-3"}
    assert all(150 < share < 350 for share in shares.values())
    assert set(owners(1).values()) == {"s-0"}


def test_one_more_replica_takes_from_the_others_and_moves_nothing_between_them() -> None:
    before, after = owners(3), owners(4)
    assert {after[name] for name in NAMES if after[name] != before[name]} == {"s-3"}


def test_a_jobs_pods_and_its_group_are_one_replicas() -> None:
    ring = numbered("s-0", 3)
    for number in range(60):
        job, pod = f"job{number}", f"pod{number}"
        of_job = ring.has_job_of(meta(f"{job}-8a7b", owner=job))
        assert ring.has_job_of(meta(f"{job}-task-0", owner=job, group=f"{job}-8a7b")) == of_job
        of_group = ring.has_job_of(meta(job))
        assert ring.has_job_of(meta(f"{job}-0", group=job)) == of_group
        alone = ring.has_job_of(meta(pod, uid=f"uid{number}"))
        assert ring.has_job_of(meta(pod, uid=f"uid{number}", group=f"podgroup-uid{number}")) == alone
        assert ring.has_job_of(meta(f"podgroup-uid{number}", owner=pod)) == alone


def sharing(which: int) -> Options:
    return Options(sharding=Sharding(ring=numbered(f"s-{which}", 2)))


def of(which: int, prefix: str) -> list[str]:
    """Names that are a replica's."""
    ring = numbered("s-0", 2)
    return [name for name in (f"{prefix}{number}" for number in range(50)) if ring.owner(name) == f"s-{which}"]


def test_two_replicas_place_all_jobs_each_its_own_on_its_own_nodes() -> None:
    async def story() -> None:
        nodes = [*of(0, "n")[:2], *of(1, "n")[:2]]
        api = server(*nodes, cpu=4)
        gangs = [*of(0, "g")[:3], *of(1, "g")[:2]]
        async with scheduling(api, options=sharing(0)), scheduling(api, options=sharing(1)):
            for name in gangs:
                api.gang(name, pods=2)
            await until(lambda: api.running() == 10)
            await asyncio.sleep(10)
            keep_raw = len(api.writes)
            await asyncio.sleep(60)
            assert len(api.writes) == keep_raw, "they do not overwrite each other"
        ring = Ring("", ["s-0", "s-1"])
        assert all(ring.owner(pod.rpartition("-")[0]) == ring.owner(node) for pod, node in api.placed().items())
        assert all(api.found(POD_GROUPS, name)["status"]["phase"] == "Running" for name in gangs)
        assert not api.breaches and len([write for write in api.writes if write[2] == "binding"]) == 10

    run(story())


def test_pods_of_another_replica_take_room_on_our_nodes_until_they_end() -> None:
    async def story() -> None:
        (node,), (gang,), theirs = of(0, "n")[:1], of(0, "g")[:1], of(1, "p")[:3]
        api: MemoryServer = server(node, cpu=2)
        existing: Any = {"node": node}
        api.pod(theirs[0], **existing)
        api.pod(theirs[1])
        async with scheduling(api, options=sharing(0)) as scheduler:
            api.gang(gang, pods=2)
            await asyncio.sleep(10)
            assert list(api.placed()) == [theirs[0]]
            assert f"default/{theirs[1]}" not in scheduler.cluster.tasks
            api.remove(PODS, theirs[0])
            await until(lambda: len(api.placed(gang)) == 2)

    run(story())
