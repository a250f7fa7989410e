"""What stories on a real API server are made of: Volcano's definitions, nodes, queues, PodGroups and pods, and kubelets that only say so.

There is no controller manager and no kubelet here: `run_bound` reports bound pods as running and lets deleted ones go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from pumice.api.kinds import DEFINITIONS, HYPER_NODES, NODES, POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES, SERVICE_ACCOUNTS, Kind, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import ApiError, KubeError
from pumice.client.transport import ListScope, PatchType, as_dict

CRDS = Path(__file__).parents[2] / "deploy/chart/crds"


async def absent(call: Any) -> Any:
    """Await it; that the object exists already is well too."""
    try:
        return await call
    except ApiError as error:
        if error.code != 409:
            raise


async def _if_there(call: Any) -> None:
    try:
        await call
    except ApiError as error:
        if error.code != 404:
            raise


async def install_definitions(client: Client) -> None:
    for path in sorted(CRDS.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            await absent(client.create(DEFINITIONS, document))
    for resource in (QUEUES, POD_GROUPS, HYPER_NODES):
        await until_true(lambda resource=resource: served(client, resource))


async def served(client: Client, resource: Kind) -> bool:
    try:
        async for _ in client.pages(ListScope(resource), limit=1):
            pass
    except ApiError:
        return False
    return True


async def until_true(question: Callable[[], Any], pause_s: float = 0.05) -> None:
    """Ask again and again; the story's limit ends it."""
    while not await question():
        await asyncio.sleep(pause_s)


class Stage:
    """One story's objects: its namespace, and nodes and queues named after it."""

    def __init__(self, client: Client, namespace: str, stop_s: float = 0.0) -> None:
        self.client = client
        self.namespace = namespace
        self._stop_s = stop_s  #: how long deleted pods take to end, if they are given time
        self._ending: dict[str, float] = {}  #: pods that were deleted, by uid: when that was seen
        self._wide: list[tuple[Kind, str]] = []  #: what it made outside its namespace

    async def set_up(self) -> None:
        await self._sweep()
        await absent(self.client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, self.namespace))

    # ---- objects

    async def node(self, name: str, cpu: int) -> str:
        """A node that only this story's pods select."""
        full = f"{self.namespace}-{name}"
        await self.client.create(NODES, {"metadata": {"name": full, "labels": {"story": self.namespace}}})
        amounts = {"cpu": str(cpu), "memory": "100Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        await self.client.patch(NODES, ObjectRef(full), {"status": status}, PatchType.MERGE, subresource="status")
        await self.client.patch(NODES, ObjectRef(full), {"spec": {"taints": None}}, PatchType.MERGE)  # new nodes are not ready
        return full

    async def change_node(self, name: str, **patch: Any) -> None:
        """Only the part that is given: the status is written apart from the rest."""
        part = "status" if "status" in patch else ""
        await self.client.patch(NODES, ObjectRef(f"{self.namespace}-{name}"), patch, PatchType.MERGE, subresource=part)

    async def change_queue(self, name: str, **spec: Any) -> None:
        await self.client.patch(QUEUES, ObjectRef(name), {"spec": spec}, PatchType.MERGE)

    async def queue(self, name: str, **spec: Any) -> str:
        full = await self.wide(QUEUES, name, spec=spec)
        await self.open_queue(full)
        return full

    async def wide(self, resource: Kind, name: str, **body: Any) -> str:
        """Something outside any namespace."""
        full = f"{self.namespace}-{name}"
        self._wide.append((resource, full))
        head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": full}}
        await self.client.create(resource, {**head, **body})
        return full

    async def hyper_node(self, name: str, tier: int, *members: dict[str, Any]) -> None:
        await self.wide(HYPER_NODES, name, spec={"tier": tier, "members": list(members)})

    async def open_queue(self, name: str) -> None:
        """What the queue controller does."""
        patch = {"status": {"state": "Open"}}
        await self.client.patch(QUEUES, ObjectRef(name), patch, PatchType.MERGE, subresource="status")

    async def gang(
        self,
        name: str,
        pods: int,
        cpu: float,
        *,
        queue: str = "default",
        minimum: int | None = None,
        priority_class: str = "",
        asks: dict[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        """A PodGroup and its pods. `asks` are more of the group's fields, `spec` the pods'."""
        body = {"minMember": pods if minimum is None else minimum, "queue": queue, "priorityClassName": priority_class, **(asks or {})}
        group = {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup", "metadata": {"name": name}, "spec": body}
        await self.client.create(POD_GROUPS, group, self.namespace)
        await asyncio.gather(*(self.pod(f"{name}-{number}", cpu, group=name, **spec) for number in range(pods)))

    async def priority_class(self, name: str, value: int, **more: Any) -> str:
        return await self.wide(PRIORITY_CLASSES, name, value=value, **more)

    async def pod(
        self,
        name: str,
        cpu: float,
        *,
        group: str,
        scheduler: str = "volcano",
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        **spec: Any,
    ) -> ObjectRef:
        """A pod of a PodGroup, or of none. Further fields are its spec's."""
        container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}}
        named = {"scheduling.k8s.io/group-name": group} if group else {}
        body = {
            "metadata": {"name": name, "labels": labels, "annotations": {**named, **(annotations or {})}},
            "spec": {
                "containers": [container],
                "schedulerName": scheduler,
                "nodeSelector": {"story": self.namespace},
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                **spec,
            },
        }
        made = as_dict(await self.client.create(PODS, body, self.namespace))
        return ObjectRef(name, self.namespace, made["metadata"]["uid"])

    async def clear(self) -> None:
        """Take everything away that the next story's scheduler would count."""
        await self._sweep()
        await asyncio.gather(*(_if_there(self.client.delete(resource, ObjectRef(name))) for resource, name in self._wide))

    async def _sweep(self) -> None:
        """Groups and pods of all namespaces: what stories leave counts for queues and for the room that is promised."""
        for resource, grace_s in ((POD_GROUPS, None), (PODS, 0)):
            found = [as_dict(raw)["metadata"] async for page in self.client.pages(ListScope(resource)) for raw in page.items]
            refs = [ObjectRef(meta["name"], meta["namespace"]) for meta in found]
            await asyncio.gather(*(_if_there(self.client.delete(resource, ref, grace_s=grace_s)) for ref in refs))

    # ---- what happened

    async def pods(self) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        async for page in self.client.pages(ListScope(PODS, self.namespace)):
            for raw in page.items:
                pod = as_dict(raw)
                found[pod["metadata"]["name"]] = pod
        return found

    async def placed(self, prefix: str = "") -> dict[str, str]:
        """Pod to node, of those that have one and are not on their way out."""
        pods = await self.pods()
        return {
            name: pod["spec"]["nodeName"]
            for name, pod in pods.items()
            if name.startswith(prefix) and pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp")
        }

    async def until_placed(self, prefix: str, count: int) -> dict[str, str]:
        async def enough() -> bool:
            return len(await self.placed(prefix)) >= count

        await until_true(enough)
        return await self.placed(prefix)

    async def group(self, name: str) -> dict[str, Any]:
        """A PodGroup's status."""
        status: dict[str, Any] = as_dict(await self.client.get(POD_GROUPS, ObjectRef(name, self.namespace))).get("status") or {}
        return status

    async def until_phase(self, name: str, phase: str) -> None:
        async def there() -> bool:
            return (await self.group(name)).get("phase") == phase

        await until_true(there)

    async def until_told_of(self, name: str, running: int) -> None:
        """Until the PodGroup's status counts so many running pods."""

        async def there() -> bool:
            return (await self.group(name)).get("running") == running

        await until_true(there)

    # ---- kubelets

    async def run_bound(self) -> None:
        """Once: what bound pods' kubelets would report."""
        for name, pod in (await self.pods()).items():
            if pod["metadata"].get("deletionTimestamp"):
                await self._end(name, pod["metadata"]["uid"])
            elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
                patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"phase": "Running"}}
                await self.client.patch(PODS, ObjectRef(name, self.namespace), patch, PatchType.MERGE, subresource="status")

    async def _end(self, name: str, uid: str) -> None:
        """Let a deleted pod go when its time is over."""
        now = asyncio.get_running_loop().time()
        if now - self._ending.setdefault(uid, now) >= self._stop_s:
            await self.client.delete(PODS, ObjectRef(name, self.namespace, uid), grace_s=0)

    async def kubelets(self) -> None:
        """For good; pods may go and the server may be away."""
        while True:
            with suppress(KubeError):
                await self.run_bound()
            await asyncio.sleep(0.1)
