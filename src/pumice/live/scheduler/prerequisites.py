"""What must be ready before a pod can be bound: its volumes that are not bound yet, and its devices, as the cycle decided them.

Volcano's order: a PersistentVolumeClaim gets its volume, or the node where one is to be provisioned, and the bind waits until claim and
volume are bound to each other; a ResourceClaim is allocated and reserved for the pod. Pure: all is read from the kept state when the
decision is made.
"""

from typing import Any, NamedTuple

from msgspec import Struct, json, to_builtins

from pumice.api.kinds import NATIVE_POD_GROUP, ObjectRef
from pumice.api.structs import encode
from pumice.scheduler.model import Cluster, Task
from pumice.scheduler.plugins.kube.devices.allocation import Pick
from pumice.scheduler.plugins.kube.devices.claims import group_claims, named_claims
from pumice.scheduler.plugins.kube.devices.extended_resources import Mapped, special_key
from pumice.scheduler.plugins.kube.devices.node_selector import reach
from pumice.scheduler.plugins.kube.devices.pools import SKIPS
from pumice.scheduler.plugins.kube.dynamic_resources import wants_devices
from pumice.scheduler.plugins.kube.indexes.assumed_devices import Allotted, AssumedDevices
from pumice.scheduler.plugins.kube.indexes.assumed_volumes import AssumedVolumes
from pumice.scheduler.plugins.kube.volume_matching import has_claims


class VolumeFor(Struct, frozen=True):
    """The volume that a PersistentVolumeClaim is to get; if `volume` is empty, one that is provisioned for the node."""

    claim: ObjectRef
    volume: str
    node: str


class Making(Struct, frozen=True):
    """A ResourceClaim that the scheduler creates itself before it is allocated: it serves the pod's extended resources."""

    spec: dict[str, Any]
    mappings: tuple[dict[str, Any], ...]  #: which request serves which container
    stale: ObjectRef | None = None  #: a claim that an earlier attempt has left behind


class DevicesFor(NamedTuple):
    """A ResourceClaim to reserve for the pod, and to allocate first if it is not yet. `results` are empty if nothing was decided."""

    claim: ObjectRef
    results: tuple[dict[str, Any], ...] = ()
    node_selector: dict[str, Any] | None = None
    configs: tuple[dict[str, Any], ...] = ()  #: the configurations of the requests' device classes
    newer: bool = False  #: by the rules of 1.37
    making: Making | None = None
    user: ObjectRef | None = None  #: the native PodGroup for which it is reserved; None for the pod itself


class Prerequisites(NamedTuple):
    """`charges`: what the pod's status is to say of what its devices take of the node's own resources."""

    volumes: tuple[VolumeFor, ...] = ()
    devices: tuple[DevicesFor, ...] = ()
    charges: tuple[dict[str, Any], ...] = ()


NONE = Prerequisites()
SHARE = "to be made"  #: in place of the id of a device share


def prerequisites(cluster: Cluster, task: Task) -> Prerequisites:
    """What must be ready before the bind of a pod that the last cycle placed."""
    volumes, devices = has_claims(task.template), wants_devices(cluster, task)
    if not volumes and not devices:
        return NONE
    charges = tuple(json.decode(encode(each)) for each in task.charges)
    return Prerequisites(_volumes(cluster, task) if volumes else (), _devices(cluster, task) if devices else (), charges)


def _volumes(cluster: Cluster, task: Task) -> tuple[VolumeFor, ...]:
    assumed = cluster.index(AssumedVolumes).of_pod(task)
    return tuple(VolumeFor(object_ref(each.claim), each.volume, each.node) for each in assumed)


def _devices(cluster: Cluster, task: Task) -> tuple[DevicesFor, ...]:
    assumed = cluster.index(AssumedDevices)
    allotted = {each.claim: each for each in assumed.of_pod(task)}
    keys = dict.fromkeys(f"{task.namespace}/{name}" for _, name in named_claims(cluster, task) if name)
    shared = {f"{task.namespace}/{name}" for name in group_claims(cluster, task).values()}
    found = [_allocation(cluster, allotted[key]) if key in allotted else DevicesFor(object_ref(key)) for key in keys]
    user = _group_of(cluster, task) if shared else None
    found = [each._replace(user=user) if str(each.claim) in shared else each for each in found]
    special = allotted.get(special_key(task))
    if special is not None and special.special is not None:
        spec, mappings = to_builtins(special.special.claim.spec), tuple(_mapping(each) for each in special.special.mappings)
        stale = assumed.specials.get(special_key(task))
        making = Making(spec, mappings, object_ref(stale) if stale is not None else None)
        found.append(_allocation(cluster, special)._replace(claim=ObjectRef("", task.namespace), making=making))
    return tuple(found)


def _group_of(cluster: Cluster, task: Task) -> ObjectRef:
    meta = cluster.of(NATIVE_POD_GROUP)[task.group].metadata
    return ObjectRef(meta.name, meta.namespace, meta.uid or "")


def _mapping(mapped: Mapped) -> dict[str, Any]:
    return {"containerName": mapped.container, "resourceName": mapped.resource, "requestName": mapped.request}


def object_ref(key: str) -> ObjectRef:
    namespace, _, name = key.partition("/")
    return ObjectRef(name, namespace)


def _allocation(cluster: Cluster, allotted: Allotted) -> DevicesFor:
    selector = reach(allotted.picks, allotted.node)
    where = to_builtins(selector) if selector is not None else None
    return DevicesFor(
        object_ref(allotted.claim),
        tuple(_result(cluster, pick) for pick in allotted.picks),
        where,
        tuple(_configs(cluster, allotted)),
        cluster.newer,
    )


def _result(cluster: Cluster, pick: Pick) -> dict[str, Any]:
    """An allocated device, as the claim's status has it. The id of a share is made when the claim is written."""
    driver, pool, device = pick.device
    offered = pick.offered.device
    fields = {
        "shareID": SHARE if pick.amounts is not None else None,
        "adminAccess": pick.watches or None,
        "tolerations": [to_builtins(each) for each in pick.asked.tolerations],
        "consumedCapacity": {name: amount.text for name, amount in (pick.amounts or {}).items()},
        "bindingConditions": offered.binding_conditions,
        "bindingFailureConditions": offered.binding_failure_conditions,
        "skipNodeOperations": pick.offered.piece.spec.skip_node_operations if SKIPS in cluster.device_gates else None,
    }
    return {"request": pick.request, "driver": driver, "pool": pool, "device": device} | {k: v for k, v in fields.items() if v}


def _configs(cluster: Cluster, allotted: Allotted) -> list[dict[str, Any]]:
    """The driver configurations of the device classes, each with the requests that it is for; by 1.37 with none if it is for all."""
    classes: dict[str, list[str]] = {}
    for request, device_class in dict.fromkeys((pick.request, pick.asked.kind[0]) for pick in allotted.picks):
        classes.setdefault(device_class, []).append(request)
    found = []
    for device_class, requests in classes.items():
        kind = cluster.of("DeviceClass").get(device_class)
        which = {} if cluster.newer and len(classes) == 1 else {"requests": requests}
        found += [{"source": "FromClass", **which, **config} for config in (kind.spec.config if kind is not None else None) or ()]
    return found
