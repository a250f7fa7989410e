"""Volcano's place taken as the guide says: `deploy/manifests` applied, and the three programs started with the arguments, the configuration
and the rights that stand there. Only addresses differ, for nothing runs in pods here.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import yaml
from realcluster import USERS, RealCluster

from pumice.api.kinds import MUTATING_WEBHOOKS, QUEUES, VALIDATING_WEBHOOKS, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import ListScope, as_dict
from tests.ports import free_port

ROOT = Path(__file__).parents[2]
MANIFESTS, DEFINITIONS = ROOT / "deploy/manifests", ROOT / "deploy/chart/crds"
PARTS = {"webhooks": "webhooks", "controllers": "controllers", "scheduler": "scheduler"}  #: part to user of the real cluster
Right = tuple[str, str, str]  #: group, resource, verb
#: nobody starts a program again that has lost its lead since the machine is busy
LONG = ("--leader-elect-lease-duration=100s", "--leader-elect-renew-deadline=90s")
PROGRAM = str(Path(sys.executable).with_name("pumice"))


def pumice(cluster: RealCluster, *arguments: str) -> str:
    """What a command of ours prints, with all rights."""
    command = [PROGRAM, *arguments, f"--kubeconfig={cluster.kubeconfig()}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def apply_everything(cluster: RealCluster) -> str:
    return pumice(cluster, "apply", "-f", str(DEFINITIONS)) + pumice(cluster, "apply", "-f", str(MANIFESTS))


def apply_without_webhooks(cluster: RealCluster) -> None:
    """Where no webhooks run: an API server refuses everything whose webhooks do not answer."""
    pumice(cluster, "apply", "-f", str(DEFINITIONS))
    for part in ("00-namespace", "scheduler", "controllers"):
        pumice(cluster, "apply", "-f", str(MANIFESTS / f"{part}.yaml"))


def deployed(part: str, folder: Path) -> list[str]:
    """A Deployment's arguments, its mounted files written to a folder."""
    items = list(yaml.safe_load_all((MANIFESTS / f"{part}.yaml").read_text()))
    (pod,) = (item["spec"]["template"]["spec"] for item in items if item["kind"] == "Deployment")
    container = pod["containers"][0]
    held = {item["metadata"]["name"]: item["data"] for item in items if item["kind"] == "ConfigMap"}
    arguments: list[str] = list(container["args"])
    for volume in pod["volumes"]:
        for name, text in held.get((volume.get("configMap") or {}).get("name"), {}).items():
            (folder / name).write_text(text)
            place = next(mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == volume["name"])
            arguments = [argument.replace(f"{place}/{name}", str(folder / name)) for argument in arguments]
    return arguments


def rights_used(cluster: RealCluster) -> dict[str, set[Right]]:
    """What each program asked for, by part, in all stories so far."""
    part_of = {USERS[user][0]: part for part, user in PARTS.items()}
    used: dict[str, set[Right]] = {part: set() for part in PARTS}
    with cluster.audit_log.open() as log:
        for line in log:
            entry = json.loads(line)
            place = entry.get("objectRef") or {}
            if place.get("resource"):
                resource = "/".join(filter(None, (place["resource"], place.get("subresource"))))
                used[part_of[entry["user"]["username"]]].add((place.get("apiGroup", ""), resource, entry["verb"]))
    return used


def rights_granted(part: str) -> set[Right]:
    roles = [item for item in yaml.safe_load_all((MANIFESTS / f"{part}.yaml").read_text()) if item["kind"] in ("Role", "ClusterRole")]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


class Volcano:
    """The running programs."""

    def __init__(self, cluster: RealCluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder

    def log(self, part: str) -> str:
        return (self.folder / f"{part}.log").read_text()

    @asynccontextmanager
    async def part(self, name: str, *flags: str) -> AsyncIterator[None]:
        away = [] if name == "webhooks" else ["--enable-metrics=false"]
        arguments = [*deployed(name, self.folder), "--enable-healthz=false", *away, f"--kubeconfig={self.cluster.kubeconfig(name)}", *flags]
        with (self.folder / f"{name}.log").open("wb") as out:
            process = await asyncio.create_subprocess_exec(PROGRAM, *arguments, stdout=out, stderr=out)
        try:
            yield
            assert process.returncode is None, self.log(name)
        finally:
            if process.returncode is None:
                process.terminate()
                await asyncio.wait_for(process.wait(), 20)


@asynccontextmanager
async def running(cluster: RealCluster, client: Client, folder: Path, *flags: str) -> AsyncIterator[Volcano]:
    """All three, the scheduler with more flags, until the block ends; then no webhook is left that nobody answers."""
    volcano = Volcano(cluster, folder)
    port = free_port()
    here = (f"--webhook-url=https://127.0.0.1:{port}", "--listen-address=127.0.0.1", f"--port={port}")
    try:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(volcano.part("webhooks", *here))
            await stack.enter_async_context(volcano.part("controllers", *LONG))
            await stack.enter_async_context(volcano.part("scheduler", *LONG, "--node-selector=story:volcano", *flags))
            await _until_open(client, volcano)
            yield volcano
    finally:
        for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            async for page in client.pages(ListScope(resource)):
                for raw in page.items:
                    await client.delete(resource, ObjectRef(as_dict(raw)["metadata"]["name"]))


async def _until_open(client: Client, volcano: Volcano) -> None:
    """The webhooks are called and the default queue takes work."""
    for _ in range(600):
        queues = [as_dict(raw) async for page in client.pages(ListScope(QUEUES)) for raw in page.items]
        opened = any(_opened(queue) for queue in queues if queue["metadata"]["name"] == "default")
        if opened and "webhooks are served" in volcano.log("webhooks"):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("\n".join(volcano.log(part) for part in PARTS))


def _opened(queue: dict[str, Any]) -> bool:
    return bool((queue.get("status") or {}).get("state") == "Open")
