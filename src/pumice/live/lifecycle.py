"""How a replica of any of our programs starts, works and ends: signals, the election, concurrent work."""

import asyncio
import signal
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from pumice.client.leader_election import Election, Term


class ReplicaSettings(msgspec.Struct, kw_only=True):
    """The settings that a replica of each program has."""

    qps: float = 2000.0
    burst: float = 2000.0
    term: Term | None = None  #: None: no election
    metrics_address: str = ""
    healthz_address: str = ""
    tls: ssl.SSLContext | None = None  #: of the health address


class LostLead(Exception):
    """This replica does not lead any more, and another one may: what this one has assumed is no longer valid."""


async def first(*work: Awaitable[object]) -> None:
    """Wait until one awaitable ends, and raise its failure if it failed. The others are cancelled, except those that were tasks already."""
    tasks = [asyncio.ensure_future(each) for each in work]
    own = [task for task, each in zip(tasks, work, strict=True) if task is not each]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in own:
            task.cancel()
        await asyncio.gather(*own, return_exceptions=True)


async def while_leading(election: Election, work: Callable[[], Awaitable[object]]) -> None:
    """Wait for the lead, then work for as long as it lasts. Raises LostLead.

    The lease is released before anything is tidied up: the end of a cycle may take seconds, and whoever uninstalls us takes our role away.
    From then on the fence holds back every write.
    """
    tasks: list[asyncio.Future[Any]] = [asyncio.create_task(election.run())]
    try:
        await first(election.won.wait(), tasks[0])
        if not election.leading():
            raise LostLead
        tasks.append(asyncio.ensure_future(work()))
        await first(*tasks)
        raise LostLead
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(tasks[0], return_exceptions=True)
        await election.release()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def end_signal(others: Mapping[signal.Signals, Callable[[], object]] | None = None) -> Iterator[asyncio.Event]:
    """A context with an event that SIGTERM and SIGINT set. Other signals call the functions in `others`."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    handlers: dict[signal.Signals, Callable[[], object]] = {signal.SIGTERM: ended.set, signal.SIGINT: ended.set, **(others or {})}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield ended
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
