"""Nodes shared out by NodeShards on a real API server, with the rights of the installed role."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from realcluster import RealCluster
from replicas import replica, stage_for
from stage import until_true

from pumice.kube.client import Client
from pumice.kube.resource import NODE_SHARDS, ObjectRef
from pumice.kube.transport import PatchType, as_dict

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
