"""What becomes of a key whose writes failed: another try after a pause that doubles, or another key where the controller gives up."""

from __future__ import annotations

from collections.abc import Hashable

from pumice.controllers.controller import GivesUp
from pumice.controllers.dispatch import Dispatch, Work

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 60.0


class Failures:
    """Failures in a row, by controller and key."""

    def __init__(self, queue: Dispatch) -> None:
        self._queue = queue
        self._counts: dict[tuple[str, Hashable], int] = {}

    def succeeded(self, work: Work) -> None:
        self._counts.pop((work.controller.name, work.key), None)

    def failed(self, work: Work, now: float) -> None:
        identity = (work.controller.name, work.key)
        count = self._counts[identity] = self._counts.get(identity, 0) + 1
        if isinstance(work.controller, GivesUp) and count > work.controller.max_failures:
            del self._counts[identity]
            self._queue.add(work.controller, work.controller.gave_up(work.key))
            return
        pause_s = min(FIRST_PAUSE_S * 2 ** (count - 1), LONGEST_PAUSE_S)
        self._queue.add_later(now + pause_s, work.controller, work.key)
