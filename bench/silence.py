"""The longest silence of the event loop, ms: a whole embedded cluster while cycles take long, or extenders do not answer.

The lease must be renewed within ten seconds, and a probe answered within one second. A coroutine yields to the event loop every few
milliseconds; the figure is the longest time for which it had to wait for its turn.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.embedded import _until_running, job
from bench.measure import Row
from pumice import garbage_collection
from pumice.cli.embedded import running
from pumice.cli.up_options import UpRequest, policy_of
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.scheduler.config import KUBE_DEFAULT
from pumice.scheduler.config.volcano_conf import DEFAULT

LOOK_S = 0.005
BUDGET_MS = 1000.0
EXTENDED = KUBE_DEFAULT + "extenders: [{{urlPrefix: '{url}', filterVerb: f, httpTimeout: 5s, nodeCacheCapable: true, ignorable: true}}]\n"
VOLCANO_EXTENDED = DEFAULT.replace(
    "- name: predicates",
    "- name: predicates\n  - {{name: extender, arguments: {{extender.urlPrefix: '{url}', extender.httpTimeout: 5s,"
    " extender.predicateVerb: p, extender.ignorable: true}}}}",
)


def run() -> Iterator[Row]:
    garbage_collection.collect_seldom()
    yield asyncio.run(silence("while 50 gangs of 100 are placed on 2,000 nodes", 2000, 50, 100))
    for name, answer in {"is dead": None, "hangs": "", "drips": " "}.items():
        with extender(answer) as url:
            yield asyncio.run(silence(f"an extender of kube-scheduler {name}", 20, 1, 20, EXTENDED.format(url=url), plain=True))
            yield asyncio.run(silence(f"an extender of Volcano {name}", 20, 1, 20, VOLCANO_EXTENDED.format(url=url)))


class Watcher:
    """Measures the longest time for which the event loop was silent, and how much of it the loop's thread waited for a processor, because
    other programs ran."""

    longest_s = 0.0
    starved_s = 0.0  #: the part of the longest silence in which the thread had no processor

    async def run(self) -> None:
        while True:
            before, starved = time.perf_counter(), _starved_s()
            await asyncio.sleep(LOOK_S)
            silent_s = time.perf_counter() - before - LOOK_S
            if silent_s > self.longest_s:
                self.longest_s, self.starved_s = silent_s, min(silent_s, _starved_s() - starved)


def _starved_s() -> float:
    """Seconds for which this thread has waited for a processor since it started."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


async def silence(name: str, nodes: int, count: int, size: int, conf: str = "", *, plain: bool = False) -> Row:
    """The row of the longest silence while `count` gangs of `size` pods are placed; with `plain`, as many pods without a gang."""
    with TemporaryDirectory() as folder:
        Path(folder, "conf").write_text(conf)
        policy = policy_of([str(Path(folder, "conf"))] if conf else [])
    watcher = Watcher()
    async with running(UpRequest(policy, read_stages(), list(nodes_of(pools_of(f"{nodes}x8gpu"))), plain=True)) as cluster:
        garbage_collection.settle()
        await asyncio.sleep(1)
        watching = asyncio.create_task(watcher.run())
        began = time.perf_counter()
        for number in range(count * size if plain else count):
            if plain:
                body = {"metadata": {"name": f"p-{number}"}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}
                cluster.plane.store.create("pods", body, "default")
            else:
                cluster.plane.store.create("jobs.batch.volcano.sh", job(f"train-{number}", size), "default")
            await asyncio.sleep(0)
        await _until_running(cluster, count * size)
        took_s = time.perf_counter() - began
        watching.cancel()
    own_ms = 1000 * (watcher.longest_s - watcher.starved_s)
    counts = {"pods": count * size, "s in all": round(took_s)}
    return Row(f"longest silence: {name}", BUDGET_MS, None, own_ms, 1000 * watcher.longest_s, "ms", counts)


@contextmanager
def extender(answer: str | None) -> Iterator[str]:
    """The URL of an extender that never answers in full. If `answer` is None, nothing listens there; else each call is accepted, and
    `answer` is sent to it again and again."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        if answer is None:
            server.close()
            yield url
            return
        over = threading.Event()
        thread = threading.Thread(target=_accept, args=(server, answer.encode(), over), daemon=True)
        thread.start()
        try:
            yield url
        finally:
            over.set()
            thread.join()


def _accept(server: socket.socket, piece: bytes, over: threading.Event) -> None:
    server.settimeout(0.1)
    calls: list[socket.socket] = []
    while not over.wait(0.1):
        with suppress(TimeoutError):
            calls.append(server.accept()[0])
            calls[-1].sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" if piece else b"")
        for call in calls:
            with suppress(OSError):
                call.sendall(piece)
    for call in calls:
        call.close()
