"""Names what holds the event loop: while one handler runs, nobody else is answered.

Handlers say when they begin and end. One that worked for longer than HELD_S is named in the log, so that it can be cut into steps or moved
to a thread. What is measured is the work of this thread, not time that the machine gave to others; so the word is true on a loaded machine.
"""

from __future__ import annotations

import logging
import time

HELD_S = 0.1
LONGEST_NAME = 200

log = logging.getLogger(__name__)

#: call this when a handler begins, and pass the result to `ended`
began = time.thread_time


def ended(since: float, what: str, *about: object) -> None:
    """A handler that began at `since` has ended. `what` and its arguments name it, as in logging."""
    held_s = time.thread_time() - since
    if held_s > HELD_S:
        name = (what % about if about else what)[:LONGEST_NAME]
        log.warning("%s held the event loop for %d ms", name, held_s * 1000)
