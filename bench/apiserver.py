"""The API server over HTTP: writes per second by connections, watch events per second, memory per pod.

The server runs in a process of its own, the clients in this one. Requests are prepared beforehand and sent over bare sockets, so that only
the server is measured. Budgets are four times the rates of a real kube-apiserver with etcd on the same kind of machine.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from bench.measure import Row, rate

PEER = {  #: requests per second of a real kube-apiserver, by the number of connections
    "creates": {1: 478, 8: 1087, 64: 859},
    "binds": {1: 463, 8: 1231, 64: 1383},
    "patches": {1: 313, 8: 630, 64: 556},
}
CONNECTIONS = (1, 8, 64)
REQUESTS = 4000
PODS = "/api/v1/namespaces/default/pods"
JSON, STRATEGIC = "application/json", "application/strategic-merge-patch+json"


def pod(name: str) -> bytes:
    """A pod as JSON, about as large as the pods that controllers create."""
    resources = {"requests": {"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    env = [{"name": f"VARIABLE_{index}", "value": "x" * 20} for index in range(8)]
    mounts = [{"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/etc/config"}]
    container = {
        "name": "main",
        "image": "registry.example.com/train:1",
        "command": ["train"],
        "env": env,
        "resources": resources,
        "volumeMounts": mounts,
    }
    volumes = [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "config"}}]
    labels = {"app": "train", "volcano.sh/job-name": "train", "volcano.sh/queue-name": "default"}
    metadata = {"name": name, "labels": labels, "annotations": {"scheduling.k8s.io/group-name": "train"}}
    spec = {"schedulerName": "volcano", "containers": [container], "volumes": volumes, "restartPolicy": "Never"}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).encode()


class Target:
    """A running API server: its address, the requests for it, and what its process has used."""

    def __init__(self, url: str, token: str, pid: int) -> None:
        self.host, _, port = url.removeprefix("http://").partition(":")
        self.port = int(port)
        self.pid = pid
        self._head = f"Host: {self.host}\r\nAuthorization: Bearer {token}\r\n"

    def request(self, method: str, path: str, body: bytes = b"", content_type: str = JSON) -> bytes:
        head = f"{method} {path} HTTP/1.1\r\n{self._head}Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def memory_bytes(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * 4096


@contextmanager
def server(*arguments: str) -> Iterator[Target]:
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "pumice.cluster.apiserver", "--plain", "--kubeconfig", str(kubeconfig), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
            yield Target(url, token, process.pid)
        finally:
            process.terminate()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


class Client(asyncio.Protocol):
    """A client that sends its requests one after the other over one connection."""

    def __init__(self, requests: list[bytes], done: asyncio.Future[int]) -> None:
        self._requests = iter(requests)
        self._done = done
        self._buffer = b""
        self._count = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            self._done.set_result(self._count)
        else:
            self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, blank, body = self._buffer.partition(b"\r\n\r\n")
        if not blank or len(body) < int(head.rpartition(b"Content-Length: ")[2].split(b"\r\n")[0]):
            return
        if head[9:10] != b"2":
            raise RuntimeError(self._buffer[:400].decode())
        self._buffer = b""
        self._count += 1
        self._send()


async def _drive(target: Target, requests: list[bytes], connections: int) -> float:
    """Send the requests over this many connections. Return the seconds until all of them are answered."""
    loop = asyncio.get_running_loop()
    begun = time.perf_counter()
    waits = []
    for index in range(connections):
        done = loop.create_future()
        share = requests[index::connections]
        await loop.create_connection(lambda share=share, done=done: Client(share, done), target.host, target.port)  # type: ignore[misc]
        waits.append(done)
    await asyncio.gather(*waits)
    return time.perf_counter() - begun


def _rows(target: Target, word: str, connections: int, requests: list[bytes], suffix: str = "") -> Row:
    cpu_s = target.cpu_s()
    seconds = asyncio.run(_drive(target, requests, connections))
    cpu_s = target.cpu_s() - cpu_s
    peer = PEER.get(word, {}).get(connections)
    name = f"apiserver{suffix}: {word}, {connections} connections"
    return rate(name, len(requests) / seconds, 4 * peer if peer else None, cpu_us_each=round(cpu_s / len(requests) * 1e6))


def writes(*arguments: str, suffix: str = "") -> list[Row]:
    rows = []
    with server(*arguments) as target:
        for connections in CONNECTIONS:
            names = [f"pod-{connections}-{index}" for index in range(REQUESTS)]
            rows.append(_rows(target, "creates", connections, [target.request("POST", PODS, pod(name)) for name in names], suffix))
            rows.append(_rows(target, "gets", connections, [target.request("GET", f"{PODS}/{name}") for name in names], suffix))
            rows.append(_rows(target, "binds", connections, [_bind(target, name) for name in names], suffix))
            patch = b'{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
            patches = [target.request("PATCH", f"{PODS}/{name}/status", patch, STRATEGIC) for name in names]
            rows.append(_rows(target, "patches", connections, patches, suffix))
    return rows


def _bind(target: Target, name: str) -> bytes:
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"kind": "Node", "name": "node-1"}}
    return target.request("POST", f"{PODS}/{name}/binding", json.dumps(body).encode())


async def _watched(target: Target, watchers: int, requests: list[bytes]) -> float:
    """Send the requests. Return the seconds until every watcher has seen an event for every request."""

    async def watch() -> None:
        reader, writer = await asyncio.open_connection(target.host, target.port, limit=2**24)
        writer.write(target.request("GET", f"{PODS}?watch=true&resourceVersion={version}"))
        seen = 0
        while seen < len(requests):
            seen += (await reader.read(2**20)).count(b'{"type":"MODIFIED"')
        writer.close()
        await writer.wait_closed()

    version = await _version(target)
    tasks = [asyncio.create_task(watch()) for _ in range(watchers)]
    await asyncio.sleep(0.2)
    begun = time.perf_counter()
    await _drive(target, requests, 8)
    await asyncio.gather(*tasks)
    return time.perf_counter() - begun


async def _version(target: Target) -> int:
    reader, writer = await asyncio.open_connection(target.host, target.port)
    writer.write(target.request("GET", f"{PODS}?limit=1"))
    text = await reader.read(2**16)
    writer.close()
    await writer.wait_closed()
    return int(text.partition(b'"resourceVersion":"')[2].partition(b'"')[0])


def watches() -> list[Row]:
    rows = []
    for watchers in (1, 20):
        with server() as target:
            names = [f"pod-{index}" for index in range(REQUESTS)]
            asyncio.run(_drive(target, [target.request("POST", PODS, pod(name)) for name in names], 8))
            seconds = asyncio.run(_watched(target, watchers, [_bind(target, name) for name in names]))
        rows.append(rate(f"apiserver: watch events, {watchers} watchers", REQUESTS * watchers / seconds))
    return rows


def memory() -> list[Row]:
    with server() as target:
        before = target.memory_bytes()
        names = [f"pod-{index}" for index in range(4 * REQUESTS)]
        asyncio.run(_drive(target, [target.request("POST", PODS, pod(name)) for name in names], 8))
        each = (target.memory_bytes() - before) / len(names)
    return [Row("apiserver: memory per pod", None, None, each / 1024, each / 1024, "KiB")]


def journalled() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return writes("--data", folder, suffix=" with journal")


def run() -> list[Row]:
    parts: list[Callable[[], list[Row]]] = [writes, journalled, watches, memory]
    return [row for part in parts for row in part()]


if __name__ == "__main__":
    for line in run():
        print(line)
