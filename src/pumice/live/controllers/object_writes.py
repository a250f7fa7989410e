"""The writes of controllers as requests; each answer is passed straight to the cache.

To create an object that exists, or to delete one that is gone, is no failure; an object with another uid is another object and left alone.
Neighbouring creations are sent together, and so are neighbouring deletions, because a job has many pods. A role that allows updates but no
patches (Volcano's own is such for some kinds) is found out if a patch gets a 403 and the update does not: from then on the merged object is
sent whole. A 403 alone proves nothing: an API server that has just started knows no roles for a moment.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from itertools import count, groupby

from pumice.api import Object, key_of, name_of, namespace_of, rfc3339, uid_of
from pumice.api.json_objects import merged, terminating
from pumice.api.kinds import Kind, ObjectRef, kind_of
from pumice.client.client import Backoff, is_refusal
from pumice.client.event_correlator import EventRecord, InvolvedObject
from pumice.client.event_recorder import EventRecorder
from pumice.client.failures import ApiError, Fenced, KubeError, despite
from pumice.client.transport import PatchType, Transport, as_dict
from pumice.controllers.writes import Create, Delete, Emit, Patch, Write
from pumice.live.clock import Clock
from pumice.live.object_cache import ObjectCache, whole
from pumice.live.watch_scopes import LABELLED, RESOURCES

log = logging.getLogger(__name__)
BACKOFF = Backoff()
LOGGED_AT = 6  #: so many failures in a row, which take 1.5 s, are told if the server could not do what was asked
Made = Callable[[Object, ObjectCache], None]
AT_ONCE = 50  #: the most writes of one key that are under way, so that the other keys' writes do not wait behind thousands


def ignored(made: Object, cache: ObjectCache) -> None:
    """For who need not know what was created."""


class ObjectWrites:
    """Sends the writes of controllers. Raises KubeError for a write that was not carried out."""

    def __init__(self, transport: Transport, cache: ObjectCache, recorder: EventRecorder, clock: Clock, made: Made = ignored) -> None:
        """`made` gets each object that was created."""
        self._transport = transport
        self._made = made
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
                    try:
                        raise outcome
                    finally:
                        del outcome, outcomes  # a frame that keeps its own failure would wait for the collector of garbage

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
            answer, tell = await self._transport.create(resource, subject, namespace_of(subject), repeatable=True), self._made
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            answer, tell = await self._transport.get(resource, ObjectRef(name_of(subject), namespace_of(subject))), ignored
        found = whole(as_dict(answer), resource)
        self._cache.answered(kind, found)
        tell(found, self._cache)

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
