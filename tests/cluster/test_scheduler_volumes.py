"""Volumes that wait for their pod, on a real API server; a provisioner and a volume controller are played."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from live_scheduler import scheduling
from stage import Stage, until_true

from pumice.api.kinds import CSI_CAPACITIES, CSI_DRIVERS, STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import PatchType, as_dict

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

SELECTED = "volume.kubernetes.io/selected-node"
DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


async def waiting_claim(stage: Stage, provisioner: str) -> None:
    """A class whose volumes wait for the first pod, and a claim of it."""
    name = await stage.wide(STORAGE_CLASSES, "slow", provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer")
    spec = {"storageClassName": name, "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await stage.client.create(VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": spec}, stage.namespace)


async def claim(stage: Stage) -> dict[str, Any]:
    return as_dict(await stage.client.get(VOLUME_CLAIMS, ObjectRef("data", stage.namespace)))


async def volume(stage: Stage, name: str, **spec: Any) -> str:
    common = {"storageClassName": f"{stage.namespace}-slow", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    return await stage.wide(VOLUMES, name, spec={**common, "hostPath": {"path": "/x"}, **spec})


async def bound_to(stage: Stage, name: str) -> None:
    """What the volume controller writes into the claim at the end."""
    ref = ObjectRef("data", stage.namespace)
    done = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": name}}
    await stage.client.patch(VOLUME_CLAIMS, ref, done, PatchType.MERGE)
    await stage.client.patch(VOLUME_CLAIMS, ref, {"status": {"phase": "Bound"}}, PatchType.MERGE, subresource="status")


def test_a_volume_is_made_where_the_scheduler_says_and_then_the_pod_is_bound(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await waiting_claim(stage, "example.com/disks")
            await stage.node("a", cpu=2)
            await stage.gang("train", pods=1, cpu=1, volumes=DATA)

            async def chosen() -> bool:
                return SELECTED in ((await claim(stage))["metadata"].get("annotations") or {})

            await until_true(chosen)
            assert (await claim(stage))["metadata"]["annotations"][SELECTED] == f"{namespace}-a"
            await asyncio.sleep(0.5)
            assert not await stage.placed(), "its volume is not there yet"
            await stage.gang("other", pods=1, cpu=1)
            await stage.until_placed("other", 1)
            await bound_to(stage, await volume(stage, "made"))
            await stage.until_placed("train", 1)

    play(story)


def test_a_volume_that_is_there_is_given_to_the_claim_and_decides_the_node(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            await waiting_claim(stage, "kubernetes.io/no-provisioner")
            await stage.node("a", cpu=2)
            await stage.node("b", cpu=2)
            await stage.change_node("b", metadata={"labels": {"disk": namespace}})
            here = {"key": "disk", "operator": "In", "values": [namespace]}
            affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
            name = await volume(stage, "disk", nodeAffinity=affinity)
            await client.patch(VOLUMES, ObjectRef(name), {"status": {"phase": "Available"}}, PatchType.MERGE, subresource="status")
            await stage.gang("train", pods=1, cpu=1, volumes=DATA)

            async def given() -> bool:
                return "claimRef" in as_dict(await client.get(VOLUMES, ObjectRef(name)))["spec"]

            await until_true(given)
            reference = as_dict(await client.get(VOLUMES, ObjectRef(name)))["spec"]["claimRef"]
            assert (reference["namespace"], reference["name"]) == (namespace, "data")
            await bound_to(stage, name)
            assert await stage.until_placed("train", 1) == {"train-0": f"{namespace}-b"}

    play(story)


def test_no_volume_is_made_where_its_driver_has_no_room(play: Play) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with scheduling(client, namespace) as (stage, _):
            driver = await stage.wide(CSI_DRIVERS, "driver", spec={"storageCapacity": True, "attachRequired": False})
            await waiting_claim(stage, driver)
            for name in "ab":
                await stage.node(name, cpu=2)
                await stage.change_node(name, metadata={"labels": {"rack": name}})
            await stage.gang("train", pods=1, cpu=1, volumes=DATA)

            async def told() -> bool:
                conditions = (await stage.pods())["train-0"]["status"].get("conditions") or ()
                return any("did not have enough free storage" in c.get("message", "") for c in conditions)

            await until_true(told)
            room = {"storageClassName": f"{namespace}-slow", "nodeTopology": {"matchLabels": {"rack": "b"}}, "capacity": "5Gi"}
            await client.create(CSI_CAPACITIES, {"metadata": {"name": "room"}, **room}, namespace)

            async def chosen() -> bool:
                return ((await claim(stage))["metadata"].get("annotations") or {}).get(SELECTED) == f"{namespace}-b"

            await until_true(chosen)
            await bound_to(stage, await volume(stage, "made"))
            await stage.until_placed("train", 1)

    play(story)
