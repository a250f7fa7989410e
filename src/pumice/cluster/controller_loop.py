"""The loop that runs controllers on a store: changes become keys, and keys become writes.

A key with many writes is put back now and then, so that other namespaces have their turn. A key whose writes fail is tried again as
`Retries` says. The loop is a `Worker`: `step` does a little work, and `wake` is called when there is something to do. An alarm of the clock
wakes the loop for keys that are due later.

What takes long is done on a thread: what a controller `Prepares`, and to reconcile an owner of thousands of pods, which counts them
all. Meanwhile other keys have their turn, except those about the same object. Objects in the store are never changed, so a thread sees
whole objects, of moments that may differ: as every controller does that reads what its watches have delivered. If the store changed
under its hands in the middle of a look-up, the key is reconciled again, here.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pumice.api import kinds, uid_of
from pumice.cluster.apiserver import StatusError
from pumice.cluster.apiserver.pending_calls import Pending, attempted, until_done
from pumice.cluster.clock import Alarm, AlarmClock, RunningClock
from pumice.cluster.store_lister import StoreLister
from pumice.cluster.store_writes import StoreWrites
from pumice.controllers.controller import Controller, Prepares, Result
from pumice.controllers.retries import Retries
from pumice.controllers.work_queue import KeyQueue, QueuedKey
from pumice.controllers.writes import Write
from pumice.http.watchdog import Handler

log = logging.getLogger(__name__)

SLICE_S = 0.005  #: how long a step may take, in seconds of the machine's time
LONG_S = 0.02  #: a key that took longer to reconcile is reconciled on a thread the next time
MANY = 1000  #: what belongs to an owner: more are counted on a thread, also when they are counted for the first time
OVER_PODS = (kinds.RESOURCE_QUOTA, kinds.DISRUPTION_BUDGET, kinds.SERVICE)  #: whose controllers look at all pods of a namespace
REST = 4.0  #: so many times as long as that took, nothing is done about its object: an owner that grows is not counted all the time


class _UnderWay:
    """A key that is worked on, and those of its writes that are still to be carried out."""

    __slots__ = ("later", "reconcile", "writes")

    def __init__(self, reconcile: Callable[[], Result]) -> None:
        self.reconcile = reconcile
        self.writes: Iterator[Write] | None = None  #: before it is reconciled
        self.later: Sequence[tuple[float, Hashable]] = ()


class ControllerLoop:
    """Runs some controllers; holds their work queue and the retries of failed keys."""

    def __init__(
        self, lister: StoreLister, controllers: Sequence[Controller], clock: AlarmClock, slice_s: float = SLICE_S, long_s: float = LONG_S
    ) -> None:
        self.wake: Callable[[], None] | None = None
        self._slice_s = slice_s
        self._long_s = long_s
        self._lister = lister
        self._clock = clock
        self._queue = KeyQueue(controllers)
        self._writes = {controller.name: StoreWrites(lister, f"{controller.name}-controller") for controller in controllers}
        self._preparing = {controller.name: controller for controller in controllers if isinstance(controller, Prepares)}
        self._failures = Retries(self._queue)
        self._begun: dict[QueuedKey, _UnderWay] = {}  #: keys in the queue that were put back there
        self._alarm: Alarm | None = None
        self._away: dict[Hashable, dict[QueuedKey, None]] = {}  #: by place whose key waits for a webhook or a thread: keys to queue then
        self._tasks: set[asyncio.Task[None]] = set()  #: of the places in `_away`
        self._large: set[Hashable] = set()  #: places that were taken to take long before they were reconciled once
        self._long: dict[Hashable, float] = {}  #: places that took long the last time, and the machine's instant until which they rest
        # No thread works while virtual time stands still.
        self._thread = ThreadPoolExecutor(1, "controllers") if isinstance(clock, RunningClock) else None
        lister.wake = self._wake

    def _wake(self) -> None:
        if self.wake is not None:
            self.wake()

    def step(self) -> bool:
        """Work for a moment. Return whether there is more to do."""
        ends = time.monotonic() + self._slice_s
        while True:
            self._queue.observe(self._lister.take(), self._lister)
            work = self._next()
            if work is None:
                self._set_alarm()
                return False
            self._carry_on(work, ends)
            if time.monotonic() >= ends:
                return True

    def _next(self) -> QueuedKey | None:
        """The key to work on, which is in `_begun` then; None if none is due. Keys that take long are begun on a thread on the way."""
        while (work := self._queue.pop(self._clock.now())) is not None:
            if work in self._begun:
                return work
            if work.place in self._away:
                self._away[work.place][work] = None
            elif (elsewhere := self._first_elsewhere(work)) is not None:
                self._go_away(work, self._on_thread(work, elsewhere))
            else:
                self._begun[work] = _UnderWay(partial(self._reconcile, work, self._clock.now()))
                return work
        return None

    def _first_elsewhere(self, work: QueuedKey) -> Callable[[], Result | None] | None:
        """What is to be done on a thread for this key; None if nothing."""
        if self._thread is None:
            return None
        preparing = self._preparing.get(work.controller.name)
        prepare = preparing.prepares(work.key, self._lister) if preparing is not None else None
        if prepare is None and (work.place in self._long or self._may_take_long(work)):
            return partial(self._reconcile, work, self._clock.now())
        return prepare

    def _may_take_long(self, work: QueuedKey) -> bool:
        """Whether very much belongs to an object that is looked at for the first time, or counts for it. Afterwards the time that it took
        tells."""
        names = (getattr(work.key, field, "") for field in ("job", "name"))
        name = next(filter(None, names), "")
        if not name or work.place in self._large:
            return False
        namespace = getattr(work.key, "namespace", "")
        for kind in work.controller.watches:
            if (subject := self._lister.get(kind, namespace, name)) is None:
                continue
            of_it = self._lister.number(kinds.POD, namespace) if kind in OVER_PODS else self._lister.number_of_dependents(uid_of(subject))
            if of_it > MANY:
                self._large.add(work.place)
                return True
        return False

    def _reconcile(self, work: QueuedKey, now: float) -> Result:
        since = time.thread_time()
        outcome = work.controller.reconcile(work.key, self._lister, now)
        took_s = time.thread_time() - since
        if took_s > self._long_s:
            self._long[work.place] = time.monotonic() + REST * took_s
        else:
            self._long.pop(work.place, None)
        return outcome

    async def _on_thread(self, work: QueuedKey, call: Callable[[], Result | None]) -> None:
        await asyncio.sleep(self._long.get(work.place, 0.0) - time.monotonic())
        try:
            outcome = await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except Exception as error:
            log.debug("%s %s: on a thread: %s", *work, error)  # if it fails again without a thread, that is logged
            outcome = None
            self._long.pop(work.place, None)
        if outcome is None:
            self._queue.add(*work)
        else:
            self._begun[work] = _UnderWay(lambda: outcome)
            self._queue.put_back(work)

    def _carry_on(self, work: QueuedKey, ends: float) -> None:
        """Reconcile a key, or carry out more of its writes, until they are done or the step has ended: a job may have a thousand pods."""
        under_way, now = self._begun.pop(work), self._clock.now()
        try:
            with Handler("controller %s, %s", work.controller.name, work.key):
                if under_way.writes is None:
                    outcome = under_way.reconcile()
                    under_way.writes, under_way.later = iter(outcome.writes), outcome.later
                for write in under_way.writes:
                    self._apply(work, write)
                    if time.monotonic() >= ends:
                        self._begun[work] = under_way
                        return self._queue.put_back(work)
        except Pending:
            pass  # the key comes back once its write has been answered
        except StatusError as error:
            self._failed(work, error)
        except Exception:
            log.exception("%s %s failed", work.controller.name, work.key)
            self._failures.failed(work, now)
        else:
            self._failures.succeeded(work)
            for when, key in under_way.later:
                self._queue.add_later(when, work.controller, key)

    def _apply(self, work: QueuedKey, write: Write) -> None:
        """Carry out a write. Raises StatusError; Pending if webhooks outside of this process must be asked, which is done meanwhile."""
        apply = partial(self._writes[work.controller.name].apply, write)
        try:
            attempted(self._lister.store, apply)
        except Pending as pending:
            self._go_away(work, self._answered(work, apply, pending))
            raise

    async def _answered(self, work: QueuedKey, apply: Callable[[], None], pending: Pending) -> None:
        try:
            await until_done(self._lister.store, apply, pending)
        except StatusError as error:
            self._failed(work, error)
        else:
            self._queue.add(*work)

    def _go_away(self, work: QueuedKey, elsewhere: Coroutine[Any, Any, None]) -> None:
        """Let other keys have their turn until what is done elsewhere has ended."""

        async def and_back() -> None:
            try:
                await elsewhere
            finally:
                for waiting in self._away.pop(work.place):
                    self._queue.add(*waiting)
                self._wake()

        self._away[work.place] = {}
        task = asyncio.get_running_loop().create_task(and_back())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _failed(self, work: QueuedKey, error: StatusError) -> None:
        log.info("%s %s: %s", work.controller.name, work.key, error)
        self._failures.failed(work, self._clock.now())

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
