"""What controllers want written, as requests to an API server, each answer going straight into the cache.

As `controllers` say: what exists already is created well enough, an object with another uid is another object and left alone, what
is gone is deleted well enough. Creations that stand side by side leave together, and so do deletions, for a job's
pods are many. A role that allows updates and no patches (Volcano's own has such) is found out by a 403 where an update is let through: from
then on the merged object is sent whole. A 403 alone proves nothing: an API server that has just started knows no roles for a moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from itertools import count, groupby

from pumice.api.json_objects import Object, key_of, merged, name_of, namespace_of, terminating, uid_of
from pumice.api.kinds import Kind, ObjectRef, kind_of
from pumice.api.times import rfc3339
from pumice.client.events import EventRecord, EventRecorder, InvolvedObject
from pumice.client.retry import Backoff, is_refusal
from pumice.client.transport import ApiError, Fenced, KubeError, PatchType, Transport, as_dict
from pumice.controllers.controller import Create, Delete, Emit, Patch, Write
from pumice.live.lifecycle import Clock
from pumice.live.object_cache import LABELLED, RESOURCES, ObjectCache, whole

log = logging.getLogger(__name__)

BACKOFF = Backoff()


class ObjectWrites:
    """Raises KubeError for what was not done."""

    def __init__(self, transport: Transport, cache: ObjectCache, recorder: EventRecorder, clock: Clock) -> None:
        self._transport = transport
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._unpatchable: set[tuple[Kind, str]] = set()  #: where this role allows updates only

    async def apply(self, writes: Sequence[Write]) -> None:
        """In order; the first that fails ends it."""
        for together in _steps(writes):
            outcomes = await asyncio.gather(*(self._one(write) for write in together), return_exceptions=True)
            for write, outcome in zip(together, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    self._tell_of(write, outcome)
                    raise outcome

    def _tell_of(self, write: Write, failure: BaseException) -> None:
        """Whose pods cannot be made should read why, where they look: a quota, a refused image, a name that is too long."""
        if isinstance(write, Create) and write.about is not None and isinstance(failure, ApiError):
            self._tell(Emit(write.about, "Warning", "FailedCreate", f"Error creating: {failure.message}"))

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
        try:
            answer = await self._changed(resource, ref, write, known)
        except ApiError as error:
            if error.code != 404:
                raise
            return  # its end will be told
        self._cache.answered(write.kind, whole(as_dict(answer), resource))

    async def _changed(self, resource: Kind, ref: ObjectRef, write: Patch, known: Object) -> bytes:
        place, wholly = (resource, write.subresource), merged(known, write.patch)
        if place in self._unpatchable:
            return await self._transport.update(resource, ref, wholly, subresource=write.subresource)
        body = merged(write.patch, {"metadata": {"uid": write.uid}}) if write.uid else write.patch
        try:
            return await self._transport.patch(resource, ref, body, PatchType.MERGE, subresource=write.subresource, repeatable=True)
        except ApiError as error:
            if error.code != 403:
                raise
        answer = await self._transport.update(resource, ref, wholly, subresource=write.subresource)
        self._unpatchable.add(place)
        log.info("%s %s may not be patched; they are updated whole", resource.plural, write.subresource)
        return answer

    async def _delete_surely(self, write: Delete) -> None:
        """Until it is gone or refused: a deletion that failed may have been carried out, and who looks later finds nothing to follow."""
        for attempt in count():
            try:
                await self._delete(write)
                return
            except KubeError as error:
                if isinstance(error, Fenced) or is_refusal(error):
                    raise
                log.info("%s %s/%s is to be deleted: %s", write.kind, write.namespace, write.name, error)
            await self._clock.sleep(BACKOFF.delay_s(attempt, 1.0))

    async def _delete(self, write: Delete) -> None:
        known = self._cache.get(write.kind, write.namespace, write.name)
        if known is None or (write.uid and uid_of(known) != write.uid):
            return
        ref = ObjectRef(write.name, write.namespace, uid_of(known))
        try:
            await self._transport.delete(RESOURCES[write.kind], ref, propagation=write.propagation, grace_s=write.grace_s)
        except ApiError as error:
            if error.code != 404:
                raise  # at 409 it is another object by now, which the watch will tell, or the server was wrong
        self._going(write.kind, known)

    def _going(self, kind: str, known: Object) -> None:
        """Until the watch tells what became of it, it counts as going. What is perhaps not watched, as it has no label, is gone at once."""
        if kind in LABELLED:
            self._cache.removed(kind, key_of(known), uid_of(known))
            return
        latest = self._cache.get(kind, *key_of(known))
        if latest is not None and uid_of(latest) == uid_of(known) and not terminating(latest):
            self._cache.assume(kind, merged(latest, {"metadata": {"deletionTimestamp": rfc3339(self._clock.now())}}))


def _steps(writes: Sequence[Write]) -> Iterator[list[Write]]:
    """Creations side by side are one step, and deletions; everything else is one by itself."""
    for together, run in groupby(writes, _side_by_side):
        if together:
            yield list(run)
        else:
            yield from ([write] for write in run)


def _side_by_side(write: Write) -> type[Write] | None:
    """What kind of step a write may share with its neighbours."""
    alone = isinstance(write, Delete) and write.surely
    return type(write) if isinstance(write, Create | Delete) and not alone else None
