"""`pumice scheduler` as a process with the rights of Volcano's scheduler: fail-over, kill -9, reload, probes."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from realcluster import RealCluster
from replicas import leader, replica, stage_for, until_leader
from stage import until_true

from pumice.api.kinds import EVENTS, LEASES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import ListScope, as_dict
from pumice.scheduler.config.volcano_conf import DEFAULT
from tests.ports import free_port

pytestmark = pytest.mark.cluster
Play = Callable[..., None]


def test_the_next_replica_takes_over_when_the_leader_is_killed(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=4)
            async with replica(cluster, stage, tmp_path) as first:
                held_by = await until_leader(client, namespace)
                async with replica(cluster, stage, tmp_path) as second:
                    await stage.gang("one", pods=2, cpu=1, queue="default")
                    await stage.until_placed("one", 2)
                    await first.kill()
                    await stage.gang("two", pods=2, cpu=1, queue="default")
                    await stage.until_placed("two", 2)
                    assert await leader(client, namespace) != held_by
                    assert await second.end() == 0
                    assert "403 Forbidden" not in second.log.read_text(), "the installed role suffices"
                    lease = as_dict(await client.get(LEASES, ObjectRef("volcano", namespace)))
                    assert not lease["spec"].get("holderIdentity"), "given back, so that the next one need not wait"

    play(story)


def test_a_scheduler_that_is_killed_in_the_middle_of_its_binds_leaves_nothing_behind(
    cluster: RealCluster, play: Play, tmp_path: Path
) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            for name in ("a", "b", "c"):
                await stage.node(name, cpu=10)
            for number in range(3):
                await stage.gang(f"g{number}", pods=10, cpu=1, queue="default")
            for pause_s in (0.9, 1.1, 1.3):
                async with replica(cluster, stage, tmp_path, "--leader-elect=false") as process:
                    await asyncio.sleep(pause_s)
                    await process.kill()
            async with replica(cluster, stage, tmp_path, "--leader-elect=false"):
                placed = await stage.until_placed("g", 30)
            assert all(list(placed.values()).count(node) == 10 for node in set(placed.values()))

    play(story)


def test_a_bad_configuration_leaves_the_old_one_in_force_and_is_told(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        conf = tmp_path / "scheduler.conf"
        conf.write_text('actions: "enqueue"\ntiers: []\n')
        port = free_port()

        async def page(path: str) -> str:
            return await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read().decode())

        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=4)
            flags = (f"--scheduler-conf={conf}", "--enable-metrics", f"--listen-address=127.0.0.1:{port}")
            async with replica(cluster, stage, tmp_path, *flags) as process:
                await stage.gang("train", pods=2, cpu=1, queue="default")
                await stage.until_phase("train", "Inqueue")
                conf.write_text("actions: []\n")
                while "pumice_config_last_reload_successful 0" not in await page("/metrics"):
                    await asyncio.sleep(0.1)

                async def told() -> bool:
                    found = [as_dict(raw) async for events in client.pages(ListScope(EVENTS, namespace)) for raw in events.items]
                    return any(event["reason"] == "ConfigurationRefused" and "scheduler.conf" in event["message"] for event in found)

                await until_true(told)
                assert "the new configuration is refused, the old one stays in force" in process.log.read_text()
                await stage.gang("later", pods=1, cpu=1)
                await stage.until_phase("later", "Inqueue")
                assert not await stage.placed(), "the old one, which lets in and places nothing, is in force"
                conf.write_text(DEFAULT)
                await stage.until_placed("", 3)
                assert "pumice_config_last_reload_successful 1" in await page("/metrics")
                state = json.loads(await page("/debug/state"))
                assert {"Pod", "PodGroup", "Node", "ConfigMap"} <= {item["kind"] for item in state["items"]}

    play(story)
