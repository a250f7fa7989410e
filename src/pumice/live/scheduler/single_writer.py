"""Access to the kept state: for one user at a time, in order.

A cycle has the state for itself while it decides. It runs on a thread of its own, so that the event loop goes on: this renews the lease,
answers probes, reads watches, sends binds. Changes of the state that arrive meanwhile wait, and are applied after the cycle in their order.
Where the work runs is an argument: `on_a_thread` in a process, `inline` in virtual time, where nothing else could happen anyway.
"""

import asyncio
import logging
import sys
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from threading import Thread
from typing import ParamSpec, Protocol, TypeVar

AT_ONCE = 256  #: changes that are applied before other tasks on the loop have their turn
SLOW_S = 10.0  #: after so long, and twice as long, and so on, it is logged where the work is
SWITCH_S = 0.0005  #: how long the event loop waits at most for a thread that calculates, after each system call
T = TypeVar("T")
P = ParamSpec("P")
log = logging.getLogger(__name__)


class Where(Protocol):
    """Runs some work, and returns its result."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


async def inline(work: Callable[[], T], /) -> T:
    """Run the work at once, on the event loop, which stands still meanwhile."""
    return work()


async def on_a_thread(work: Callable[[], T], /) -> T:
    """Run the work on a daemon thread, so that work that hangs does not keep the process of a replica that lost its lead alive."""
    sys.setswitchinterval(SWITCH_S)
    outcome: Future[T] = Future()
    outcome.set_running_or_notify_cancel()
    thread = Thread(target=_into, args=(outcome, work), name="cycle", daemon=True)
    thread.start()
    waiting, pause_s = asyncio.wrap_future(outcome), SLOW_S
    while not (await asyncio.wait([waiting], timeout=pause_s))[0]:
        log.warning("a cycle takes more than %.0f s; now it is at\n%s", pause_s, _place(thread))
        pause_s *= 2
    return waiting.result()


def _into(outcome: Future[T], work: Callable[[], T]) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:
        outcome.set_exception(error)


def _place(thread: Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)).rstrip() if frame is not None else "its end"


class SingleWriter:
    """The lock of the kept state, with a queue of the changes that wait for it."""

    def __init__(self, where: Where = inline) -> None:
        self._where = where
        self._turn = asyncio.Lock()
        self._held = False
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_taken(self) -> bool:
        return self._held

    def change(self, make: Callable[P, None], *args: P.args, **more: P.kwargs) -> None:
        """Apply a change: now, or after the work that has the state for itself."""
        if self._held:
            self._waiting.append(partial(make, *args, **more))
        else:
            make(*args, **more)

    async def changed(self, make: Callable[[], T]) -> T:
        """Apply a change like `change`, and return its result."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.change(self._answer, make, answer)
        return await answer

    def _answer(self, make: Callable[[], T], answer: asyncio.Future[T]) -> None:
        if not answer.done():
            try:
                answer.set_result(make())
            except Exception as error:  # of who waits for the result, and of no cycle
                answer.set_exception(error)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Where]:
        """A context in which nothing else touches the state. If it is cancelled nothing ever will: its thread may still be at work."""
        async with self._turn:
            self._held = True
            try:
                yield self._where
            except Exception:
                await self._catch_up()
                raise
            await self._catch_up()

    async def _catch_up(self) -> None:
        while self._waiting:
            for _ in range(min(len(self._waiting), AT_ONCE)):
                self._waiting.popleft()()
            await asyncio.sleep(0)
        self._held = False
