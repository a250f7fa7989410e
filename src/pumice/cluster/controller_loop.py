"""The controllers at work on a store: changes become keys, keys become writes, one at a time.

A key whose writes fail is tried again as `Retries` says. The loop is a worker (see workers): `step` does a little, `wake` says that there
is something to do, the clock wakes it for what is due later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from pumice.cluster.apiserver import ApiError
from pumice.cluster.clock import Alarm, Clock
from pumice.cluster.store_world import StoreWorld, StoreWrites
from pumice.controllers.controller import Controller
from pumice.controllers.work_queue import KeyQueue, Retries, Work

log = logging.getLogger(__name__)

SLICE_S = 0.005  #: of the machine's time, that a step may take


class ControllerLoop:
    """Some controllers, their queue and their failures."""

    def __init__(self, world: StoreWorld, controllers: Sequence[Controller], clock: Clock) -> None:
        self.wake: Callable[[], None] | None = None
        self._world = world
        self._clock = clock
        self._queue = KeyQueue(controllers)
        self._writes = {controller.name: StoreWrites(world, f"{controller.name}-controller") for controller in controllers}
        self._failures = Retries(self._queue)
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
        now = self._clock.now()
        try:
            outcome = work.controller.reconcile(work.key, self._world, now)
            for write in outcome.writes:
                self._writes[work.controller.name].apply(write)
        except ApiError as error:
            log.info("%s %s: %s", work.controller.name, work.key, error)
            self._failures.failed(work, now)
            return
        except Exception:
            log.exception("%s %s failed", work.controller.name, work.key)
            self._failures.failed(work, now)
            return
        self._failures.succeeded(work)
        for when, key in outcome.later:
            self._queue.add_later(when, work.controller, key)

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
