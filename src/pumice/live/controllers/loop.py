"""Volcano's controllers on a live cluster: changes become keys, keys become writes, writes become requests.

    reflectors ─▶ ObjectCache ─▶ KeyQueue ─▶ reconcile (pure) ─▶ ObjectWrites ─▶ Transport
                      ▲                                              │
                      └───────────────── answers ◀───────────────────┘

Several keys are worked on at a time, those of one object one after the other: reconciling never awaits, sending does. A key whose writes
fail is tried again as `Retries` says; a write that the fence held back ends the loop with LostLead.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Hashable, Sequence

from pumice.api.kinds import ObjectRef
from pumice.client.events import EventRecorder
from pumice.client.reflector import DEFAULT_PACE, Pace
from pumice.client.retry import is_refusal
from pumice.client.transport import ApiError, Fenced, KubeError, Transport, as_dict
from pumice.controllers.controller import EVERY, Consults, Controller, LooksUp
from pumice.controllers.work_queue import KeyQueue, QueuedKey, Retries
from pumice.live.controllers.writes import ObjectWrites
from pumice.live.lifecycle import Clock, LostLead, WallClock, synced
from pumice.live.object_cache import REQUIRED, RESOURCES, ObjectCache, followed, scopes, single_scopes, whole

log = logging.getLogger(__name__)

COMPONENT = "vc-controller-manager"  #: the name under which events are told
LOOKED_UP = ("DaemonSet.apps", "Job.batch", "PersistentVolumeClaim", "PriorityClass.scheduling.k8s.io")  #: read, though nobody is woken
WIDTH = 32
SYNC_TIMEOUT_S = 60.0


class Controllers:
    """`run` until cancelled; raises LostLead. `synced` is set once everything there was has been read."""

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
    ) -> None:
        self.clock: Clock = clock or WallClock()
        self.synced = asyncio.Event()
        self.cache = ObjectCache()
        self.recorder = recorder or EventRecorder(transport, COMPONENT, wall=self.clock.now)
        self._names = [each.name for each in controllers]
        self._transport = transport
        self._queue = KeyQueue(controllers)
        self._failures = Retries(self._queue)
        self._writes = ObjectWrites(transport, self.cache, self.recorder, self.clock)
        single = [each for controller in controllers if isinstance(controller, Consults) for each in controller.consults]
        self._following = followed(transport, self.cache, {**scopes(kinds_for(controllers)), **single_scopes(single)}, pace)
        self._stirred = asyncio.Event()
        self._width = width
        self._sync_timeout_s = sync_timeout_s
        self._busy: dict[Hashable, asyncio.Task[None]] = {}  #: by the object that is worked on
        self._parked: dict[Hashable, deque[QueuedKey]] = {}  #: behind them
        self._failure: BaseException | None = None
        self.cache.wake = self._stirred.set

    @property
    def waiting(self) -> int:
        """How many keys could be worked on at once."""
        return len(self._queue) + sum(map(len, self._parked.values()))

    async def run(self) -> None:
        background = [
            asyncio.create_task(each) for each in (self.recorder.run(), *(reflector.run() for reflector in self._following.values()))
        ]
        for task in background:
            task.add_done_callback(self._background_ended)
        try:
            await synced(
                [reflector for kind, reflector in self._following.items() if kind in REQUIRED],
                [reflector for kind, reflector in self._following.items() if kind not in REQUIRED],
                self._sync_timeout_s,
            )
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

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._failure = task.exception()
            self._stirred.set()

    def _turn(self) -> None:
        """Begin whatever can be begun."""
        if self._failure is not None:
            raise self._failure
        self._stirred.clear()
        self._queue.observe(self.cache.take(), self.cache)
        while len(self._busy) < self._width:
            work = self._queue.pop(self.clock.now())
            if work is None:
                return
            place = _place(work)
            if place in self._busy:
                self._parked.setdefault(place, deque()).append(work)
            else:
                self._busy[place] = asyncio.create_task(self._do(work, place))
                self._queue.observe(self.cache.take(), self.cache)

    async def _until_stirred(self) -> None:
        due = self._queue.next_time()
        pause_s = None if due is None or len(self._busy) >= self._width else max(0.0, due - self.clock.now())
        sleeping = asyncio.ensure_future(self.clock.sleep(pause_s)) if pause_s is not None else None
        stirring = asyncio.ensure_future(self._stirred.wait())
        try:
            await asyncio.wait([task for task in (stirring, sleeping) if task is not None], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (stirring, sleeping):
                if task is not None:
                    task.cancel()

    async def _do(self, work: QueuedKey, place: Hashable) -> None:
        now = self.clock.now()
        try:
            await self._look_up(work)
            outcome = work.controller.reconcile(work.key, self.cache, now)
            await self._writes.apply(outcome.writes)
            self._failures.succeeded(work)
            for when, key in outcome.later:
                self._queue.add_later(when, work.controller, key)
        except Fenced:
            self._failure = LostLead()
        except KubeError as error:
            log.info("%s %s: %s", work.controller.name, work.key, error)
            self._failures.failed(work, now, refused=is_refusal(error))
        except Exception:
            log.exception("%s %s failed", work.controller.name, work.key)
            self._failures.failed(work, now, refused=False)  # our mistake; nobody's job ends by it
        finally:
            self._busy.pop(place, None)
            for parked in self._parked.pop(place, ()):
                self._queue.add(*parked)
            self._stirred.set()

    async def _look_up(self, work: QueuedKey) -> None:
        """Read what the controller asks for by name and the role does not let us watch."""
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


def _place(work: QueuedKey) -> Hashable:
    """What is worked on: all keys of one controller about one object. Keys are named tuples that begin or end with its name."""
    key = work.key
    names = tuple(getattr(key, field, "") for field in ("kind", "namespace", "job", "name"))
    return work.controller.name, names if any(names) else key


def kinds_for(controllers: Sequence[Controller]) -> list[str]:
    """What these controllers watch or look up."""
    watched = {kind for controller in controllers for kind in controller.watches} - {EVERY}
    return sorted((watched | set(LOOKED_UP) | {"Secret", "ConfigMap", "Service", "NetworkPolicy.networking.k8s.io"}) & set(RESOURCES))
