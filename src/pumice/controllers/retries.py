"""A key whose writes failed is tried again after a pause that doubles, or another key takes its place when the controller gives up.

A controller gives up a key whose writes are refused again and again. Failures of a server that is away, overloaded or behind are no
refusals.
"""

from collections.abc import Hashable

from pumice.controllers.controller import GivesUp
from pumice.controllers.work_queue import KeyQueue, QueuedKey

FIRST_PAUSE_S, LONGEST_PAUSE_S, DOUBLINGS = 0.05, 60.0, 20


class Retries:
    """The failures in a row, by controller and key. `refused`: the server has checked the write and does not accept it."""

    def __init__(self, queue: KeyQueue) -> None:
        self._queue = queue
        self._counts: dict[tuple[str, Hashable], tuple[int, int]] = {}  #: all failures, and the refusals among them

    def succeeded(self, work: QueuedKey) -> None:
        self._counts.pop((work.controller.name, work.key), None)

    def failed(self, work: QueuedKey, now: float, *, refused: bool = True) -> int:
        """Put the key back, for later. Return how often it has failed in a row."""
        identity = (work.controller.name, work.key)
        count, refusals = self._counts.get(identity, (0, 0))
        count, refusals = self._counts[identity] = count + 1, refusals + refused
        if isinstance(work.controller, GivesUp) and 0 <= work.controller.max_failures < refusals:
            del self._counts[identity]
            self._queue.add(work.controller, work.controller.gave_up(work.key))
            return count
        pause_s = min(FIRST_PAUSE_S * 2 ** min(count - 1, DOUBLINGS), LONGEST_PAUSE_S)
        self._queue.add_later(now + pause_s, work.controller, work.key)
        return count
