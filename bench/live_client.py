"""How fast the API client is when the server costs next to nothing: binds a second with 64 in flight, watch events decoded a second.

The server is a process of its own that answers every bind with a fixed 201, every list with no pods, and every watch with the same prepared
events. Rates are by wall clock; `cpu_us_each` is the CPU time of this process for each bind or event, which a scheduler would spend too.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import time
from collections.abc import Callable, Coroutine
from multiprocessing.connection import Connection
from typing import Any

from bench.measure import Row, rate
from pumice.api.kinds import PODS, ObjectRef
from pumice.api.pod import Pod
from pumice.api.structs import decoder
from pumice.client.access import Access, Fixed
from pumice.client.bind_and_evict import bind
from pumice.client.client import Client
from pumice.client.rate_limit import ClientLimits
from pumice.client.reflector import Reflector
from pumice.client.transport import ListScope

IN_FLIGHT = 64
BINDS = 20_000
EVENTS = 40_000
BINDS_BUDGET = 8_000.0  #: binds per second
TOKEN = "Bearer " + "t" * 900  # as long as a service account's

CREATED = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
NO_PODS = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'
ANSWER = b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
BOUND, LISTED = ANSWER % (b"201 Created", len(CREATED), CREATED), ANSWER % (b"200 OK", len(NO_PODS), NO_PODS)

WATCHED: list[bytes] = []  #: the answer to a watch, made before the first request


class _Server(asyncio.Protocol):
    """A server with as little of HTTP as the client needs."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            head = self._rest[:end].lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r", 1)[0]) if at >= 0 else 0
            if len(self._rest) < end + 4 + length:
                return
            self._rest = self._rest[end + 4 + length :]
            is_watch = b"watch=" in head.split(b"\r", 1)[0]
            self._transport.write(BOUND if head.startswith(b"post") else WATCHED[0] if is_watch else LISTED)


def _watch_answer() -> bytes:
    """The answer to a watch: the events of two hundred pods of about 5 KB, each changed many times."""
    lines = [json.dumps({"type": "ADDED", "object": _pod(number % 200, number + 2)}) for number in range(EVENTS)]
    body = "\n".join(lines).encode() + b"\n"
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (len(body) + 1) + body


def _pod(number: int, version: int) -> dict[str, Any]:
    metadata = {"name": f"pod-{number}", "namespace": "default", "uid": f"uid-{number}", "resourceVersion": str(version)}
    managed = [{"manager": "x", "fieldsV1": {f"f:field-{index}": {".": {}, "f:name": {}} for index in range(60)}}]
    container = {"name": "c", "image": "registry/image:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    environment = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(20)]
    spec = {"containers": [{**container, "env": environment}], "schedulerName": "volcano", "nodeName": "node-1"}
    conditions = [{"type": f"Condition{index}", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"} for index in range(4)]
    return {"metadata": {**metadata, "managedFields": managed}, "spec": spec, "status": {"phase": "Running", "conditions": conditions}}


def _serve(pipe: Connection) -> None:
    WATCHED.append(_watch_answer())

    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


async def _binds(client: Client) -> int:
    async def some(first: int) -> None:
        for number in range(first, BINDS, IN_FLIGHT):
            await bind(client, ObjectRef(f"pod-{number}", "default", f"00000000-0000-0000-0000-{number:012}"), "node-1")

    async with asyncio.TaskGroup() as tasks:
        for first in range(IN_FLIGHT):
            tasks.create_task(some(first))
    return BINDS


async def _events(client: Client) -> int:
    done = asyncio.Event()
    told = 0

    def deliver(_: Any) -> None:
        nonlocal told
        told += 1
        if told == EVENTS:
            done.set()

    reflector = Reflector(client, ListScope(PODS), decoder(Pod).decode, deliver)
    following = asyncio.create_task(reflector.run())
    await done.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return told


def _measure(name: str, work: Callable[[Client], Coroutine[Any, Any, int]], budget: float | None, port: int) -> Row:
    async def main() -> tuple[int, float, float]:
        limits = ClientLimits(qps=1e9, burst=1e9, in_flight=IN_FLIGHT)
        async with Client(Access(f"http://127.0.0.1:{port}", Fixed(TOKEN)), limits=limits) as client:
            wall, cpu = time.perf_counter(), time.process_time()
            count = await work(client)
            return count, time.perf_counter() - wall, time.process_time() - cpu

    count, wall_s, cpu_s = asyncio.run(main())
    per_second = count / wall_s
    return rate(name, per_second, budget, done=count, cpu_us_each=round(cpu_s / count * 1e6))


def run() -> list[Row]:
    """The figures, one row for each measurement."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    try:
        port = ours.recv()
        return [
            _measure("live client: binds", _binds, BINDS_BUDGET, port),
            _measure("live client: watch events decoded", _events, None, port),
        ]
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    for row in run():
        print(row)
