"""Controllers over HTTP against an embedded server in the same loop; the test plays scheduler and kubelet on the store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pumice.api.errors import InputError
from pumice.client.access import Access, Fixed
from pumice.client.client import Client
from pumice.cluster.apiserver import DeleteOptions, PatchRequest, Server
from pumice.controllers.controller import Controller
from pumice.controllers.registry import volcano_controllers
from pumice.controllers.volcano.job.plugins.ssh import rsa_key_pair
from pumice.live.controllers.loop import Controllers

JOBS, GROUPS, QUEUES = "jobs.batch.volcano.sh", "podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"


class Scene:
    """A server with the queues that every Volcano has, and what stories do on it."""

    def __init__(self, server: Server, client: Client, access: Access) -> None:
        self.server = server
        self.store = server.store
        self.client = client
        self.access = access

    def create(self, storage: str, body: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
        return self.store.create(storage, body, namespace)

    def find(self, storage: str, name: str, namespace: str = "default") -> dict[str, Any] | None:
        return self.store.find(storage, namespace, name)

    def all(self, storage: str) -> list[dict[str, Any]]:
        return list(self.store.all(storage))

    def job(self, name: str, replicas: int = 2, **spec: Any) -> None:
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
        tasks = [{"name": "w", "replicas": replicas, "template": template}]
        body = {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "tasks": tasks, **spec}
        self.create(JOBS, {"metadata": {"name": name}, "spec": body})

    def phase(self, job: str) -> str:
        found = self.find(JOBS, job) or {}
        return str(((found.get("status") or {}).get("state") or {}).get("phase") or "")

    def enqueue(self, job: str) -> bool:
        """What a scheduler does first: let the job's group in. Whether it is there."""
        for group in self.all(GROUPS):
            if group["metadata"]["name"].startswith(f"{job}-"):
                if (group.get("status") or {}).get("phase") != "Inqueue":
                    change = PatchRequest("merge", {"status": {"phase": "Inqueue"}})
                    self.store.patch(GROUPS, group["metadata"]["name"], change, "default")
                return True
        return False

    def pods(self, job: str = "") -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.all("pods") if pod["metadata"]["name"].startswith(job))

    def pods_become(self, phase: str, job: str = "") -> None:
        for name in self.pods(job):
            self.store.patch("pods", name, PatchRequest("merge", {"status": {"phase": phase}}), "default", "status")

    def let_go(self) -> None:
        """What a kubelet does with pods that are to end."""
        for pod in self.all("pods"):
            if pod["metadata"].get("deletionTimestamp"):
                self.store.delete("pods", pod["metadata"]["name"], "default", DeleteOptions(grace_s=0))

    def order(self, kind: str, api_version: str, name: str, action: str) -> None:
        subject = self.find(JOBS, name) if kind == "Job" else self.find(QUEUES, name, "")
        assert subject is not None
        target = {"apiVersion": api_version, "kind": kind, "name": name, "uid": subject["metadata"]["uid"]}
        self.create("commands.bus.volcano.sh", {"metadata": {"name": f"{name}-{action.lower()}"}, "target": target, "action": action})


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@asynccontextmanager
async def scene(**options: Any) -> AsyncIterator[Scene]:
    """A server and a client of it; no controllers yet."""
    server = Server(plain=True, **options)
    await server.start()
    try:
        for name in ("root", "default"):
            server.store.create(QUEUES, {"metadata": {"name": name}, "spec": {"weight": 1}})
        access = Access(server.url, Fixed(f"Bearer {server.token}"))
        async with Client(access) as client:
            yield Scene(server, client, access)
    finally:
        await server.stop()


@asynccontextmanager
async def working(client: Client, controllers: Sequence[Controller] = (), **options: Any) -> AsyncIterator[Controllers]:
    """Volcano's controllers, at work until the block ends."""
    loop = Controllers(client, controllers or volcano_controllers(rsa_key_pair), **options)
    running = asyncio.create_task(loop.run())
    try:
        waiting = asyncio.create_task(loop.synced.wait())
        await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            raise running.exception() or InputError("the controllers ended")
        yield loop
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def play(story: Callable[[Scene], Coroutine[Any, Any, None]], limit_s: float = 30.0, **options: Any) -> None:
    async def whole() -> None:
        async with asyncio.timeout(limit_s), scene(**options) as stage:
            await story(stage)

    asyncio.run(whole())
