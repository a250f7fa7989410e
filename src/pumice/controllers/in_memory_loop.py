"""Controllers run on a cluster in memory until nothing changes: the whole control loop in one function.

Tests, examples and what-if questions use it as it is. The embedded store, which gets writes of others too, has a loop of its own.
"""

from collections.abc import Sequence

from pumice.controllers.controller import Controller, ObjectChange
from pumice.controllers.in_memory import Memory
from pumice.controllers.work_queue import KeyQueue


class Unsettled(RuntimeError):
    """Controllers undo each other's work, or a controller changes its own result again and again."""


class InMemoryLoop:
    """Controllers that run on a cluster in memory: `observe` takes changes of others, `settle` works until nothing is due."""

    def __init__(self, cluster: Memory, controllers: Sequence[Controller]) -> None:
        self.cluster = cluster
        self.controllers = controllers
        self.queue = KeyQueue(controllers)
        self.queue.observe((ObjectChange(None, subject) for kind in cluster.kinds() for subject in cluster.all(kind)), cluster)

    def observe(self, changes: Sequence[ObjectChange]) -> None:
        self.queue.observe(changes, self.cluster)

    def settle(self, now: float, limit: int = 10_000) -> int:
        """Reconcile until no key is due. Return the number of writes. Raises Unsettled after `limit` reconciliations."""
        self.cluster.now = now
        written = 0
        for _ in range(limit):
            work = self.queue.pop(now)
            if work is None:
                return written
            outcome = work.controller.reconcile(work.key, self.cluster, now)
            for write in outcome.writes:
                self.queue.observe(self.cluster.apply(write), self.cluster)
            written += len(outcome.writes)
            for when, key in outcome.later:
                self.queue.add_later(when, work.controller, key)
        raise Unsettled(f"not settled after {limit} reconciliations")


def settle(cluster: Memory, controllers: Sequence[Controller], now: float, limit: int = 10_000) -> int:
    """Queue the keys of every object and reconcile until nothing changes. Return the number of writes. Raises Unsettled."""
    return InMemoryLoop(cluster, controllers).settle(now, limit)
