"""The controllers at work on a store: changes become keys, keys become writes, one at a time.

A key whose writes fail is tried again after a pause that doubles; a controller that `GivesUp` is given another key when that has failed too
often. The loop is a worker (see workers): `step` does a little, `wake` says that there is something to do, the clock wakes it for what is
due later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Sequence

from pumice.apiserver import ApiError
from pumice.controllers.controller import Controller, GivesUp
from pumice.controllers.dispatch import Dispatch, Work
from pumice.sim.clock import Alarm, Clock
from pumice.sim.store_world import StoreWorld
from pumice.sim.store_writes import StoreWrites

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 60.0
SLICE_S = 0.005  #: of the machine's time, that a step may take


class ControllerLoop:
    """Some controllers, their queue and their failures."""

    def __init__(self, world: StoreWorld, controllers: Sequence[Controller], clock: Clock) -> None:
        self.wake: Callable[[], None] | None = None
        self._world = world
        self._clock = clock
        self._queue = Dispatch(controllers)
        self._writes = {controller.name: StoreWrites(world, f"{controller.name}-controller") for controller in controllers}
        self._failures: dict[tuple[str, Hashable], int] = {}
        self._alarm: Alarm | None = None
        world.wake = self._wake

    def _wake(self) -> None:
        if self.wake is not None:
            self.wake()

    def step(self) -> bool:
        """Work for a moment; whether there is more."""
        ends = time.monotonic() + SLICE_S
        while time.monotonic() < ends:
            self._queue.observe(self._world.take(), self._world)
            work = self._queue.pop(self._clock.now())
            if work is None:
                self._set_alarm()
                return False
            self._do(work)
        return True

    def _do(self, work: Work) -> None:
        identity = (work.controller.name, work.key)
        now = self._clock.now()
        try:
            outcome = work.controller.reconcile(work.key, self._world, now)
            for write in outcome.writes:
                self._writes[work.controller.name].apply(write)
        except ApiError as error:
            log.info("%s %s: %s", *identity, error)
            self._failed(work, now)
            return
        except Exception:
            log.exception("%s %s failed", *identity)
            self._failed(work, now)
            return
        self._failures.pop(identity, None)
        for when, key in outcome.later:
            self._queue.add_later(when, work.controller, key)

    def _failed(self, work: Work, now: float) -> None:
        identity = (work.controller.name, work.key)
        count = self._failures[identity] = self._failures.get(identity, 0) + 1
        if isinstance(work.controller, GivesUp) and count > work.controller.max_failures:
            del self._failures[identity]
            self._queue.add(work.controller, work.controller.gave_up(work.key))
            return
        pause_s = min(FIRST_PAUSE_S * 2 ** (count - 1), LONGEST_PAUSE_S)
        self._queue.add_later(now + pause_s, work.controller, work.key)

    def _set_alarm(self) -> None:
        when = self._queue.next_time()
        if when is None or (self._alarm is not None and self._alarm.call is not None and self._alarm.when <= when):
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = self._clock.at(when, self._due)

    def _due(self) -> None:
        self._alarm = None
        self._wake()
