"""How a replica of any of our programs stands, works and ends: signals, the election, and work side by side."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from pumice.kube.election import Election


class LostLead(Exception):
    """A write was held back: another replica may lead. What was assumed is worth nothing any more."""


async def first(*work: Awaitable[object]) -> None:
    """Wait until one of them ends, with its failure if it failed; the others are cancelled, except what was a task already."""
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
    """Wait for the lead, then work for as long as it lasts. Raises LostLead; the lease is released at the end."""
    running = asyncio.create_task(election.run())
    try:
        await first(election.won.wait(), running)
        if not election.leading():
            raise LostLead
        await first(work(), running)
        raise LostLead
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await election.release()


@contextmanager
def told_to_end(others: Mapping[signal.Signals, Callable[[], object]] | None = None) -> Iterator[asyncio.Event]:
    """The event is set by SIGTERM and SIGINT; other signals call what is given."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    handlers: dict[signal.Signals, Callable[[], object]] = {signal.SIGTERM: ended.set, signal.SIGINT: ended.set, **(others or {})}
    for number, handler in handlers.items():
        loop.add_signal_handler(number, handler)
    try:
        yield ended
    finally:
        for number in handlers:
            loop.remove_signal_handler(number)
