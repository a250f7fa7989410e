"""The life of a pod on a node, decided purely: in which phase it is, what comes next and when, and what that makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from pumice.api.json_objects import Object, spec_of, status_of, terminating
from pumice.api.quantity import quantity
from pumice.api.quota import pod_usage
from pumice.api.times import instant
from pumice.cluster.nodes import pod_status
from pumice.cluster.nodes.stage import PodStage, Stages
from pumice.controllers.kubernetes.daemonset import fits

PENDING, RUNNING, TERMINATING, ENDED = "Pending", "Running", "Terminating", "Ended"
FIRST_PAUSE_S, LONGEST_PAUSE_S = 10.0, 300.0  #: before containers start again
KILLED = 137  #: the exit code of what did not end in time

_TOO_LONG = "Pod was active on the node longer than the specified deadline"
_DEADLINE = PodStage(name="deadline", phase="Running", becomes="Failed", reason="DeadlineExceeded", message=_TOO_LONG, exit_code=KILLED)
_KILL = PodStage(name="kill", phase="Terminating", becomes="Gone")


class Next(NamedTuple):
    """What happens to the pod if nobody does anything else with it."""

    when: float
    stage: PodStage


class Place(NamedTuple):
    """The addresses of a pod."""

    pod_ip: str
    host_ip: str


def phase_of(pod: Object) -> str:
    phase = status_of(pod).get("phase")
    if phase in ("Succeeded", "Failed"):
        return ENDED
    if terminating(pod):
        return TERMINATING
    return RUNNING if phase == "Running" else PENDING


def next_of(pod: Object, phase: str, since: float, stages: Stages) -> Next | None:
    """What comes next for a pod that has been in this phase since then; None: nothing, until somebody writes it."""
    if phase == ENDED:
        return None
    stage = stages.next_stage(pod, phase)
    found = Next(since + _delay_s(stage, pod), stage) if stage else None
    if phase == TERMINATING:
        return _termination(pod, since, found)
    deadline_s = spec_of(pod).get("activeDeadlineSeconds")
    if phase != RUNNING:
        return found
    if found is not None and pod_status.restarts(pod):
        pause_s = min(FIRST_PAUSE_S * 2 ** min(pod_status.restarts(pod) - 1, 10), LONGEST_PAUSE_S)
        found = Next(found.when + pause_s, found.stage)
    if deadline_s is None:
        return found
    started = status_of(pod).get("startTime")
    over = (instant(started) if started else since) + deadline_s
    return found if found is not None and found.when <= over else Next(over, _DEADLINE)


def _termination(pod: Object, since: float, found: Next | None) -> Next:
    """At most the grace period; at once if nothing was started."""
    if status_of(pod).get("phase") != "Running":
        return Next(since, _KILL)
    last = since + (pod["metadata"].get("deletionGracePeriodSeconds") or 0)
    return found if found is not None and found.when <= last else Next(last, _KILL)


def _delay_s(stage: PodStage, pod: Object) -> float:
    try:
        return stage.delay_s(pod)
    except ValueError:  # the pod's annotation is not a delay: take it as if it said nothing
        return float("inf")


def status_after(pod: Object, stage: PodStage, now: float, place: Place) -> Object | Literal["gone"]:
    """The pod's status once the stage is over, or "gone"."""
    match stage.becomes:
        case "Gone":
            return "gone"
        case "Running":
            return pod_status.running(pod, now, *place)
        case "Succeeded":
            return pod_status.ended(pod, now, 0, stage.reason, stage.message)
        case "Failed":
            return pod_status.ended(pod, now, stage.code_of(pod) or 1, stage.reason, stage.message)
        case "Ended":
            code = stage.code_of(pod)
            if pod_status.restarts_itself(pod, code):
                return pod_status.restarted(pod, now, code)
            return pod_status.ended(pod, now, code, stage.reason, stage.message)


# What a kubelet checks when a pod comes to its node: that it suits the node, and that there is room for it. Pure.

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
