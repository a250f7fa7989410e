"""Prepares the volumes and devices that a bind requires, waits until they are ready, and takes them back if the bind fails.

The installed role may update PersistentVolumeClaims and volumes only as whole objects, and may not get single ones, so they are sent as the
watch last showed them. ResourceClaims are read first. A step that somebody else has done meanwhile counts as done.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from uuid import uuid4

from pumice.api import Object
from pumice.api.annotations import BIND_COMPLETED, BOUND_BY_CONTROLLER, EXTENDED_CLAIM, SELECTED_NODE
from pumice.api.kinds import NATIVE_POD_GROUPS, PODS, RESOURCE_CLAIMS, VOLUME_CLAIMS, VOLUMES, Kind, ObjectRef
from pumice.api.times import rfc3339
from pumice.client.bind_and_evict import amend_status
from pumice.client.client import Backoff
from pumice.client.failures import ApiError, Fenced, KubeError
from pumice.client.transport import Transport, as_dict
from pumice.live.clock import Clock
from pumice.live.scheduler.prerequisites import DevicesFor, Making, Prerequisites, VolumeFor
from pumice.live.scheduler.watched_resources import RawObjects

CHARGES = "nodeAllocatableResourceClaimStatuses"
FINALIZER = "resource.kubernetes.io/delete-protection"
LOOK_S = 0.2
LOOK_AT_DEVICES_S = 1.0
TRIES = 6
BACKOFF = Backoff(0.2, 2.0)
log = logging.getLogger(__name__)


class NotPrepared(KubeError):
    """A volume was not bound, or a claim not allocated. What was prepared for the bind is taken back."""


class PodGone(NotPrepared):
    """The pod was deleted meanwhile: nothing need be waited for."""


class PreBind:
    """Prepares volumes and devices: call `fulfil` before a bind, and `take_back` after a bind that failed. Raises KubeError."""

    def __init__(
        self,
        transport: Transport,
        raw_objects: Mapping[str, RawObjects],
        is_there: Callable[[ObjectRef], bool],
        clock: Clock,
        volume_timeout_s: float,
    ) -> None:
        """`is_there` says whether a pod has not been deleted."""
        self._transport = transport
        self._raw_objects = raw_objects
        self._is_there = is_there
        self._clock = clock
        self._volume_timeout_s = volume_timeout_s

    async def fulfil(self, pod: ObjectRef, wanted: Prerequisites) -> None:
        for devices in wanted.devices:
            named = devices if devices.making is None else await self._made(pod, devices, devices.making)
            await self._again(partial(self._reserve, pod, named))
            await self._devices_ready(pod, named)
        if wanted.charges:
            await self._charge(pod, [*wanted.charges])
        for volume in wanted.volumes:
            await self._again(partial(self._give, volume))
        await self._volumes_bound(pod, wanted.volumes)

    async def take_back(self, pod: ObjectRef, wanted: Prerequisites) -> None:
        """Take back what was prepared for a bind, as far as possible: what is bound or used by others stays."""
        undoing = [
            partial(self._release, pod, each.claim) if each.making is None else partial(self._unmake, pod) for each in wanted.devices
        ]
        undoing += [partial(self._give, each, back=True) for each in wanted.volumes]
        undoing += [partial(self._charge, pod, [])] if wanted.charges else []
        for undo in undoing:
            try:
                await self._again(undo)
            except Fenced:
                raise
            except KubeError as error:
                if isinstance(error, ApiError) and error.code == 404:
                    continue  # it is gone
                log.warning("what was prepared for pod %s was not taken back: %s", pod, error)

    async def _again(self, act: Callable[[], Awaitable[None]]) -> None:
        """Call `act`, and again after a conflict (409), because somebody else may write the same object at the same moment."""
        for attempt in range(TRIES):
            try:
                await act()
                return
            except ApiError as error:
                if error.code != 409 or attempt == TRIES - 1:
                    raise
            await self._clock.sleep(BACKOFF.delay_s(attempt, 0.5))

    async def _look_again(self, pod: ObjectRef, pause_s: float) -> None:
        """Sleep until it is looked again whether everything is ready. Raises PodGone."""
        await self._clock.sleep(pause_s)
        if not self._is_there(pod):
            raise PodGone("the pod is gone")

    # ---- volumes

    async def _give(self, wanted: VolumeFor, *, back: bool = False) -> None:
        claim = self._claim(wanted)
        if claim is None or claim["spec"].get("volumeName"):
            return
        if wanted.volume:
            await self._pair(wanted.volume, claim, back)
        else:
            await self._choose_node(claim, None if back else wanted.node)

    def _claim(self, wanted: VolumeFor) -> Object | None:
        return self._raw_objects[VOLUME_CLAIMS.kind].get(str(wanted.claim))

    async def _choose_node(self, claim: Object, node: str | None) -> None:
        annotations = claim["metadata"].get("annotations") or {}
        if annotations.get(SELECTED_NODE) == node:
            return
        claim["metadata"]["annotations"] = {key: value for key, value in {**annotations, SELECTED_NODE: node}.items() if value is not None}
        await self._update(VOLUME_CLAIMS, claim)

    async def _pair(self, name: str, claim: Object, back: bool) -> None:
        volume = self._raw_objects[VOLUMES.kind].get(name)
        if volume is None:
            raise NotPrepared(f"volume {name} is gone")
        meta, there = claim["metadata"], volume["spec"].get("claimRef") or {}
        ours = there.get("uid") == meta["uid"]
        if there.get("uid") and not ours:
            raise NotPrepared(f"volume {name} was given to {there.get('namespace')}/{there.get('name')}")
        if ours is not back:
            return
        annotations = {key: value for key, value in (volume["metadata"].get("annotations") or {}).items() if key != BOUND_BY_CONTROLLER}
        if back:
            del volume["spec"]["claimRef"]
        else:
            identity = {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
            volume["spec"]["claimRef"] = {"kind": VOLUME_CLAIMS.kind, "apiVersion": VOLUME_CLAIMS.api_version, **identity}
            annotations[BOUND_BY_CONTROLLER] = "yes"
        volume["metadata"]["annotations"] = annotations
        await self._update(VOLUMES, volume)

    async def _update(self, resource: Kind, whole: Object) -> None:
        meta = whole["metadata"]
        answer = await self._transport.update(resource, ObjectRef(meta["name"], meta.get("namespace", ""), meta["uid"]), whole)
        self._raw_objects[resource.kind].keep_raw(answer)

    async def _volumes_bound(self, pod: ObjectRef, wanted: tuple[VolumeFor, ...]) -> None:
        deadline = self._clock.now() + self._volume_timeout_s
        while unbound := [each for each in wanted if not self._is_bound(each)]:
            if self._clock.now() >= deadline:
                names = ", ".join(str(each.claim) for each in unbound)
                raise NotPrepared(f"volumes were not bound within {self._volume_timeout_s:.0f} s: {names}")
            await self._look_again(pod, LOOK_S)

    def _is_bound(self, wanted: VolumeFor) -> bool:
        claim = self._claim(wanted)
        if claim is None:
            raise NotPrepared(f"claim {wanted.claim} is gone")
        annotations = claim["metadata"].get("annotations") or {}
        if claim["spec"].get("volumeName"):
            return BIND_COMPLETED in annotations
        if not wanted.volume and SELECTED_NODE not in annotations:
            raise NotPrepared(f"no volume could be made on {wanted.node} for claim {wanted.claim}")
        return False

    # ---- devices

    async def _reserve(self, pod: ObjectRef, wanted: DevicesFor) -> None:
        claim = as_dict(await self._transport.get(RESOURCE_CLAIMS, wanted.claim))
        status = claim.get("status") or {}
        users = status.get("reservedFor") or []
        if not status.get("allocation"):
            if not wanted.results:
                raise NotPrepared(f"claim {wanted.claim} is not allocated any more")
            claim = await self._protected(claim)
            # kube-scheduler would add a missing time when it reserves the claim for another pod, which the API server refuses
            status["allocation"] = {**_allocation(claim, wanted), "allocationTimestamp": rfc3339(self._clock.now())}
        elif any(user.get("uid") in (pod.uid, wanted.user and wanted.user.uid) for user in users):
            return
        status["reservedFor"] = [*users, _user(pod, wanted.user)]
        claim["status"] = status
        await self._transport.update(RESOURCE_CLAIMS, wanted.claim, claim, subresource="status")

    async def _charge(self, pod: ObjectRef, charges: list[Object]) -> None:
        """Write into the pod's status what its devices take of the node's own resources. An empty list removes it, which none would not."""

        def tell(status: Object) -> bool:
            changes = (status.get(CHARGES) or []) != charges
            status[CHARGES] = charges
            return changes

        await amend_status(self._transport, pod, tell)

    async def _made(self, pod: ObjectRef, wanted: DevicesFor, making: Making) -> DevicesFor:
        """Create the claim that serves a pod's extended resources, and write its name into the pod's status."""
        if making.stale is not None:
            await self._again(partial(self._release, pod, making.stale))
        owner = {"apiVersion": PODS.api_version, "kind": PODS.kind, "name": pod.name, "uid": pod.uid, "controller": True}
        metadata = {"generateName": f"{pod.name}-extended-resources-", "annotations": {EXTENDED_CLAIM: "true"}, "ownerReferences": [owner]}
        body = {
            "apiVersion": RESOURCE_CLAIMS.api_version,
            "kind": RESOURCE_CLAIMS.kind,
            "metadata": metadata | {"namespace": pod.namespace},
            "spec": making.spec,
        }
        made = as_dict(await self._transport.create(RESOURCE_CLAIMS, body, pod.namespace))["metadata"]
        ref = ObjectRef(made["name"], pod.namespace)
        claim_status = {"resourceClaimName": ref.name, "requestMappings": list(making.mappings)}

        def tell(status: Object) -> bool:
            changes = status.get("extendedResourceClaimStatus") != claim_status
            status["extendedResourceClaimStatus"] = claim_status
            return changes

        await amend_status(self._transport, pod, tell)
        return wanted._replace(claim=ref)

    async def _unmake(self, pod: ObjectRef) -> None:
        """Release the claim that was created for the pod. The claim itself is deleted with the pod, which owns it."""
        status = as_dict(await self._transport.get(PODS, pod)).get("status") or {}
        if claim_status := status.get("extendedResourceClaimStatus"):
            await self._release(pod, ObjectRef(claim_status["resourceClaimName"], pod.namespace))

    async def _devices_ready(self, pod: ObjectRef, wanted: DevicesFor) -> None:
        """Wait for devices that others must prepare before the pod may be bound (binding conditions). Raises NotPrepared."""
        if not any(result.get("bindingConditions") for result in wanted.results):
            return
        deadline = self._clock.now() + self._volume_timeout_s
        while not _are_ready(as_dict(await self._transport.get(RESOURCE_CLAIMS, wanted.claim)), wanted):
            if self._clock.now() >= deadline:
                raise NotPrepared(f"devices of claim {wanted.claim} were not ready within {self._volume_timeout_s:.0f} s")
            await self._look_again(pod, LOOK_AT_DEVICES_S)

    async def _protected(self, claim: Object) -> Object:
        """The claim with a finalizer, so that an allocated claim stays until its devices are given back."""
        finalizers = claim["metadata"].get("finalizers") or []
        if FINALIZER in finalizers:
            return claim
        claim["metadata"]["finalizers"] = [*finalizers, FINALIZER]
        ref = ObjectRef(claim["metadata"]["name"], claim["metadata"]["namespace"])
        return as_dict(await self._transport.update(RESOURCE_CLAIMS, ref, claim))

    async def _release(self, pod: ObjectRef, ref: ObjectRef) -> None:
        claim = as_dict(await self._transport.get(RESOURCE_CLAIMS, ref))
        status = claim.get("status") or {}
        users = status.get("reservedFor") or []
        others = [user for user in users if user.get("uid") != pod.uid]
        if len(others) == len(users):
            return
        status["reservedFor"] = others
        if not others:
            status.pop("reservedFor")
            status.pop("allocation", None)
        claim["status"] = status
        await self._transport.update(RESOURCE_CLAIMS, ref, claim, subresource="status")


def _user(pod: ObjectRef, group: ObjectRef | None) -> Object:
    """The reference by which a claim is reserved for a pod, or for its PodGroup."""
    if group is not None:
        return {"apiGroup": NATIVE_POD_GROUPS.group, "resource": NATIVE_POD_GROUPS.plural, "name": group.name, "uid": group.uid}
    return {"resource": "pods", "name": pod.name, "uid": pod.uid}


def _are_ready(claim: Object, wanted: DevicesFor) -> bool:
    """Whether all devices have their binding conditions. Raises NotPrepared if a device has a failure condition."""
    true_conditions = {
        (each["driver"], each["pool"], each["device"]): {c["type"] for c in each.get("conditions") or () if c.get("status") == "True"}
        for each in (claim.get("status") or {}).get("devices") or ()
    }
    ready = True
    for result in wanted.results:
        true = true_conditions.get((result["driver"], result["pool"], result["device"]), set())
        if failed := true.intersection(result.get("bindingFailureConditions") or ()):
            raise NotPrepared(f"device {result['device']} of claim {wanted.claim} failed: {', '.join(sorted(failed))}")
        ready &= true.issuperset(result.get("bindingConditions") or ())
    return ready


def _allocation(claim: Object, wanted: DevicesFor) -> Object:
    config = [*wanted.configs, *_own_configs(claim["spec"].get("devices") or {}, wanted)]
    results = [result | {"shareID": str(uuid4())} if "shareID" in result else result for result in wanted.results]
    devices = {"results": results, **({"config": config} if config else {})}
    return {"devices": devices, **({"nodeSelector": wanted.node_selector} if wanted.node_selector else {})}


def _own_configs(devices: Object, wanted: DevicesFor) -> Iterator[Object]:
    """The claim's driver configurations for what it got. By 1.37 one that is for all requests names none."""
    got = {result["request"] for result in wanted.results}
    for config in devices.get("config") or ():
        requests = config.get("requests") or ()
        concerned = {name for name in got if name in requests or name.partition("/")[0] in requests}
        is_for_all = wanted.newer and concerned == got
        if concerned or not requests:
            yield {"source": "FromClaim", **{key: value for key, value in config.items() if key != "requests" or not is_for_all}}
