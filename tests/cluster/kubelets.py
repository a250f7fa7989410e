"""Kubelets of all nodes, played: what is bound runs, what is deleted goes. How a pod ends is told by its story."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from pumice.api.kinds import PODS, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import KubeError
from pumice.client.transport import ListScope, PatchType, as_dict

HELD = "story.pumice.io/held"  #: an annotation of pods that do not end until it is gone


async def report(client: Client, pod: ObjectRef, phase: str, exit_code: int = 0, restarts: int = 0) -> None:
    """A pod is in a phase: that very one, if the reference has a uid."""
    ended = phase in ("Succeeded", "Failed")
    state = {"terminated": {"exitCode": exit_code}} if ended else {"running": {}}
    container = {"name": "c", "image": "x", "imageID": "x", "ready": phase == "Running", "restartCount": restarts, "state": state}
    patch: dict[str, Any] = {"status": {"phase": phase, "containerStatuses": [container]}}
    if pod.uid:
        patch["metadata"] = {"uid": pod.uid}
    await client.patch(PODS, ObjectRef(pod.name, pod.namespace), patch, PatchType.MERGE, subresource="status")


async def kubelets(client: Client) -> None:
    """For good, in all namespaces."""
    while True:
        with suppress(KubeError):
            async for page in client.pages(ListScope(PODS)):
                await asyncio.gather(*(_kubelet_of(client, as_dict(raw)) for raw in page.items))
        await asyncio.sleep(0.1)


async def _kubelet_of(client: Client, pod: dict[str, Any]) -> None:
    """By uid: another pod may have the name by now."""
    meta = pod["metadata"]
    ref = ObjectRef(meta["name"], meta["namespace"], meta["uid"])
    with suppress(KubeError):
        if meta.get("deletionTimestamp"):
            if HELD not in (meta.get("annotations") or {}):
                await client.delete(PODS, ref, grace_s=0)
        elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            await report(client, ref, "Running")
