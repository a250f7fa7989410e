"""Claims of devices on a real API server, which checks every allocation and who may write it: with the rights of the installed role."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from realcluster import RealCluster
from replicas import replica, stage_for
from stage import Stage, until_true

from pumice.api.kinds import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import as_dict

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

USING = [{"name": "g", "resourceClaimName": "gpus"}]


async def devices(stage: Stage, node: str, *names: str) -> None:
    driver = f"{stage.namespace}.example.com"
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    config = {"opaque": {"driver": driver, "parameters": {"fast": True}}}
    await stage.wide(DEVICE_CLASSES, "gpu", spec={"selectors": [selector], "config": [config]})
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": [{"name": name} for name in names]}
    await stage.wide(RESOURCE_SLICES, f"slice-{node[-1]}", spec=spec)


async def claim(stage: Stage, name: str, count: int = 1) -> None:
    exactly = {"deviceClassName": f"{stage.namespace}-gpu", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    await stage.client.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": spec}, stage.namespace)


async def status(stage: Stage, name: str) -> dict[str, Any]:
    return as_dict(await stage.client.get(RESOURCE_CLAIMS, ObjectRef(name, stage.namespace))).get("status") or {}


def test_devices_are_allocated_and_reserved_and_shared_claims_have_all_their_pods(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=8)
            node = await stage.node("b", cpu=8)
            await devices(stage, node, "gpu-0", "gpu-1")
            await claim(stage, "gpus")
            async with replica(cluster, stage, tmp_path, "--leader-elect=false") as process:
                await stage.gang("train", pods=2, cpu=1, resourceClaims=USING)
                assert set((await stage.until_placed("train", 2)).values()) == {node}
                found = await status(stage, "gpus")
                (result,) = found["allocation"]["devices"]["results"]
                assert (result["request"], result["pool"], result["device"]) == ("r", node, "gpu-0")
                assert sorted(user["name"] for user in found["reservedFor"]) == ["train-0", "train-1"]

                await claim(stage, "more", count=2)
                await stage.gang("late", pods=1, cpu=1, resourceClaims=[{"name": "g", "resourceClaimName": "more"}])
                await waits(stage, "late-0", "cannot allocate all claims")
                assert not await status(stage, "more") and "403 Forbidden" not in process.log.read_text()

    play(story)


async def waits(stage: Stage, pod: str, words: str) -> None:
    async def told() -> bool:
        conditions = as_dict(await stage.client.get(PODS, ObjectRef(pod, stage.namespace)))["status"].get("conditions") or ()
        return any(words in c.get("message", "") for c in conditions)

    await until_true(told)
