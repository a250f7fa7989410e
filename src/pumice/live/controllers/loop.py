"""Volcano's controllers on a live cluster: changes become keys, keys become writes, writes become requests.

    reflectors ─▶ ObjectCache ─▶ KeyQueue ─▶ reconcile (pure) ─▶ ObjectWrites ─▶ Transport
                      ▲                                              │
                      └───────────────── answers ◀───────────────────┘

Several keys are worked on at a time, but keys of one object one after the other: reconciling never awaits, sending does. A key whose writes
fail is tried again as `Retries` decides; a write that the fence held back ends the loop with LostLead.

`ObjectWrites` turns the writes of controllers into requests, and passes each answer straight to the cache. To create an object that exists,
or to delete one that is gone, is no failure; an object with another uid is another object and left alone. Neighbouring creations are sent
together, and so are neighbouring deletions, because a job has many pods. A role that allows updates but no patches (Volcano's own is such
for some kinds) is found out if a patch gets a 403 and the update does not: from then on the merged object is sent whole. A 403 alone proves
nothing: an API server that has just started knows no roles for a moment.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from itertools import count, groupby

from pumice.api import Object, key_of, name_of, namespace_of, rfc3339, uid_of
from pumice.api.json_objects import merged, terminating
from pumice.api.kinds import Kind, ObjectRef, kind_of
from pumice.client.client import Backoff, is_refusal, of_ending_namespace
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.client.event_recorder import EventRecorder
from pumice.client.failures import ApiError, Fenced, KubeError, despite
from pumice.client.reflector import DEFAULT_PACE, Pace
from pumice.client.transport import PatchType, Transport, as_dict
from pumice.controllers.controller import EVERY, Consults, Controller, LooksUp, Prepares
from pumice.controllers.retries import Retries
from pumice.controllers.work_queue import KeyQueue, QueuedKey
from pumice.controllers.writes import Create, Delete, Emit, Patch, Write
from pumice.live.cache_sync import synced
from pumice.live.clock import Clock, WallClock
from pumice.live.fault_log import FirstOfMany
from pumice.live.lifecycle import LostLead, first
from pumice.live.object_cache import ObjectCache, whole
from pumice.live.watch_scopes import LABELLED, REQUIRED, RESOURCES, SELDOM_SERVED, followed, scopes, single_scopes

log = logging.getLogger(__name__)

BACKOFF = Backoff()
LOGGED_AT = 6  #: so many failures in a row, which take 1.5 s, are told if the server could not do what was asked
AT_ONCE = 50  #: the most writes of one key that are under way, so that the other keys' writes do not wait behind thousands


class ObjectWrites:
    """Sends the writes of controllers. Raises KubeError for a write that was not carried out."""

    def __init__(self, transport: Transport, cache: ObjectCache, recorder: EventRecorder, clock: Clock) -> None:
        self._transport = transport
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._unpatchable: set[tuple[Kind, str]] = set()  #: resources and subresources for which this role allows updates only

    async def apply(self, writes: Sequence[Write]) -> None:
        """Send the writes in order. The first failure ends that and is raised."""
        for together in _steps(writes):
            outcomes: list[BaseException | None] = []
            for some in (together[start : start + AT_ONCE] for start in range(0, len(together), AT_ONCE)):
                outcomes += await asyncio.gather(*(self._one(write) for write in some), return_exceptions=True)
            for write, outcome in zip(together, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    self._tell_of(write, outcome)
                    raise outcome

    def _tell_of(self, write: Write, failure: BaseException) -> None:
        """Tell users in an event why an object cannot be created: a quota, a refused image, a name that is too long."""
        if isinstance(write, Create) and write.about is not None and isinstance(failure, ApiError):
            self._tell(Emit(write.about, "Warning", write.refused[0], f"{write.refused[1]}: {failure.message}"))

    def _tell(self, what: Emit) -> None:
        about = what.about
        regarding = InvolvedObject(about["kind"], name_of(about), namespace_of(about), uid_of(about), about["apiVersion"])
        self._recorder.tell(EventRecord(regarding, what.type, what.reason, what.message))

    async def _one(self, write: Write) -> None:
        match write:
            case Create(subject):
                await self._create(subject)
            case Patch():
                await self._patch(write)
            case Delete(surely=True):
                await self._delete_surely(write)
            case Delete():
                await self._delete(write)
            case Emit():
                self._tell(write)

    async def _create(self, subject: Object) -> None:
        kind = kind_of(subject)
        resource = RESOURCES[kind]
        try:
            answer = await self._transport.create(resource, subject, namespace_of(subject), repeatable=True)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            answer = await self._transport.get(resource, ObjectRef(name_of(subject), namespace_of(subject)))
        self._cache.answered(kind, whole(as_dict(answer), resource))

    async def _patch(self, write: Patch) -> None:
        known = self._cache.get(write.kind, write.namespace, write.name)
        if known is None or (write.uid and uid_of(known) != write.uid):
            return
        resource, ref = RESOURCES[write.kind], ObjectRef(write.name, write.namespace, write.uid)
        with despite(404):  # the watch will show that it is gone
            self._cache.answered(write.kind, whole(as_dict(await self._changed(resource, ref, write, known)), resource))

    async def _changed(self, resource: Kind, ref: ObjectRef, write: Patch, known: Object) -> bytes:
        place, wholly = (resource, write.subresource), merged(known, write.patch)
        if place in self._unpatchable:
            return await self._transport.update(resource, ref, wholly, subresource=write.subresource)
        body = merged(write.patch, {"metadata": {"uid": write.uid}}) if write.uid else write.patch
        with despite(403):
            return await self._transport.patch(resource, ref, body, PatchType.MERGE, subresource=write.subresource, repeatable=True)
        answer = await self._transport.update(resource, ref, wholly, subresource=write.subresource)
        self._unpatchable.add(place)
        log.info("%s may not be patched; they are updated whole", "/".join(filter(None, (resource.plural, write.subresource))))
        return answer

    async def _delete_surely(self, write: Delete) -> None:
        """Delete until that succeeds or is refused: a failed call may have been carried out, and later nothing shows what must follow."""
        for attempt in count():
            try:
                await self._delete(write)
                return
            except KubeError as error:
                if isinstance(error, Fenced) or is_refusal(error):
                    raise
                log.log(
                    logging.WARNING if attempt == LOGGED_AT else logging.DEBUG,
                    "%s %s/%s is to be deleted: %s",
                    write.kind,
                    write.namespace,
                    write.name,
                    error,
                )
            await self._clock.sleep(BACKOFF.delay_s(attempt, 1.0))

    async def _delete(self, write: Delete) -> None:
        known = self._cache.get(write.kind, write.namespace, write.name)
        if known is None or (write.uid and uid_of(known) != write.uid):
            return
        ref = ObjectRef(write.name, write.namespace, uid_of(known))
        with despite(404):  # at 409 it is another object by now, which the watch will show, or the server was wrong
            await self._transport.delete(RESOURCES[write.kind], ref, propagation=write.propagation, grace_s=write.grace_s)
        self._going(write.kind, known)

    def _going(self, kind: str, known: Object) -> None:
        """Let a deleted object count as terminating until the watch shows more. If its kind is watched by label only, remove it."""
        if kind in LABELLED:
            self._cache.removed(kind, key_of(known), uid_of(known))
            return
        latest = self._cache.get(kind, *key_of(known))
        if latest is not None and uid_of(latest) == uid_of(known) and not terminating(latest):
            self._cache.assume(kind, merged(latest, {"metadata": {"deletionTimestamp": rfc3339(self._clock.now())}}))


def _steps(writes: Sequence[Write]) -> Iterator[list[Write]]:
    """The writes in steps: neighbouring creations are one step, neighbouring deletions are one, every other write is a step by itself."""
    for together, run in groupby(writes, _side_by_side):
        if together:
            yield list(run)
        else:
            yield from ([write] for write in run)


def _side_by_side(write: Write) -> type[Write] | None:
    """The type of the step that a write may share with its neighbours. None if it is a step by itself."""
    alone = isinstance(write, Delete) and write.surely
    return type(write) if isinstance(write, Create | Delete) and not alone else None


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
