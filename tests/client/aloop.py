"""Run a coroutine in a test, within a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def run(story: Coroutine[Any, Any, Any], limit_s: float = 20.0) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(limit_s):
            return await story

    return asyncio.run(bounded())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that is going to happen; the story's limit ends it."""
    while not condition():
        await asyncio.sleep(0.002)


async def ended(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
