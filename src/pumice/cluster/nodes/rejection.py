"""What a kubelet checks when a pod is bound to its node: that the pod's node affinity fits, that its host ports are free, and that there is
room for the pod; and whether there is room for what a running pod asks for now."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pumice.api import Object, spec_of, status_of
from pumice.api.quantity import quantity
from pumice.api.resource_quota import add, pod_requests
from pumice.controllers.kubernetes.node_fit import fits

Milli = dict[str, int]  #: by resource: the amount in thousandths
Ports = frozenset[tuple[str, str, int]]  #: of the host: protocol, address and number
ANY_ADDRESS = "0.0.0.0"


class Rejection(NamedTuple):
    reason: str
    message: str


def requests_of(pod: Object) -> Milli:
    """What the pod takes up of a node's resources, including one of its `pods`."""
    return {"pods": 1000} | {name: amount for name, amount in pod_requests(spec_of(pod)).items() if amount}


def host_ports_of(pod: Object) -> Ports:
    """The ports of the host that the pod takes, but for those of init containers that end."""
    spec = spec_of(pod)
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    ports = [port for each in (*(spec.get("containers") or ()), *sidecars) for port in each.get("ports") or () if port.get("hostPort")]
    return frozenset((port.get("protocol") or "TCP", port.get("hostIP") or ANY_ADDRESS, port["hostPort"]) for port in ports)


def rejection(
    pod: Object, needed: Mapping[str, int], node: Object, others: Iterable[Mapping[str, int]], taken: Iterable[Ports]
) -> Rejection | None:
    """Why the node rejects the pod, given the requests and the host ports of the others on it; None if it accepts the pod."""
    if not fits(spec_of(pod), node):
        text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        return Rejection("NodeAffinity", f"Pod was rejected: {text}")
    wanted = host_ports_of(pod)
    if wanted and any(_overlap(wanted, each) for each in taken):
        text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
        return Rejection("NodePorts", f"Pod was rejected: {text}")
    short = _shortage(needed, node, others)
    if short is None:
        return None
    text = f"Node didn't have enough resource: {short.name}, requested: {short.shown(short.amount)}"
    text += f", used: {short.shown(short.used)}, capacity: {short.shown(short.capacity)}"
    return Rejection(f"OutOf{short.name}", f"Pod was rejected: {text}")


def unresizable(needed: Mapping[str, int], node: Object, others: Iterable[Mapping[str, int]]) -> Rejection | None:
    """Why a pod on the node cannot have these amounts, now or ever; None if it can."""
    short = _shortage(needed, node, others)
    if short is None:
        return None
    fits_alone = short.amount <= short.capacity
    reason, word, room = (
        ("Deferred", "available", short.capacity - short.used) if fits_alone else ("Infeasible", "capacity", short.capacity)
    )
    asked = short.shown(short.amount)
    return Rejection(reason, f"Node didn't have enough {short.name}: requested: {asked}, {word}: {short.shown(room)}")


def _overlap(some: Ports, others: Ports) -> bool:
    return any(
        (protocol, port) == (other, taken) and (address == where or ANY_ADDRESS in (address, where))
        for protocol, address, port in some
        for other, where, taken in others
    )


class _Shortage(NamedTuple):
    """A resource of which a node has too little for a pod, in thousandths."""

    name: str
    amount: int
    used: int  #: by the others on the node
    capacity: int

    def shown(self, milli: int) -> int:
        return milli if self.name == "cpu" else milli // 1000


def _shortage(needed: Mapping[str, int], node: Object, others: Iterable[Mapping[str, int]]) -> _Shortage | None:
    """The first resource that is short; None if there is enough of each."""
    allocatable = status_of(node).get("allocatable") or {}
    taken = add(others)
    for name, amount in needed.items():
        used = taken.get(name, 0)
        capacity = quantity(allocatable.get(name, 0)).milli
        if used + amount > capacity:
            return _Shortage(name, amount, used, capacity)
    return None
