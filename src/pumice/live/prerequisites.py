"""What must be true before a pod can be bound: its waiting volumes, and its devices, as the cycle decided them.

Volcano's order: a claim of a volume is given its volume, or the node where one is to be made, and the bind waits until both are bound to
each other; a claim of devices is allocated and reserved for the pod. Pure: read from the kept state when the decision is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import to_builtins

from pumice.kube.resource import ObjectRef
from pumice.model.cluster import Cluster
from pumice.model.task import Task
from pumice.plugins.kube.claims import has_claims
from pumice.plugins.kube.device_allocation import Pick
from pumice.plugins.kube.device_reach import reach
from pumice.plugins.kube.standing.assumed_devices import Allotted, AssumedDevices
from pumice.plugins.kube.standing.assumed_volumes import AssumedVolumes


class VolumeFor(NamedTuple):
    """A claim is to get this volume; if none is named, one that is made for the node."""

    claim: ObjectRef
    volume: str
    node: str


class DevicesFor(NamedTuple):
    """A claim is to be reserved for the pod, and allocated first if nobody has done it. `results` are empty if nothing was decided."""

    claim: ObjectRef
    results: tuple[dict[str, Any], ...] = ()
    node_selector: dict[str, Any] | None = None
    configs: tuple[dict[str, Any], ...] = ()  #: of the requests' device classes


class Prerequisites(NamedTuple):
    volumes: tuple[VolumeFor, ...] = ()
    devices: tuple[DevicesFor, ...] = ()


NONE = Prerequisites()


def prerequisites(cluster: Cluster, task: Task) -> Prerequisites:
    """Of a pod that the last cycle placed."""
    if not task.claims and not has_claims(task.template):
        return NONE
    return Prerequisites(_volumes(cluster, task) if has_claims(task.template) else (), _devices(cluster, task) if task.claims else ())


def _volumes(cluster: Cluster, task: Task) -> tuple[VolumeFor, ...]:
    assumed = AssumedVolumes.of(cluster).of_pod(task)
    return tuple(VolumeFor(_ref(each.claim), each.volume, each.node) for each in assumed)


def _devices(cluster: Cluster, task: Task) -> tuple[DevicesFor, ...]:
    allotted = {each.claim: each for each in AssumedDevices.of(cluster).of_pod(task)}
    keys = dict.fromkeys(f"{task.namespace}/{name}" for _, name in task.claims if name)
    return tuple(_allocation(cluster, allotted[key]) if key in allotted else DevicesFor(_ref(key)) for key in keys)


def _ref(key: str) -> ObjectRef:
    namespace, _, name = key.partition("/")
    return ObjectRef(name, namespace)


def _allocation(cluster: Cluster, allotted: Allotted) -> DevicesFor:
    selector = reach(allotted.picks, allotted.node)
    where = to_builtins(selector) if selector is not None else None
    return DevicesFor(_ref(allotted.claim), tuple(_result(pick) for pick in allotted.picks), where, tuple(_configs(cluster, allotted)))


def _result(pick: Pick) -> dict[str, Any]:
    """As the claim's status has it. The identity of a share is made when it is written."""
    driver, pool, device = pick.device
    offered = pick.offered.device
    told = {
        "adminAccess": pick.watches or None,
        "tolerations": [to_builtins(each) for each in pick.asked.tolerations],
        "consumedCapacity": {name: amount.text for name, amount in (pick.amounts or {}).items()},
        "bindingConditions": offered.binding_conditions,
        "bindingFailureConditions": offered.binding_failure_conditions,
    }
    return {"request": pick.request, "driver": driver, "pool": pool, "device": device} | {k: v for k, v in told.items() if v}


def _configs(cluster: Cluster, allotted: Allotted) -> list[dict[str, Any]]:
    """What the classes of the requests have to say to their drivers."""
    claim = cluster.of("ResourceClaim").get(allotted.claim)
    named = {}
    for request in (claim.spec.devices.requests or ()) if claim is not None else ():
        for sub in request.first_available or ():
            named[f"{request.name}/{sub.name}"] = sub.device_class_name
        named[request.name] = request.exactly.device_class_name if request.exactly else request.device_class_name
    found = []
    for request in dict.fromkeys(pick.request for pick in allotted.picks):
        kind = cluster.of("DeviceClass").get(named.get(request) or "")
        configs = (kind.spec.config if kind is not None else None) or ()
        found += [{"source": "FromClass", "requests": [request], **config} for config in configs]
    return found
