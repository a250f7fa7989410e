"""What a kubelet checks when a pod is bound to its node: that the pod's node affinity fits, and that there is room for the pod."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pumice.api import Object, spec_of, status_of
from pumice.api.quantity import quantity
from pumice.api.quota import pod_usage
from pumice.controllers.kubernetes.daemonset import fits

Milli = dict[str, int]  #: by resource: the amount in thousandths


class Rejection(NamedTuple):
    reason: str
    message: str


def requests_of(pod: Object) -> Milli:
    """What the pod takes up of a node's resources, including one of its `pods`."""
    charged = pod_usage(spec_of(pod))
    return {name: amount for name, amount in charged.items() if not name.startswith(("requests.", "limits.", "count/")) and amount}


def rejection(pod: Object, needed: Mapping[str, int], node: Object, others: Iterable[Mapping[str, int]]) -> Rejection | None:
    """Why the node rejects the pod, given the requests of the others on it; None if it accepts the pod."""
    if not fits(spec_of(pod), node):
        text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        return Rejection("NodeAffinity", f"Pod was rejected: {text}")
    short = _shortage(needed, node, others)
    if short is None:
        return None
    text = f"Node didn't have enough resource: {short.name}, requested: {short.shown(short.amount)}"
    text += f", used: {short.shown(short.used)}, capacity: {short.shown(short.capacity)}"
    return Rejection(f"OutOf{short.name}", f"Pod was rejected: {text}")


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
    taken = list(others)
    for name, amount in needed.items():
        used = sum(each.get(name, 0) for each in taken)
        capacity = quantity(allocatable.get(name, 0)).milli
        if used + amount > capacity:
            return _Shortage(name, amount, used, capacity)
    return None
