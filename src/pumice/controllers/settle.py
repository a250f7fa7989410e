"""Run controllers on a world until nothing changes: the whole control loop in one function.

Tests, examples and what-if questions use it as it is. A world that is fed from elsewhere too (the embedded store) uses
`dispatch` with its own loop instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from pumice.controllers.controller import Change, Controller
from pumice.controllers.dispatch import Dispatch
from pumice.controllers.memory import Memory


class Unsettled(RuntimeError):
    """Controllers that undo each other's work, or one that never finds its result good."""


class Loop:
    """Controllers at work on a world: tell it what others changed, and let it settle."""

    def __init__(self, world: Memory, controllers: Sequence[Controller]) -> None:
        self.world = world
        self.controllers = controllers
        self.queue = Dispatch(controllers)
        self.queue.observe((Change(None, subject) for kind in world.kinds() for subject in world.all(kind)), world)

    def observe(self, changes: Sequence[Change]) -> None:
        self.queue.observe(changes, self.world)

    def settle(self, now: float, limit: int = 10_000) -> int:
        """Work until nothing is due; how many writes that took. Raises Unsettled after `limit` pieces of work."""
        self.world.now = now
        written = 0
        for _ in range(limit):
            work = self.queue.pop(now)
            if work is None:
                return written
            outcome = work.controller.reconcile(work.key, self.world, now)
            for write in outcome.writes:
                self.queue.observe(self.world.apply(write), self.world)
            written += len(outcome.writes)
            for when, key in outcome.later:
                self.queue.add_later(when, work.controller, key)
        raise Unsettled(f"not settled after {limit} reconciliations")


def settle(world: Memory, controllers: Sequence[Controller], now: float, limit: int = 10_000) -> int:
    """Start from every object of the world and work until nothing changes; how many writes that took."""
    return Loop(world, controllers).settle(now, limit)
