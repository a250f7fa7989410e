"""What becomes of a key whose writes failed: another try after a pause that doubles, or another key where the controller gives up.

A controller gives up on what is refused again and again. A server that is away, overloaded or behind says nothing about the key.
"""

from __future__ import annotations

from collections.abc import Hashable

from pumice.controllers.controller import GivesUp
from pumice.controllers.dispatch import Dispatch, Work

FIRST_PAUSE_S, LONGEST_PAUSE_S, DOUBLINGS = 0.05, 60.0, 20


class Failures:
    """Failures in a row, by controller and key. `refused`: the server has looked at the write and does not want it."""

    def __init__(self, queue: Dispatch) -> None:
        self._queue = queue
        self._counts: dict[tuple[str, Hashable], tuple[int, int]] = {}  #: all, and those that were refusals

    def succeeded(self, work: Work) -> None:
        self._counts.pop((work.controller.name, work.key), None)

    def failed(self, work: Work, now: float, *, refused: bool = True) -> None:
        identity = (work.controller.name, work.key)
        count, refusals = self._counts.get(identity, (0, 0))
        count, refusals = self._counts[identity] = count + 1, refusals + refused
        if isinstance(work.controller, GivesUp) and 0 <= work.controller.max_failures < refusals:
            del self._counts[identity]
            self._queue.add(work.controller, work.controller.gave_up(work.key))
            return
        pause_s = min(FIRST_PAUSE_S * 2 ** min(count - 1, DOUBLINGS), LONGEST_PAUSE_S)
        self._queue.add_later(now + pause_s, work.controller, work.key)
