"""Names what holds the event loop: while one handler runs, nobody else is answered.

    with Handler("%s %s", request.method, request.target):
        ...

A handler that worked for longer than HELD_S is named in the log when it ends, so that it can be cut into steps or moved to a thread. What
is measured is the work of this thread, not time that the machine gave to others; so the word is true on a loaded machine. A handler that
never ends is named by a `Watchdog`, which looks from a thread of its own.
"""

import logging
import sys
import time
import traceback
from threading import Event, Thread, get_ident
from typing import Any

HELD_S = 0.1
EXACT_S = 0.005  #: the work of a handler is measured so exactly
LOOK_S = 2.0
LONGEST_NAME = 200
FRAMES = 3  #: so many of the innermost calls of an endless handler are named

log = logging.getLogger(__name__)


class Handler:
    """What one turn of the event loop does; within it, parts that have a name of their own. `what` and `about` name it, as in logging."""

    __slots__ = ("_about", "_began", "_outer", "_since", "_thread", "_what")

    def __init__(self, what: str, *about: object) -> None:
        self._what, self._about = what, about

    def __enter__(self) -> None:
        self._thread = get_ident()
        self._outer = _at_work.get(self._thread)
        _at_work[self._thread] = self
        self._began = time.perf_counter()
        looked_s, self._since = _looked.get(self._thread, (0.0, 0.0))
        if self._began - looked_s > EXACT_S:  # to ask the kernel costs far more than to look at a clock
            self._since = time.thread_time()
            _looked[self._thread] = self._began, self._since

    def __exit__(self, *failure: Any) -> None:
        held_s = time.perf_counter() - self._began
        if held_s > HELD_S:  # it has not worked for longer
            held_s = time.thread_time() - self._since
        if self._outer is None:
            del _at_work[self._thread]
        else:
            _at_work[self._thread] = self._outer
        if held_s > HELD_S:
            log.warning("%s held the event loop for %d ms", self.name, held_s * 1000)

    @property
    def turn(self) -> "Handler":
        """The outermost handler."""
        return self._outer.turn if self._outer else self

    @property
    def name(self) -> str:
        return (self._what % self._about if self._about else self._what)[:LONGEST_NAME]


_at_work: dict[int, Handler] = {}  #: the innermost handler of each thread that runs an event loop
_looked: dict[int, tuple[float, float]] = {}  #: when its work was last measured, and the seconds that it had worked by then


class Watchdog:
    """Names each handler that was at work the last time it looked, and still is: while it holds the loop, as it may never end."""

    def __init__(self, look_s: float = LOOK_S) -> None:
        self._look_s = look_s
        self._over = Event()
        self._thread = Thread(target=self._run, name="watchdog", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *failure: Any) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        before: dict[int, Handler] = {}  #: the turns at the last look; None once it has been named
        named: set[Handler] = set()
        while not self._over.wait(self._look_s):
            now = dict(_at_work)
            for thread, handler in now.items():
                if handler.turn is before.get(thread) and handler.turn not in named:
                    named.add(handler.turn)
                    log.warning("%s has been holding the event loop for more than %g s, in %s", handler.name, self._look_s, _place(thread))
            before = {thread: handler.turn for thread, handler in now.items()}
            named &= set(before.values())


def _place(thread: int) -> str:
    """Where the thread is: its innermost calls."""
    frame = sys._current_frames().get(thread)
    calls = traceback.extract_stack(frame)[-FRAMES:] if frame else []
    return " < ".join(f"{call.name} ({call.filename}:{call.lineno})" for call in reversed(calls))
