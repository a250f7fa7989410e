"""What a cycle asks of the API server, as plain values, and what must be true before a bind. `effects` makes them, `sender` sends them."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct, to_builtins

from pumice.api.kinds import Kind, ObjectRef
from pumice.client.events import EventRecord
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.task import Task
from pumice.scheduler.plugins.kube.devices.allocation import Pick
from pumice.scheduler.plugins.kube.devices.claims import Mapped, reach, special_key
from pumice.scheduler.plugins.kube.dynamic_resources import wants_devices
from pumice.scheduler.plugins.kube.indexes.assumed import Allotted, AssumedDevices, AssumedVolumes
from pumice.scheduler.plugins.kube.volume_matching import has_claims

# What must be true before a pod can be bound: its waiting volumes, and its devices, as the cycle decided them.
#
# Volcano's order: a claim of a volume is given its volume, or the node where one is to be made, and the bind waits until both are bound to
# each other; a claim of devices is allocated and reserved for the pod. Pure: read from the kept state when the decision is taken.


class VolumeFor(Struct, frozen=True):
    """A claim is to get this volume; if none is named, one that is made for the node."""

    claim: ObjectRef
    volume: str
    node: str


class Making(Struct, frozen=True):
    """A claim that is written before it is allocated, since it is of the scheduler's making: it serves the pod's extended resources."""

    spec: dict[str, Any]
    mappings: tuple[dict[str, Any], ...]  #: which request serves which container
    stale: ObjectRef | None = None  #: one that an earlier attempt has left


class DevicesFor(NamedTuple):
    """A claim is to be reserved for the pod, and allocated first if nobody has done it. `results` are empty if nothing was decided."""

    claim: ObjectRef
    results: tuple[dict[str, Any], ...] = ()
    node_selector: dict[str, Any] | None = None
    configs: tuple[dict[str, Any], ...] = ()  #: of the requests' device classes
    making: Making | None = None


class Prerequisites(NamedTuple):
    volumes: tuple[VolumeFor, ...] = ()
    devices: tuple[DevicesFor, ...] = ()


NONE = Prerequisites()
SHARE = "to be made"  #: in place of a share's identity


def prerequisites(cluster: Cluster, task: Task) -> Prerequisites:
    """Of a pod that the last cycle placed."""
    volumes, devices = has_claims(task.template), wants_devices(cluster, task)
    if not volumes and not devices:
        return NONE
    return Prerequisites(_volumes(cluster, task) if volumes else (), _devices(cluster, task) if devices else ())


def _volumes(cluster: Cluster, task: Task) -> tuple[VolumeFor, ...]:
    assumed = cluster.index(AssumedVolumes).of_pod(task)
    return tuple(VolumeFor(_ref(each.claim), each.volume, each.node) for each in assumed)


def _devices(cluster: Cluster, task: Task) -> tuple[DevicesFor, ...]:
    assumed = cluster.index(AssumedDevices)
    allotted = {each.claim: each for each in assumed.of_pod(task)}
    keys = dict.fromkeys(f"{task.namespace}/{name}" for _, name in task.claims if name)
    found = [_allocation(cluster, allotted[key]) if key in allotted else DevicesFor(_ref(key)) for key in keys]
    special = allotted.get(special_key(task))
    if special is not None and special.special is not None:
        spec, mappings = to_builtins(special.special.claim.spec), tuple(_mapping(each) for each in special.special.mappings)
        stale = assumed.specials.get(special_key(task))
        making = Making(spec, mappings, _ref(stale) if stale is not None else None)
        found.append(_allocation(cluster, special)._replace(claim=ObjectRef("", task.namespace), making=making))
    return tuple(found)


def _mapping(mapped: Mapped) -> dict[str, Any]:
    return {"containerName": mapped.container, "resourceName": mapped.resource, "requestName": mapped.request}


def _ref(key: str) -> ObjectRef:
    namespace, _, name = key.partition("/")
    return ObjectRef(name, namespace)


def _allocation(cluster: Cluster, allotted: Allotted) -> DevicesFor:
    selector = reach(allotted.picks, allotted.node)
    where = to_builtins(selector) if selector is not None else None
    return DevicesFor(_ref(allotted.claim), tuple(_result(pick) for pick in allotted.picks), where, tuple(_configs(cluster, allotted)))


def _result(pick: Pick) -> dict[str, Any]:
    """As the claim's status has it. What identifies a share is made when it is written."""
    driver, pool, device = pick.device
    offered = pick.offered.device
    told = {
        "shareID": SHARE if pick.amounts is not None else None,
        "adminAccess": pick.watches or None,
        "tolerations": [to_builtins(each) for each in pick.asked.tolerations],
        "consumedCapacity": {name: amount.text for name, amount in (pick.amounts or {}).items()},
        "bindingConditions": offered.binding_conditions,
        "bindingFailureConditions": offered.binding_failure_conditions,
    }
    return {"request": pick.request, "driver": driver, "pool": pool, "device": device} | {k: v for k, v in told.items() if v}


def _configs(cluster: Cluster, allotted: Allotted) -> list[dict[str, Any]]:
    """What the classes of the requests have to say to their drivers."""
    found = []
    for request, device_class in dict.fromkeys((pick.request, pick.asked.kind[0]) for pick in allotted.picks):
        kind = cluster.of("DeviceClass").get(device_class)
        configs = (kind.spec.config if kind is not None else None) or ()
        found += [{"source": "FromClass", "requests": [request], **config} for config in configs]
    return found


class BindPod(NamedTuple):
    """Put a pod on a node, once its `needs` are fulfilled. `already`: an extender has done it, and only the watch is waited for."""

    pod: ObjectRef
    node: str
    annotations: dict[str, str]
    already: bool = False
    needs: Prerequisites = NONE


class EvictPod(NamedTuple):
    """Tell in the pod's status why, then delete it."""

    pod: ObjectRef
    why: str  #: because of which action, and for whom
    scheduler: str  #: the victim's schedulerName


class MarkPod(NamedTuple):
    """PodScheduled=False and the nominated node. `nominated` None leaves that as it is, "" takes it back."""

    pod: ObjectRef
    reason: str
    message: str
    nominated: str | None


class OpenGate(Struct, frozen=True):
    """Take the queue's scheduling gate from a pod: its queue has room for it."""

    pod: ObjectRef


class ReadPod(Struct, frozen=True):
    """Find out how a pod really is, which is `assumed` to have a status that nobody has confirmed."""

    pod: ObjectRef
    assumed: int


class WriteStatus(NamedTuple):
    """The status of a PodGroup, Queue or NodeShard, and annotations laid over the object's own (None: taken away)."""

    ref: ObjectRef
    kind: Kind
    status: dict[str, Any]
    annotations: dict[str, str | None]


Request = BindPod | EvictPod | MarkPod | OpenGate | WriteStatus


class Amiss(NamedTuple):
    """A fault of ours stood in the way of a request, which has no more in it than whose it is."""

    request: BindPod | EvictPod | MarkPod | WriteStatus
    error: Exception


class Requests(NamedTuple):
    """All of one cycle, in the order in which they should leave."""

    evictions: list[EvictPod]
    binds: list[BindPod]
    gates: list[OpenGate]
    marks: list[MarkPod]
    statuses: list[WriteStatus]
    events: list[EventRecord]
    amiss: list[Amiss]

    def __bool__(self) -> bool:
        return any(self)
