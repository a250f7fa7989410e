"""What a kubelet checks when a pod comes to its node: that it suits the node, and that there is room for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pumice.api.quantity import quantity
from pumice.api.quota import pod_usage
from pumice.controllers.objects import Object, spec_of, status_of
from pumice.controllers.workloads.node_fit import fits

Milli = dict[str, int]  #: thousandths by resource


class Rejection(NamedTuple):
    reason: str
    message: str


def requests_of(pod: Object) -> Milli:
    """What the pod takes of a node, a place among its pods included."""
    charged = pod_usage(spec_of(pod))
    return {name: amount for name, amount in charged.items() if not name.startswith(("requests.", "limits.", "count/")) and amount}


def rejection(pod: Object, needed: Mapping[str, int], node: Object, others: Iterable[Mapping[str, int]]) -> Rejection | None:
    """Why the node does not take the pod beside the others; None if it does."""
    if not fits(spec_of(pod), node):
        text = "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
        return Rejection("NodeAffinity", f"Pod was rejected: {text}")
    allocatable = status_of(node).get("allocatable") or {}
    taken = list(others)
    for name, amount in needed.items():
        used = sum(each.get(name, 0) for each in taken)
        capacity = quantity(allocatable.get(name, 0)).milli
        if used + amount > capacity:
            asked, there, room = (_shown(name, value) for value in (amount, used, capacity))
            text = f"Node didn't have enough resource: {name}, requested: {asked}, used: {there}, capacity: {room}"
            return Rejection(f"OutOf{name}", f"Pod was rejected: {text}")
    return None


def _shown(name: str, milli: int) -> int:
    return milli if name == "cpu" else milli // 1000
