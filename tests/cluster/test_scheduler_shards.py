"""Nodes shared out by NodeShards, and jobs and nodes by a ring of replicas, on a real API server, with the rights of the installed role."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from installed import PROGRAM
from realcluster import RealCluster
from replicas import program, replica, stage_for
from stage import until_true

from pumice.api.kinds import CONFIG_MAPS, NODE_SHARDS, PODS, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import PatchType, as_dict
from pumice.live.scheduler.hash_ring import Ring, numbered

pytestmark = pytest.mark.cluster
Play = Callable[..., None]


def test_a_scheduler_keeps_to_its_shard_and_tells_what_it_uses(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            nodes = [await stage.node(name, cpu=2) for name in "ab"]
            shard = await stage.wide(NODE_SHARDS, "ours", spec={"nodesDesired": nodes[:1]})
            flags = ("--scheduler-sharding-mode=hard", f"--scheduler-sharding-name={shard}", "--leader-elect=false")
            async with replica(cluster, stage, tmp_path, *flags) as process:
                await stage.gang("train", pods=4, cpu=1, minimum=1)
                assert set((await stage.until_placed("train", 2)).values()) == {nodes[0]}
                await asyncio.sleep(1.0)
                assert len(await stage.placed("train")) == 2

                async def using(expected: list[str]) -> bool:
                    status = as_dict(await client.get(NODE_SHARDS, ObjectRef(shard))).get("status") or {}
                    return status.get("nodesInUse") == expected

                await until_true(lambda: using(nodes[:1]))
                await client.patch(NODE_SHARDS, ObjectRef(shard), {"spec": {"nodesDesired": nodes}}, PatchType.MERGE)
                await stage.until_placed("train", 4)
                await until_true(lambda: using(nodes))
                assert "403 Forbidden" not in process.log.read_text()

    play(story)


SHARDS = """
schedulerConfigs:
- {name: NAME-ours, policies: [{name: allocation-rate, arguments: {maxCPUUtil: 0.6}}]}
- {name: NAME-rest, policies: [{name: allocation-rate, arguments: {minCPUUtil: 0.7, maxCPUUtil: 1.0}}]}
shardSyncPeriod: 1s
"""


def test_the_sharding_controller_moves_nodes_between_schedulers_by_their_load(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    """A full node leaves the shard of the first scheduler, and comes back once its pods are gone."""

    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            nodes = [await stage.node(name, cpu=2) for name in "ab"]
            text = SHARDS.replace("NAME", namespace)
            await client.create(CONFIG_MAPS, {"metadata": {"name": "shards"}, "data": {"sharding.yaml": text}}, namespace)
            named = ["--sharding-configmap=shards", f"--sharding-configmap-namespace={namespace}"]
            flags = ["--controllers=sharding-controller", "--leader-elect=false", f"--kubeconfig={cluster.kubeconfig()}", *named]

            async def desired(name: str) -> set[str]:
                found = as_dict(await client.get(NODE_SHARDS, ObjectRef(f"{namespace}-{name}")))["spec"].get("nodesDesired") or []
                return set(found) & set(nodes)

            async def shared(ours: set[str], rest: set[str]) -> bool:
                try:
                    return (await desired("ours"), await desired("rest")) == (ours, rest)
                except ApiError:
                    return False

            sharded = ("--scheduler-sharding-mode=hard", f"--scheduler-sharding-name={namespace}-ours", "--leader-elect=false")
            async with program(tmp_path / "controllers.log", [PROGRAM, "controllers", *flags]) as controllers:
                await until_true(lambda: shared(set(nodes), set()))
                async with replica(cluster, stage, tmp_path, *sharded):
                    await stage.gang("large", pods=1, cpu=2, minimum=1)
                    (full,) = set((await stage.until_placed("large", 1)).values())
                    other = {*nodes} - {full}
                    await until_true(lambda: shared(other, {full}))
                    await stage.gang("small", pods=1, cpu=1, minimum=1)
                    assert set((await stage.until_placed("small", 1)).values()) == other
                    await client.delete(PODS, ObjectRef("large-0", namespace), grace_s=0)
                    await until_true(lambda: shared(set(nodes), set()))
                assert "level=warning" not in controllers.log.read_text()
            for name in ("ours", "rest"):
                await client.delete(NODE_SHARDS, ObjectRef(f"{namespace}-{name}"))

    play(story)


def owned(ring: Ring, prefix: str, each: int) -> dict[str, list[str]]:
    """So many names for each replica."""
    found: dict[str, list[str]] = {"volcano-0": [], "volcano-1": []}
    for number in count():
        names = found[ring.owner(f"{prefix}{number}")]
        if len(names) < each:
            names.append(f"{prefix}{number}")
        elif all(len(names) == each for names in found.values()):
            return found
    raise AssertionError


def test_replicas_share_the_jobs_and_the_nodes_and_each_has_a_lease_of_its_own(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            ring = numbered("volcano-0", 2)
            nodes, gangs = owned(ring, f"{namespace}-n", 2), owned(ring, "g", 3)
            for name in (*nodes["volcano-0"], *nodes["volcano-1"]):
                await stage.node(name.removeprefix(f"{namespace}-"), cpu=4)
            shared = {"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_NUM": "2"}
            first, second = ({**shared, "SCHEDULER_POD_NAME": f"volcano-{number}"} for number in range(2))
            async with replica(cluster, stage, tmp_path, environment=first), replica(cluster, stage, tmp_path, environment=second):
                for name in (*gangs["volcano-0"], *gangs["volcano-1"]):
                    await stage.gang(name, pods=2, cpu=1)
                placed = await stage.until_placed("g", 12)
                assert all(ring.owner(pod.rpartition("-")[0]) == ring.owner(node) for pod, node in placed.items())
                for name in (*gangs["volcano-0"], *gangs["volcano-1"]):
                    await stage.until_phase(name, "Running")

    play(story)
