"""Volcano's jobs as a user has them on a real API server, and their pods as the story says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from kubelets import report
from stage import until_true

from pumice.api.kinds import COMMANDS, JOBS, POD_GROUPS, PODS, Kind, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import ListScope, PatchType, as_dict

Body = dict[str, Any]


def task(name: str = "w", replicas: int = 1, cpu: str = "", pod: Body | None = None, **more: Any) -> Body:
    """A task whose pods go at once when they are deleted, unless `pod` says otherwise."""
    container: Body = {"name": "c", "image": "x"}
    if cpu:
        container["resources"] = {"requests": {"cpu": cpu}}
    spec = {"restartPolicy": "Never", "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": {**spec, **(pod or {})}}, **more}


class Jobs:
    """The jobs of a namespace. `command` runs our command line and is what it prints."""

    def __init__(self, client: Client, namespace: str, command: Callable[..., str]) -> None:
        self.client = client
        self.namespace = namespace
        self._command = command

    async def pumice(self, *arguments: str) -> str:
        return await asyncio.to_thread(self._command, *arguments)

    # ---- what a user does

    async def create(self, name: str, tasks: Sequence[Body], *, labels: dict[str, str] | None = None, **spec: Any) -> None:
        body = {"schedulerName": "volcano", "queue": "default", "tasks": list(tasks), **spec}
        job = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name, "labels": labels or {}}, "spec": body}
        await self.client.create(JOBS, job, self.namespace)

    async def change(self, name: str, patch: Body) -> None:
        await self.client.patch(JOBS, ObjectRef(name, self.namespace), patch, PatchType.MERGE)

    async def order(self, name: str, action: str) -> None:
        target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": (await self.job(name))["metadata"]["uid"]}
        body = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": {"generateName": "order-"}}
        await self.client.create(COMMANDS, {**body, "target": target, "action": action}, self.namespace)

    # ---- what there is

    async def listed(self, resource: Kind) -> dict[str, Body]:
        found = [as_dict(raw) async for page in self.client.pages(ListScope(resource, self.namespace)) for raw in page.items]
        return {item["metadata"]["name"]: item for item in found}

    async def job(self, name: str) -> Body:
        return as_dict(await self.client.get(JOBS, ObjectRef(name, self.namespace)))

    async def status(self, name: str) -> Body:
        return (await self.job(name)).get("status") or {}

    async def group(self, name: str) -> Body | None:
        """The PodGroup of a job."""
        return (await self.listed(POD_GROUPS)).get(f"{name}-{(await self.job(name))['metadata']['uid']}")

    async def pods(self, job: str = "") -> dict[str, Body]:
        """Pods that are not on their way out."""
        found = await self.listed(PODS)
        return {name: pod for name, pod in found.items() if name.startswith(job) and not pod["metadata"].get("deletionTimestamp")}

    async def until_phase(self, name: str, phase: str) -> Body:
        async def there() -> bool:
            return ((await self.status(name)).get("state") or {}).get("phase") == phase

        await until_true(there)
        return await self.status(name)

    async def until_terminating(self, name: str, pods: int) -> Body:
        """Until so many of a job's pods are on their way out."""

        async def there() -> bool:
            return (await self.status(name)).get("terminating") == pods

        await until_true(there)
        return await self.status(name)

    async def until_pods(self, job: str, count: int, phase: str = "") -> dict[str, Body]:
        async def there() -> bool:
            found = await self.pods(job)
            return len(found) == count and all(phase in ("", pod["status"].get("phase")) for pod in found.values())

        await until_true(there)
        return await self.pods(job)

    async def until_restarted(self, name: str, pods: int) -> None:
        """It was restarted once and runs again, all of it."""

        async def again() -> bool:
            status = await self.status(name)
            return status.get("retryCount") == 1 and status["state"]["phase"] == "Running" and status.get("running") == pods

        await until_true(again)

    # ---- scheduler and kubelets, played

    async def let_in(self, group: str) -> None:
        await self.client.patch(POD_GROUPS, ObjectRef(group, self.namespace), {"status": {"phase": "Inqueue"}}, PatchType.MERGE)

    async def becomes(self, pod: str, phase: str, exit_code: int = 0, restarts: int = 0, uid: str = "") -> None:
        await report(self.client, ObjectRef(pod, self.namespace, uid), phase, exit_code, restarts)

    async def all_become(self, job: str, phase: str) -> None:
        await asyncio.gather(*(self.becomes(pod, phase) for pod in await self.pods(job)))
