"""Volcano's jobs as a user has them on a real API server, and kubelets that do what the story says.

A kubelet starts what is bound and lets go what is deleted; how a pod ends is told by the story.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from stage import until_true

from pumice.api.kinds import COMMANDS, JOBS, POD_GROUPS, PODS, Kind, ObjectRef
from pumice.kube.client import Client
from pumice.kube.errors import KubeError
from pumice.kube.transport import PatchType, Scope, as_dict

Body = dict[str, Any]
STOPS_AFTER_S = "story.pumice.io/stops-after-s"  #: an annotation of pods that take their time to end


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
        self._told_to_end: dict[str, float] = {}  #: pods by uid, when the kubelet saw it

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
        found = [as_dict(raw) async for page in self.client.pages(Scope(resource, self.namespace)) for raw in page.items]
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

    async def until_phase(self, name: str, *phases: str) -> Body:
        async def there() -> bool:
            return ((await self.status(name)).get("state") or {}).get("phase") in phases

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
        """A kubelet reports a pod in a phase: that very one, if it has the uid."""
        ended = phase in ("Succeeded", "Failed")
        state = {"terminated": {"exitCode": exit_code}} if ended else {"running": {}}
        container = {"name": "c", "image": "x", "imageID": "x", "ready": phase == "Running", "restartCount": restarts, "state": state}
        patch: Body = {"status": {"phase": phase, "containerStatuses": [container]}}
        if uid:
            patch["metadata"] = {"uid": uid}
        await self.client.patch(PODS, ObjectRef(pod, self.namespace), patch, PatchType.MERGE, subresource="status")

    async def all_become(self, job: str, phase: str) -> None:
        await asyncio.gather(*(self.becomes(pod, phase) for pod in await self.pods(job)))

    async def kubelets(self) -> None:
        """For good."""
        while True:
            for pod in (await self.listed(PODS)).values():
                with suppress(KubeError):
                    await self._kubelet_of(pod)
            await asyncio.sleep(0.1)

    async def _kubelet_of(self, pod: Body) -> None:
        """By uid: another pod may have the name by now."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        if pod["metadata"].get("deletionTimestamp"):
            now = asyncio.get_running_loop().time()
            takes_s = float((pod["metadata"].get("annotations") or {}).get(STOPS_AFTER_S, 0))
            if now < self._told_to_end.setdefault(uid, now) + takes_s:
                return
            await self.client.delete(PODS, ObjectRef(name, self.namespace, uid), grace_s=0)
        elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            await self.becomes(name, "Running", uid=uid)
