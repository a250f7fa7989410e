"""A client that only binds: it watches the pods and binds each of them to the next node as soon as it sees the pod. It decides nothing.

A process of its own beside the server, as a scheduler is: `python -m bench.live_binder KUBECONFIG NODES`. It reads of each pod only what
it needs.
"""

from __future__ import annotations

import asyncio
import sys
from itertools import count

import msgspec

from pumice.api.kinds import PODS
from pumice.api.meta import Metadata
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.client.known_versions import Added, Change
from pumice.client.reflector import Reflector
from pumice.client.resolve_access import find
from pumice.client.transport import ListScope

NAME = "binder"  #: the schedulerName of the pods that it binds
HANDS = 32


class _Spec(msgspec.Struct):
    schedulerName: str = ""
    nodeName: str = ""


class _Pod(msgspec.Struct):
    metadata: Metadata
    spec: _Spec


async def bind(client: Client, namespace: str, name: str, node: str) -> None:
    body = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
    await client.create(PODS, body, namespace, name=name, subresource="binding")


async def bind_all(access: Access, nodes: int) -> None:
    """Bind pods to the nodes n0, n1 and so on, without end."""
    seen: asyncio.Queue[Metadata] = asyncio.Queue()
    numbers = count()

    def take(change: Change[_Pod]) -> None:
        if isinstance(change, Added) and change.object.spec.schedulerName == NAME and not change.object.spec.nodeName:
            seen.put_nowait(change.object.metadata)

    async def work() -> None:
        while True:
            pod = await seen.get()
            await bind(client, pod.namespace or "", pod.name, f"n{next(numbers) % nodes}")

    async with Client(access) as client, asyncio.TaskGroup() as tasks:
        tasks.create_task(Reflector(client, ListScope(PODS), msgspec.json.Decoder(_Pod).decode, take).run())
        for _ in range(HANDS):
            tasks.create_task(work())


if __name__ == "__main__":
    asyncio.run(bind_all(find(sys.argv[1]), int(sys.argv[2])))
