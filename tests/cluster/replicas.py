"""`pumice scheduler` as processes with the rights of Volcano's scheduler, each using only its story's nodes."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import yaml
from installed import MANIFESTS, PROGRAM
from realcluster import RealCluster
from stage import Stage, absent

from pumice.api.kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, LEASES
from pumice.client.client import Client
from pumice.client.transport import ListScope, as_dict
from pumice.live.clock import WallClock
from pumice.live.scheduler.required_queues import make_queues

#: short, that fail-over does not take long; not so short that a busy machine loses the lead
SHORT = ("--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=9s", "--leader-elect-retry-period=500ms")


async def grant(client: Client) -> None:
    """The rights that our manifests give, to the service account and to the replica that stands by. By names of our own: a story that
    applies the manifests themselves leaves roles without the Leases of other namespaces.
    """
    items = list(yaml.safe_load_all((MANIFESTS / "scheduler.yaml").read_text()))
    role, leases = (item for kind in ("ClusterRole", "Role") for item in items if item["kind"] == kind)
    role["rules"] += leases["rules"]  # each story has its Lease in a namespace of its own
    role["metadata"]["name"] = "replicas"
    await absent(client.create(CLUSTER_ROLES, role))
    account = {"kind": "ServiceAccount", "name": "volcano-scheduler", "namespace": "volcano-system"}
    standby = {"kind": "User", "apiGroup": CLUSTER_ROLES.group, "name": "standby"}
    reference = {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": "replicas"}
    for name, subject in (("replicas", account), ("replica-that-stands-by", standby)):
        await absent(client.create(CLUSTER_ROLE_BINDINGS, {"metadata": {"name": name}, "subjects": [subject], "roleRef": reference}))


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
async def stage_for(client: Client, namespace: str, stop_s: float = 0.0) -> AsyncIterator[Stage]:
    stage = Stage(client, namespace, stop_s)
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
async def program(log: Path, command: list[str], environment: Mapping[str, str] | None = None) -> AsyncIterator[Process]:
    """A program that ends with the block."""
    with log.open("wb") as out:
        variables = {**os.environ, **(environment or {})}
        process = Process(await asyncio.create_subprocess_exec(*command, stderr=out, stdout=out, env=variables), log)
    try:
        yield process
    except BaseException:
        print(f"{log.name}, exit code {process.process.returncode}:\n{log.read_text()[-4000:]}")
        raise
    finally:
        if process.process.returncode is None:
            await process.end()


@asynccontextmanager
async def replica(
    cluster: RealCluster, stage: Stage, folder: Path, *flags: str, user: str = "scheduler", environment: Mapping[str, str] | None = None
) -> AsyncIterator[Process]:
    log = folder / f"replica-{len(list(folder.iterdir()))}.log"
    command = [PROGRAM, "scheduler", f"--kubeconfig={cluster.kubeconfig(user)}"]
    command += [f"--leader-elect-resource-namespace={stage.namespace}", f"--node-selector=story:{stage.namespace}", *SHORT, *flags]
    async with program(log, command, environment) as process:
        yield process


async def leader(client: Client, namespace: str) -> str:
    async for page in client.pages(ListScope(LEASES, namespace)):
        for raw in page.items:
            return str(as_dict(raw)["spec"]["holderIdentity"])
    return ""


async def until_leader(client: Client, namespace: str, *, other_than: str = "") -> str:
    while (holder := await leader(client, namespace)) in ("", other_than):
        await asyncio.sleep(0.1)
    return holder
