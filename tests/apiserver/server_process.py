"""A server for a test: in a thread of this process, or in a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from pumice.cluster.apiserver import Server

START_TIMEOUT_S = 30


class Running:
    """A server in a thread, with its loop at hand."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop
        self.url = server.url

    def call(self, work):  # type: ignore[no-untyped-def]
        """Run something in the server's thread, for instance on its store."""

        async def run():  # type: ignore[no-untyped-def]
            return work(self.server.store)

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(START_TIMEOUT_S)


@contextlib.contextmanager
def in_thread(**options: object) -> Iterator[Running]:
    """A server that ends with the block."""
    started: list[Running] = []
    ready, ended = threading.Event(), asyncio.Event()

    async def serve() -> None:
        server = Server(**options)  # type: ignore[arg-type]
        await server.start()
        started.append(Running(server, asyncio.get_running_loop()))
        ready.set()
        await ended.wait()
        await server.stop()

    failure: list[BaseException] = []

    def main() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            failure.append(error)
            ready.set()

    thread = threading.Thread(target=main)
    thread.start()
    ready.wait(START_TIMEOUT_S)
    if failure:
        thread.join()
        raise failure[0]
    try:
        yield started[0]
    finally:
        started[0].loop.call_soon_threadsafe(ended.set)
        thread.join(START_TIMEOUT_S)
        if failure:
            raise failure[0]


@contextlib.contextmanager
def in_process(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`python -m pumice.cluster.apiserver` and its address; killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "pumice.cluster.apiserver", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def kubeconfig_of(running: Running, folder: Path) -> Path:
    path = folder / "kubeconfig"
    running.server.kubeconfig(path)
    return path
