"""Volcano's controllers on a live cluster: changes become keys, keys become writes, writes become requests.

    reflectors ─▶ ObjectCache ─▶ KeyQueue ─▶ reconcile (pure) ─▶ ObjectWrites ─▶ Transport
                      ▲                                              │
                      └───────────────── answers ◀───────────────────┘

Several keys are worked on at a time, but keys of one object one after the other: reconciling never awaits, sending does. A key whose writes
fail is tried again as `Retries` decides; a write that the fence held back ends the loop with LostLead.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Hashable, Sequence

from pumice.api.kinds import ObjectRef
from pumice.client.client import is_refusal, of_ending_namespace
from pumice.client.event_recorder import EventRecorder
from pumice.client.failures import ApiError, Fenced, KubeError
from pumice.client.reflector import DEFAULT_PACE, Pace
from pumice.client.transport import Transport, as_dict
from pumice.controllers.controller import EVERY, Consults, Controller, LooksUp, Prepares
from pumice.controllers.retries import Retries
from pumice.controllers.work_queue import KeyQueue, QueuedKey
from pumice.live.cache_sync import synced
from pumice.live.clock import Clock, WallClock
from pumice.live.controllers.object_writes import LOGGED_AT, Made, ObjectWrites, ignored
from pumice.live.fault_log import FirstOfMany
from pumice.live.lifecycle import LostLead, first
from pumice.live.object_cache import ObjectCache, whole
from pumice.live.watch_scopes import REQUIRED, RESOURCES, SELDOM_SERVED, followed, scopes, single_scopes

log = logging.getLogger(__name__)

COMPONENT = "vc-controller-manager"  #: the component name in our events
LOOKED_UP = ("DaemonSet.apps", "Job.batch", "PersistentVolumeClaim", "PriorityClass.scheduling.k8s.io")  #: read, but no controller is woken
WIDTH = 32
SYNC_TIMEOUT_S = 60.0


class Controllers:
    """Runs controllers: `run` works until it is cancelled, and raises LostLead. `synced` is set once the cluster has been read."""

    def __init__(
        self,
        transport: Transport,
        controllers: Sequence[Controller],
        clock: Clock | None = None,
        *,
        recorder: EventRecorder | None = None,
        pace: Pace = DEFAULT_PACE,
        width: int = WIDTH,
        sync_timeout_s: float = SYNC_TIMEOUT_S,
        made: Made = ignored,
    ) -> None:
        self.clock: Clock = clock or WallClock()
        self.synced = asyncio.Event()
        self.cache = ObjectCache()
        self.recorder = recorder or EventRecorder(transport, COMPONENT, wall=self.clock.now)
        self._names = [each.name for each in controllers]
        self._transport = transport
        self._queue = KeyQueue(controllers)
        self._failures = Retries(self._queue)
        self._writes = ObjectWrites(transport, self.cache, self.recorder, self.clock, made)
        single = [each for controller in controllers if isinstance(controller, Consults) for each in controller.consults]
        self._following = followed(transport, self.cache, {**scopes(kinds_for(controllers)), **single_scopes(single)}, pace)
        self._stirred = asyncio.Event()
        self._width = width
        self._sync_timeout_s = sync_timeout_s
        self._log = FirstOfMany(log)
        self._busy: dict[Hashable, asyncio.Task[None]] = {}  #: the task on each object that is worked on
        self._parked: dict[Hashable, deque[QueuedKey]] = {}  #: the keys that wait for a task on their object
        self._failure: BaseException | None = None
        self._broken = asyncio.Event()  #: a background task has failed
        self.cache.wake = self._stirred.set

    @property
    def waiting(self) -> int:
        """How many keys are due and wait to be worked on."""
        return len(self._queue) + sum(map(len, self._parked.values()))

    async def run(self) -> None:
        background = [
            asyncio.create_task(each) for each in (self.recorder.run(), *(reflector.run() for reflector in self._following.values()))
        ]
        for task in background:
            task.add_done_callback(self._background_ended)
        try:
            await first(self._all_synced(), self._broken.wait())
            self._check()
            self.synced.set()
            log.info("the cluster was read; these controllers work: %s", ", ".join(self._names))
            while True:
                self._turn()
                await self._until_stirred()
        finally:
            tasks = [*background, *self._busy.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _all_synced(self) -> None:
        await synced(
            [reflector for kind, reflector in self._following.items() if kind in REQUIRED],
            [reflector for kind, reflector in self._following.items() if kind not in REQUIRED and kind not in SELDOM_SERVED],
            self._sync_timeout_s,
            [self._following[kind] for kind in self._following.keys() & SELDOM_SERVED],
        )

    def _check(self) -> None:
        """Raise the failure of a background task."""
        if self._failure is not None:
            raise self._failure

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            self._broken.set()
            self._stirred.set()

    def _turn(self) -> None:
        """Begin work on all keys that are due. Raises the failure of a background task."""
        self._check()
        self._stirred.clear()
        self._queue.observe(self.cache.take(), self.cache)
        while len(self._busy) < self._width:
            work = self._queue.pop(self.clock.now())
            if work is None:
                return
            place = work.place
            if place in self._busy:
                self._parked.setdefault(place, deque()).append(work)
            else:
                self._busy[place] = asyncio.create_task(self._do(work, place))
                self._queue.observe(self.cache.take(), self.cache)

    async def _until_stirred(self) -> None:
        due = self._queue.next_time()
        pause_s = None if due is None or len(self._busy) >= self._width else max(0.0, due - self.clock.now())
        await first(self._stirred.wait(), *([self.clock.sleep(pause_s)] if pause_s is not None else []))

    async def _do(self, work: QueuedKey, place: Hashable) -> None:
        now = self.clock.now()
        try:
            await self._look_up(work)
            while isinstance(work.controller, Prepares) and (prepare := work.controller.prepares(work.key, self.cache)) is not None:
                await asyncio.to_thread(prepare)
            outcome = work.controller.reconcile(work.key, self.cache, now)
            await self._writes.apply(outcome.writes)
            self._failures.succeeded(work)
            for when, key in outcome.later:
                self._queue.add_later(when, work.controller, key)
        except Fenced:
            self._failure = LostLead()
        except KubeError as error:
            if of_ending_namespace(error):  # which takes away all that was to be written
                self._failures.succeeded(work)
            else:
                self._tell_of(work, error, self._failures.failed(work, now, refused=is_refusal(error)), now)
        except Exception:
            log.exception("%s failed by a fault of ours", work_text(work))
            self._failures.failed(work, now, refused=False)  # a fault of ours; it must end no user's job
        finally:
            self._busy.pop(place, None)
            for parked in self._parked.pop(place, ()):
                self._queue.add(*parked)
            self._stirred.set()

    def _tell_of(self, work: QueuedKey, error: KubeError, failures: int, now: float) -> None:
        """Log a failure that somebody may have to mend: what is refused, at once; what the server could not do, once it lasts. That an
        object has changed or is gone mends itself, and that the server does not answer is told by those who watch."""
        message = "%s: it is tried again, with pauses that grow: %s"
        lasts = isinstance(error, ApiError) and error.code >= 500 and failures == LOGGED_AT
        if lasts or (is_refusal(error) and failures == 1):
            assert isinstance(error, ApiError)
            self._log.warning((work.controller.name, error.code, error.reason), now, message, work_text(work), error)
        else:
            log.debug(message, work_text(work), error)

    async def _look_up(self, work: QueuedKey) -> None:
        """Read the objects that the controller looks up by name and that the role does not let us watch."""
        for kind, key in work.controller.looks_up(work.key, self.cache) if isinstance(work.controller, LooksUp) else ():
            if kind in self._following and self._following[kind].forbidden:
                await self._read(kind, ObjectRef(key.name, key.namespace))

    async def _read(self, kind: str, ref: ObjectRef) -> None:
        try:
            answer = await self._transport.get(RESOURCES[kind], ref)
        except ApiError as error:
            if error.code not in (403, 404):
                raise
            return
        self.cache.answered(kind, whole(as_dict(answer), RESOURCES[kind]))


def work_text(work: QueuedKey) -> str:
    """The controller and the object that it worked on, for the log."""
    names = (getattr(work.key, "namespace", ""), getattr(work.key, "job", "") or getattr(work.key, "name", ""))
    return f"{work.controller.name} {'/'.join(filter(None, names)) or work.key}"


def kinds_for(controllers: Sequence[Controller]) -> list[str]:
    """The kinds that these controllers watch or look up."""
    watched = {kind for controller in controllers for kind in controller.watches} - {EVERY}
    return sorted((watched | set(LOOKED_UP) | {"Secret", "ConfigMap", "Service", "NetworkPolicy.networking.k8s.io"}) & set(RESOURCES))
