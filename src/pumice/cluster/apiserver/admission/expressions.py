"""Expressions of users on a thread of their own, one at a time, so that nobody else waits for one that costs much.

What an expression asks the store (`authorizer`), it is told by the event loop, since the store is read and written there only.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pumice.api.cel.cost import CostBudget
from pumice.api.cel.errors import CelError

LONGEST_QUESTION_S = 60.0  #: how long a question waits for an event loop that has ended

Done = TypeVar("Done")
Work = Callable[[CostBudget | None], Done]
"""Evaluates expressions and changes nothing. All of them are paid from the budget; without one, each has what it may cost at most."""
Outcome = tuple[Done, None] | tuple[None, CelError]

_here = threading.local()  #: on such a thread: the event loop that waits for it


class ExpressionThread:
    def __init__(self) -> None:
        self._thread: ThreadPoolExecutor | None = None

    async def evaluate(self, work: Work[Done]) -> Outcome[Done]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "expressions")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, _on_thread, loop, work)

    async def close(self) -> None:
        """Wait for the expression that is being evaluated. The event loop goes on, as the expression may ask it something."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await asyncio.to_thread(thread.shutdown, cancel_futures=True)


def outcome(work: Work[Done], budget: CostBudget | None) -> Outcome[Done]:
    try:
        return work(budget), None
    except CelError as error:
        return None, error


def done(found: Outcome[Done]) -> Done:
    """What the work returned. Raises what it raised."""
    if found[1] is not None:
        raise found[1]
    return found[0]


def _on_thread(loop: asyncio.AbstractEventLoop, work: Work[Done]) -> Outcome[Done]:
    _here.loop = loop
    return outcome(work, None)


def on_loop(ask: Callable[[], Done]) -> Done:
    """The answer of the store to a question of an expression, wherever this is evaluated."""
    loop: asyncio.AbstractEventLoop | None = getattr(_here, "loop", None)
    if loop is None:
        return ask()

    async def asked() -> Done:
        return ask()

    return asyncio.run_coroutine_threadsafe(asked(), loop).result(LONGEST_QUESTION_S)
