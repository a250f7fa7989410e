"""`pumice scheduler` as a process with the rights of Volcano's scheduler: fail-over, kill -9, reload, probes."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from realcluster import RealCluster
from stage import Stage, absent

from pumice.config.volcano import DEFAULT
from pumice.kube.client import Client
from pumice.kube.resource import EVENTS, LEASES, ObjectRef, Resource
from pumice.kube.transport import Scope, as_dict
from pumice.live.bootstrap import make_queues
from pumice.live.clock import WallClock

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
SHORT = ("--leader-elect-lease-duration=4s", "--leader-elect-renew-deadline=3s", "--leader-elect-retry-period=500ms")


async def grant(client: Client) -> None:
    role = yaml.safe_load((Path(__file__).parent / "scheduler_role.yaml").read_text())
    await absent(client.create(ROLES, role))
    subject = {"kind": "ServiceAccount", "name": "volcano-scheduler", "namespace": "volcano-system"}
    reference = {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": "volcano-scheduler"}
    await absent(client.create(BINDINGS, {"metadata": {"name": "volcano-scheduler"}, "subjects": [subject], "roleRef": reference}))


class Process:
    """One replica."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    async def end(self) -> int:
        if self.process.returncode is None:
            self.process.terminate()
        return await asyncio.wait_for(self.process.wait(), 20)

    async def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@asynccontextmanager
async def stage_for(client: Client, namespace: str) -> AsyncIterator[Stage]:
    stage = Stage(client, namespace)
    await stage.set_up()
    await grant(client)
    await make_queues(client, "default", WallClock())
    await stage.open_queue("default")
    kubelets = asyncio.create_task(stage.kubelets())
    try:
        yield stage
    finally:
        kubelets.cancel()
        await asyncio.gather(kubelets, return_exceptions=True)
        await stage.clear()


@asynccontextmanager
async def replica(cluster: RealCluster, stage: Stage, folder: Path, *flags: str) -> AsyncIterator[Process]:
    log = folder / f"replica-{len(list(folder.iterdir()))}.log"
    command = [str(Path(sys.executable).with_name("pumice")), "scheduler", f"--kubeconfig={cluster.kubeconfig('scheduler')}"]
    command += [f"--leader-elect-resource-namespace={stage.namespace}", f"--node-selector=story:{stage.namespace}", *SHORT, *flags]
    with log.open("wb") as out:
        process = Process(await asyncio.create_subprocess_exec(*command, stderr=out, stdout=out), log)
    try:
        yield process
    finally:
        if process.process.returncode is None:
            await process.end()


async def leader(client: Client, namespace: str) -> str:
    async for page in client.pages(Scope(LEASES, namespace)):
        for raw in page.items:
            return str(as_dict(raw)["spec"]["holderIdentity"])
    return ""


async def until_leader(client: Client, namespace: str, *, other_than: str = "") -> str:
    while (holder := await leader(client, namespace)) in ("", other_than):
        await asyncio.sleep(0.1)
    return holder


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
                    assert "403" not in second.log.read_text(), "the installed role suffices"
                    lease = as_dict(await client.get(LEASES, ObjectRef("volcano", namespace)))
                    assert not lease["spec"].get("holderIdentity"), "given back, so that the next one need not wait"

    play(story, limit_s=90)


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

    play(story, limit_s=90)


def test_a_bad_configuration_leaves_the_old_one_in_force_and_is_told(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        conf = tmp_path / "scheduler.conf"
        conf.write_text('actions: "enqueue"\ntiers: []\n')
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]

        async def page(path: str) -> str:
            return await asyncio.to_thread(lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5).read().decode())

        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=4)
            flags = (f"--scheduler-conf={conf}", "--enable-metrics", f"--listen-address=127.0.0.1:{port}")
            async with replica(cluster, stage, tmp_path, *flags):
                await stage.gang("train", pods=2, cpu=1, queue="default")
                await stage.until_phase("train", "Inqueue")
                conf.write_text("actions: []\n")
                while "pumice_config_last_reload_successful 0" not in await page("/metrics"):
                    await asyncio.sleep(0.1)
                await asyncio.sleep(0.5)
                told = [as_dict(raw) async for events in client.pages(Scope(EVENTS, namespace)) for raw in events.items]
                assert any(event["reason"] == "ConfigurationRefused" and "scheduler.conf" in event["message"] for event in told)
                assert not await stage.placed()
                conf.write_text(DEFAULT)
                await stage.until_placed("train", 2)
                assert "pumice_config_last_reload_successful 1" in await page("/metrics")
                state = json.loads(await page("/debug/state"))
                assert {"Pod", "PodGroup", "Node", "ConfigMap"} <= {item["kind"] for item in state["items"]}

    play(story, limit_s=90)
