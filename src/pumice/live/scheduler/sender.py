"""Sends the requests of cycles over a `Transport`, and reports how each of them ended (to `outcomes.py`).

Binds, evictions and statuses have lanes of their own (`RequestLane`), so that no kind of request waits behind another kind. A lane makes
many calls at once, so that a slow call does not delay the others, and namespaces take turns in it. In a lane a key (a pod, a PodGroup, a
queue) has one call at a time; of the requests that wait for the same key only the newest is sent.

A bind is repeated on the same node for as long as the server may have carried it out without our knowledge: to free its room, or to give
the pod another node, before that is known could fill a node twice. A bind that was refused keeps its room for some more tries too: other
pods of its gang may be bound already, and a pod that took the room would leave the gang half placed. When a bind is given up, the pod is
read, and as it was read it frees the room (`assumed_pods.py`). A bind that needs volumes or devices first waits for them in a lane of its
own, which is wide enough that slow storage delays no other pod.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

from pumice.api import rfc3339
from pumice.api.annotations import HELD_PLACES, QUEUE_GATE
from pumice.api.kinds import NATIVE_POD_GROUPS, POD_GROUPS, PODS, RESOURCE_CLAIMS, ObjectRef
from pumice.api.pod import Pod
from pumice.api.structs import decoder
from pumice.client.bind_and_evict import amend_status, bind, evict, eviction_conditions
from pumice.client.client import Backoff, of_ending_namespace
from pumice.client.failures import ApiError, Fenced, KubeError, NoAnswer
from pumice.client.transport import PatchType, Transport, as_dict
from pumice.live.clock import Clock
from pumice.live.scheduler.http_world import HttpWorld
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.outcomes import Outcomes
from pumice.live.scheduler.pod_condition import apply_mark
from pumice.live.scheduler.prebind import NotPrepared, PreBind
from pumice.live.scheduler.request_lane import RequestLane
from pumice.live.scheduler.requests import (
    BindPod,
    EvictPod,
    MarkPod,
    OpenGate,
    ReadPod,
    ReleaseClaim,
    Request,
    Requests,
    WriteCondition,
    WriteStatus,
)
from pumice.live.scheduler.watched_resources import RawObjects
from pumice.scheduler.model import status

BACKOFF = Backoff(0.2, 5.0)
BIND_TRIES = 8  #: after this many retries a refusal or a 5xx answer ends the bind and frees its room; they take about 15 s
EVICT_TRIES = 4
NOTED_EVERY_S = 0.02  #: how often it is looked whether places are noted
PREPARED_AT_ONCE = 256  #: pods that wait for their volumes or devices at the same time
RESTING_AT_ONCE = 1024  #: pods that wait at the same time to be read again, after a fault of ours or in a namespace that ends
ENDING_S = 15.0  #: a pod whose namespace is being deleted should be gone after so long


class PausedRead(NamedTuple):
    request: ReadPod
    pause_s: float


class Sender:
    """Sends requests in the background. `send` returns at once; `run` works until it is cancelled."""

    def __init__(
        self, transport: Transport, outcomes: Outcomes, raw_objects: Mapping[str, RawObjects], clock: Clock, options: Options
    ) -> None:
        self._transport = transport
        self._outcomes = outcomes
        self._raw_objects = raw_objects
        self._clock = clock
        self._world = HttpWorld()  #: the extenders that bind
        self._preparing = PreBind(transport, raw_objects, outcomes.is_there, clock, options.volume_timeout_s)
        self._waits_for_volumes = options.volumes
        few = max(1, options.concurrency // 2)
        acts: dict[str, tuple[int, Callable[[Any], Awaitable[None]]]] = {
            "eviction": (few, self._evict),
            "volumes and devices": (PREPARED_AT_ONCE, self._prepare),
            "bind": (options.concurrency, self._bind),
            "gate": (few, self._open_gate),
            "condition": (few, self._mark),
            "status": (few, self._write),
            "group condition": (few, self._condition),
            "claim": (few, self._release),
            "read": (few, self._read),
            "fault": (few, lambda fault: self._on_fault(*fault)),
            "pause before it is read": (RESTING_AT_ONCE, self._rest),
        }
        self._lanes = {name: RequestLane(width, act, self._on_fault) for name, (width, act) in acts.items()}
        self._binds = self._lanes["bind"]

    def send(self, requests: Requests) -> None:
        lanes = self._lanes
        for eviction in requests.evictions:
            lanes["eviction"].put(eviction.pod.uid, eviction, eviction.pod.namespace)
        for write in requests.statuses:  # before binds: pods of a gang are only made once its status says so
            lanes["status"].put((write.kind, str(write.ref)), write, write.ref.namespace)
        for bound in requests.binds:
            lanes["condition"].drop(bound.pod.uid)
            needs = bound.needs if self._waits_for_volumes else bound.needs._replace(volumes=())
            lane = lanes["volumes and devices" if any(needs) else "bind"]
            lane.put(bound.pod.uid, bound._replace(needs=needs), bound.pod.namespace)
        for gate in requests.gates:
            lanes["gate"].put(gate.pod.uid, gate, gate.pod.namespace)
        for mark in requests.marks:
            lanes["condition"].put(mark.pod.uid, mark, mark.pod.namespace)
        for condition in requests.conditions:
            lanes["group condition"].put(str(condition.group), condition, condition.group.namespace)
        for release in requests.releases:
            lanes["claim"].put(str(release.claim), release, release.claim.namespace)
        for fault in requests.faults:
            lanes["fault"].put((type(fault.request), fault.request[0]), fault)

    def read_again(self, request: ReadPod) -> None:
        self._lanes["read"].put(request.pod.uid, request, request.pod.namespace)

    def notes_of(self, uid: str) -> dict[str, str]:
        """Which calls about a pod wait or are under way; a bind that is repeated is one call."""
        return {name: state for name, lane in self._lanes.items() if (state := lane.state_of(uid))}

    @property
    def idle(self) -> bool:
        return all(lane.idle for lane in self._lanes.values())

    @property
    def binding(self) -> bool:
        """Whether binds wait or are under way."""
        return not self._binds.idle

    @property
    def crowded(self) -> bool:
        """Whether binds wait for others to be answered."""
        return self._binds.crowded

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for lane in self._lanes.values():
                tasks.create_task(lane.run())

    async def drained(self) -> None:
        """Wait until all requests so far have ended."""
        while not self.idle:
            for lane in self._lanes.values():
                await lane.emptied()

    async def _on_fault(self, request: Any, error: Exception) -> None:
        """Handle an exception of our own code, whatever in the object or the answer caused it, as a failure of this request alone."""
        failure = KubeError(f"{type(error).__name__}: {error}")
        pause_s = await self._outcomes.on_fault(request, error)
        match request:
            case ReadPod():
                return self._rest_first(request, pause_s)
            case BindPod():
                self._rest_first(ReadPod(request.pod, status.BINDING), pause_s)
            case EvictPod():
                self._rest_first(ReadPod(request.pod, status.RELEASING), pause_s)
        return self._outcomes.failed(request, failure)

    def _rest_first(self, request: ReadPod, pause_s: float) -> None:
        """Read the pod after a pause. Meanwhile what is assumed of it stays, and it occupies no worker of another lane."""
        self._lanes["pause before it is read"].put(request.pod.uid, PausedRead(request, pause_s))

    async def _rest(self, rest: PausedRead) -> None:
        await self._clock.sleep(rest.pause_s)
        self.read_again(rest.request)

    # ---- pods

    async def _prepare(self, request: BindPod) -> None:
        started = self._clock.now()
        for attempt in range(BIND_TRIES + 1):
            try:
                await self._preparing.fulfil(request.pod, request.needs)
                self._outcomes.took("PreBind", self._clock.now() - started)
                return self._binds.put(request.pod.uid, request, request.pod.namespace)
            except Fenced:
                return self._outcomes.fenced()
            except KubeError as error:
                self._outcomes.failed(request, error)
                failure = error
            if isinstance(failure, NotPrepared):
                break  # on another node the bind may succeed
            await self._clock.sleep(BACKOFF.delay_s(attempt, 0.5))
        return await self._give_up(request, await self._pod_now(request.pod), failure)

    async def _give_up(self, request: BindPod, pod: Pod | None, why: KubeError) -> None:
        """Give up a bind: take back what was prepared for it, write the failure into the pod's status, then free the room."""
        if any(request.needs) and not (pod is not None and pod.spec.node_name):
            try:
                await self._preparing.take_back(request.pod, request.needs)
            except Fenced:
                return self._outcomes.fenced()
        if _is_bindable(pod):
            await self._mark(MarkPod(request.pod, "SchedulerError", f"binding to {request.node} failed: {why}", None))
        return await self._settle(ReadPod(request.pod, status.BINDING), await self._pod_now(request.pod))

    async def _open_gate(self, request: OpenGate) -> None:
        gate = {"name": QUEUE_GATE, "$patch": "delete"}
        without = {"metadata": {"uid": request.pod.uid}, "spec": {"schedulingGates": [gate]}}
        await self._answered(request, self._transport.patch(PODS, request.pod, without, PatchType.STRATEGIC, repeatable=True))

    async def _bind(self, request: BindPod) -> None:
        self._outcomes.reached(request, "PreBound")
        attempt, started = 0, self._clock.now()
        while True:
            try:
                await self._bound(request)
                break
            except Fenced:
                return self._outcomes.fenced()
            except KubeError as error:
                if of_ending_namespace(error):
                    self._outcomes.failed(request, error)
                    return self._rest_first(ReadPod(request.pod, status.BINDING), ENDING_S)
                if not _may_still_bind(error, attempt):
                    self._outcomes.failed(request, error)
                    pod = await self._pod_now(request.pod)
                    if attempt >= BIND_TRIES or request.binder is not None or not _is_bindable(pod):
                        return await self._give_up(request, pod, error)
            await self._clock.sleep(BACKOFF.delay_s(attempt, 0.5))
            attempt += 1
        self._outcomes.took("Bind", self._clock.now() - started)
        return self._outcomes.done(request, b"")

    async def _bound(self, request: BindPod) -> None:
        if request.binder is None:
            return await bind(self._transport, request.pod, request.node, request.annotations)
        from pumice.live.scheduler.http_extenders import bind_by  # few configurations have extenders

        self._transport.check_fence()
        spec = request.binder
        return await bind_by(self._world.extender(spec.url, spec.timeout_s, dict(spec.options)), spec, request.pod, request.node)

    async def _evict(self, request: EvictPod) -> None:
        if not await self._are_noted(request.noted):
            self._outcomes.failed(request, KubeError("the places that are held are not noted, so whoever takes over would not hold them"))
            return self.read_again(ReadPod(request.pod, status.RELEASING))
        for attempt in range(EVICT_TRIES):
            conditions = eviction_conditions(request.why, request.scheduler, rfc3339(self._clock.now()), request.whom)
            try:
                await evict(self._transport, request.pod, conditions)
                return self._outcomes.done(request, b"")
            except Fenced:
                return self._outcomes.fenced()
            except KubeError as error:
                failure = error
            await self._clock.sleep(BACKOFF.delay_s(attempt, 0.5))
        self._outcomes.failed(request, failure)
        return self.read_again(ReadPod(request.pod, status.RELEASING))

    async def _are_noted(self, groups: tuple[str, ...]) -> bool:
        """Whether the PodGroups have the places noted that are held for them, as soon as they do or nothing is left to be written."""
        known = self._raw_objects[POD_GROUPS.kind]
        while any(HELD_PLACES not in ((known.get(key) or {}).get("metadata", {}).get("annotations") or {}) for key in groups):
            if self._lanes["status"].idle:
                return False
            await self._clock.sleep(NOTED_EVERY_S)
        return True

    async def _read(self, request: ReadPod) -> None:
        await self._settle(request, await self._pod_now(request.pod))

    async def _settle(self, request: ReadPod, pod: Pod | None) -> None:
        """Report the pod as it was read. If that is older than what the watch has shown, read the pod again."""
        attempt = 0
        while not await self._outcomes.pod_read(request, pod):
            await self._clock.sleep(BACKOFF.delay_s(attempt, 0.5))
            pod = await self._pod_now(request.pod)
            attempt += 1

    async def _pod_now(self, ref: ObjectRef) -> Pod | None:
        """The pod as the server has it, None if it is gone. Repeats the read until the server answers."""
        attempt = 0
        while True:
            try:
                pod = decoder(Pod).decode(await self._transport.get(PODS, ref))
                return pod if pod.metadata.uid == ref.uid else None
            except KubeError as error:
                if isinstance(error, ApiError) and error.code == 404:
                    return None
            await self._clock.sleep(BACKOFF.delay_s(attempt, 0.5))
            attempt += 1

    async def _mark(self, request: MarkPod) -> None:
        at = rfc3339(self._clock.now())
        await self._answered(request, amend_status(self._transport, request.pod, lambda status: apply_mark(status, request, at)))

    # ---- statuses of whole objects

    async def _write(self, request: WriteStatus) -> None:
        """Write a PodGroup as a whole object, as Volcano does, because of its annotations; of other kinds write only the merged status."""
        whole = self._raw_objects[request.kind.kind].get(str(request.ref))
        if whole is None or (request.ref.uid and whole["metadata"].get("uid") != request.ref.uid):
            return
        if request.kind == POD_GROUPS:
            subresource, whole["status"] = "", request.status
        else:
            subresource, whole["status"] = "status", (whole.get("status") or {}) | request.status
        if request.annotations:
            laid = (whole["metadata"].get("annotations") or {}) | request.annotations
            whole["metadata"]["annotations"] = {key: value for key, value in laid.items() if value is not None}
        update = self._transport.update(request.kind, request.ref, whole, subresource=subresource)
        answer = await self._answered(request, self._unless_too_large(request, update))
        if answer is not None:
            self._outcomes.done(request, answer)

    async def _unless_too_large(self, request: WriteStatus, update: Awaitable[bytes]) -> bytes:
        """The answer to the update. An object that is refused as too large is read again: it has been shown to us larger than it is."""
        try:
            return await update
        except ApiError as error:
            if error.code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
                now = await self._transport.get(request.kind, request.ref)
                raw_objects = self._raw_objects[request.kind.kind]
                raw_objects.forget(str(request.ref))
                raw_objects.keep_raw(now)
            raise

    async def _condition(self, request: WriteCondition) -> None:
        body = {"metadata": {"uid": request.group.uid}, "status": {"conditions": [request.condition]}}
        patching = self._transport.patch(NATIVE_POD_GROUPS, request.group, body, PatchType.STRATEGIC, subresource="status", repeatable=True)
        await self._answered(request, patching)

    async def _release(self, request: ReleaseClaim) -> None:
        await self._answered(request, self._released(request.claim, request.user))

    async def _released(self, ref: ObjectRef, user: str) -> None:
        claim = as_dict(await self._transport.get(RESOURCE_CLAIMS, ref))
        status = claim.get("status") or {}
        if user:
            claim["status"] = {**status, "reservedFor": [each for each in status.get("reservedFor") or () if each["uid"] != user]}
        else:
            claim["status"] = {key: value for key, value in status.items() if key not in ("allocation", "reservedFor")}
        await self._transport.update(RESOURCE_CLAIMS, ref, claim, subresource="status")

    async def _answered(self, request: Request, call: Awaitable[Any]) -> Any:
        """The answer to the call. None if the call failed or the fence held it back; that has been reported then."""
        try:
            return await call
        except Fenced:
            self._outcomes.fenced()
        except KubeError as error:
            self._outcomes.failed(request, error)
        return None


def _is_bindable(pod: Pod | None) -> bool:
    return pod is not None and not pod.spec.node_name and not pod.metadata.deletion_timestamp


def _may_still_bind(error: KubeError, attempt: int) -> bool:
    """Whether a bind may still succeed, so that its room must not be freed. A call without an answer is no refusal, sent or not."""
    return isinstance(error, NoAnswer) or (isinstance(error, ApiError) and error.code >= 500 and attempt < BIND_TRIES)
