"""A scheduler is killed between the binds of a gang: the next one finishes the gang, or gives back what it has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from realcluster import RealCluster
from replicas import replica, stage_for, until_leader
from stage import Stage, until_true

from pumice.api.kinds import POD_GROUPS, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import PatchType

pytestmark = pytest.mark.cluster
Play = Callable[..., None]
SLOW = ("--kube-api-qps=10", "--kube-api-burst=1")
OWNER = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "work", "uid": "u", "controller": True}


@asynccontextmanager
async def half_placed(cluster: RealCluster, client: Client, namespace: str, folder: Path) -> AsyncIterator[Stage]:
    """Some of the 32 pods of a gang have nodes, and nobody schedules."""
    async with stage_for(client, namespace) as stage:
        await stage.node("a", cpu=20)
        await stage.node("b", cpu=20)
        await stage.gang("work", pods=32, cpu=1)
        async with replica(cluster, stage, folder, *SLOW) as first:
            await until_leader(client, namespace)
            await stage.until_placed("work", 4)
            await first.kill()
        assert len(await stage.placed("work")) < 32
        yield stage


def test_the_next_scheduler_finishes_it_before_it_begins_a_more_important_one(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with half_placed(cluster, client, namespace, tmp_path) as stage:
            high = await stage.priority_class("high", 1000)
            await stage.gang("other", pods=30, cpu=1, priority_class=high)
            async with replica(cluster, stage, tmp_path, user="standby"):
                await stage.until_placed("work", 32)
                assert not await stage.placed("other")

    play(story)


@pytest.mark.nightly
def test_the_next_scheduler_gives_the_places_back_when_there_is_no_room(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with half_placed(cluster, client, namespace, tmp_path) as stage:
            owned = {"metadata": {"ownerReferences": [OWNER]}}
            await client.patch(POD_GROUPS, ObjectRef("work", namespace), owned, PatchType.MERGE)
            await stage.change_node("b", spec={"unschedulable": True})

            async def nobody_stands() -> bool:
                return not await stage.placed("work")

            async with replica(cluster, stage, tmp_path, user="standby"):
                await until_true(nobody_stands)

    play(story)
