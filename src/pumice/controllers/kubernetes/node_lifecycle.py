"""Nodes that stop working: they get taints, and pods that do not tolerate these taints are deleted.

A node whose lease has not been renewed for `GRACE_S` is unreachable (of a node without a lease, only the conditions count). The
conditions become taints. A pod is deleted when it has tolerated a NoExecute taint for as long as it states. Pods of nodes that no
longer exist are deleted at once; those that name a node which was never there, after `GRACE_S`: their owner makes new ones for as long as
it may.
"""

from collections.abc import Hashable, Iterable

from pumice.api import Key, Object, instant, kinds, name_of, namespace_of, rfc3339, spec_of, status_of
from pumice.api.json_objects import condition, copied, created_at, field, is_true, terminating
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, result
from pumice.controllers.kubernetes.node_fit import covers
from pumice.controllers.kubernetes.owned_pods import phase
from pumice.controllers.writes import Emit, Write, delete, patch, status_change

GRACE_S = 40.0
LEASES = "kube-node-lease"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
PRESSURES = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
KEPT = (NOT_READY, UNREACHABLE, UNSCHEDULABLE, *PRESSURES.values())  #: the taints that this controller manages
KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class NodeLifecycle:
    name = "node-lifecycle"

    def __init__(self) -> None:
        self.watches = {kinds.NODE: _itself, kinds.LEASE: _lease_of, kinds.POD: _node_of_new}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        node = lister.get(kinds.NODE, "", key.name)
        pods = list(lister.by_field(kinds.POD, "spec.nodeName", key.name))
        if node is None:
            return _lost(key, pods, now)
        if terminating(node):
            return NOTHING
        silent_at = _silent_at(node, lister)
        lost = silent_at is not None and now >= silent_at
        writes: list[Write] = _mark_unknown(node, now) if lost else []
        taints = _taints(node, lost, now)
        if taints != (spec_of(node).get("taints") or []):
            writes.append(patch(node, {"spec": {"taints": taints or None}}))
        ends, next_end = _evictions(pods, taints, now)
        if lost:
            writes.extend(_mark_not_ready(pods, now))
        times = [at for at in (next_end, silent_at) if at is not None and at > now]
        return result([*writes, *ends], [(at, key) for at in times])


def _lost(key: Key, pods: list[Object], now: float) -> Result:
    """End the pods of a node that does not exist. A Job counts those that no kubelet has seen as failed."""
    unseen = [pod for pod in pods if phase(pod) == "Pending" and not status_of(pod).get("startTime")]
    due = [pod for pod in unseen if created_at(pod) + GRACE_S <= now]
    times = [created_at(pod) + GRACE_S for pod in unseen if pod not in due]
    ends = [delete(pod, grace_s=0) for pod in pods if pod not in unseen or pod in due]
    return result([*(write for pod in due for write in _failed(pod, now)), *ends], [(at, key) for at in times])


def _failed(pod: Object, now: float) -> list[Write]:
    why = {"reason": "DeletionByPodGC", "message": "PodGC: node no longer exists", "lastTransitionTime": rfc3339(now)}
    conditions = [*(status_of(pod).get("conditions") or ()), {"type": "DisruptionTarget", "status": "True", **why}]
    return status_change(pod, {**status_of(pod), "phase": "Failed", "conditions": conditions})


def _silent_at(node: Object, lister: Lister) -> float | None:
    lease = lister.get(kinds.LEASE, LEASES, name_of(node))
    renewed = field(lease, "spec.renewTime") if lease else None
    if not renewed:
        return None
    length_s = float(field(lease or {}, "spec.leaseDurationSeconds") or GRACE_S)
    return instant(renewed) + max(GRACE_S, length_s)


def _mark_unknown(node: Object, now: float) -> list[Write]:
    """The write that sets the node's conditions to Unknown: the node does not report, so its last report may no longer be true."""
    status: Object = copied(status_of(node))
    entries = {entry["type"]: entry for entry in status.get("conditions") or ()}
    for type_ in KUBELET_CONDITIONS:
        entry = entries.get(type_, {"type": type_})
        if entry.get("status") != "Unknown":
            values = {"reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
            entries[type_] = {**entry, "status": "Unknown", **values, "lastTransitionTime": rfc3339(now)}
    status["conditions"] = list(entries.values())
    return status_change(node, status)


def _taints(node: Object, lost: bool, now: float) -> list[Object]:
    """The taints that the node should have. Taints of others stay; ours follow its conditions and keep the time when they were added."""
    present: list[Object] = spec_of(node).get("taints") or []
    state = "Unknown" if lost else (condition(node, "Ready") or {}).get("status", "True")
    reason = {"Unknown": UNREACHABLE, "False": NOT_READY}.get(state)
    wanted = [(reason, effect) for effect in ("NoSchedule", "NoExecute") if reason]
    wanted += [(taint, "NoSchedule") for type_, taint in PRESSURES.items() if is_true(node, type_)]
    if spec_of(node).get("unschedulable"):
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    kept = [taint for taint in present if taint["key"] not in KEPT or (taint["key"], taint.get("effect")) in wanted]
    there = {(taint["key"], taint.get("effect")) for taint in kept}
    added = [{"key": key, "effect": effect, "timeAdded": rfc3339(now)} for key, effect in wanted if (key, effect) not in there]
    return [*kept, *added]


def _evictions(pods: list[Object], taints: list[Object], now: float) -> tuple[list[Write], float | None]:
    """The writes that delete the pods whose time on the node is up, and when the time of the next pod is up, or None."""
    executing = [taint for taint in taints if taint.get("effect") == "NoExecute"]
    writes: list[Write] = []
    times: list[float] = []
    for pod in pods if executing else ():
        if terminating(pod) or status_of(pod).get("phase") in ("Succeeded", "Failed"):
            continue
        ends_at = min(_tolerated_until(pod, taint, now) for taint in executing)
        if ends_at <= now:
            message = f"Marking for deletion Pod {namespace_of(pod)}/{name_of(pod)}"
            writes += [Emit(pod, "Normal", "TaintManagerEviction", message), delete(pod)]
        elif ends_at != float("inf"):
            times.append(ends_at)
    return writes, min(times, default=None)


def _tolerated_until(pod: Object, taint: Object, now: float) -> float:
    fitting = [each for each in spec_of(pod).get("tolerations") or () if covers(each, taint)]
    if not fitting:
        return now
    limits = [each["tolerationSeconds"] for each in fitting if each.get("tolerationSeconds") is not None]
    if not limits:
        return float("inf")
    return (instant(taint["timeAdded"]) if taint.get("timeAdded") else now) + max(0.0, float(min(limits)))


def _mark_not_ready(pods: list[Object], now: float) -> list[Write]:
    writes: list[Write] = []
    for pod in pods:
        ready = condition(pod, "Ready")
        if ready is not None and ready.get("status") == "True":
            entries = [entry for entry in status_of(pod)["conditions"] if entry is not ready]
            fresh = {**ready, "status": "False", "reason": "NodeNotReady", "lastTransitionTime": rfc3339(now)}
            writes.extend(status_change(pod, {**status_of(pod), "conditions": [*entries, fresh]}))
    return writes


def _itself(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    old, new = change
    if not (old and new and spec_of(old) == spec_of(new) and status_of(old).get("conditions") == status_of(new).get("conditions")):
        yield Key("", name_of(change.object))


def _lease_of(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    if namespace_of(change.object) == LEASES:
        yield Key("", name_of(change.object))


def _node_of_new(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The key of the node to which a pod has just been bound, if it may not run there: the node is gone, or has taints."""
    after = spec_of(change.new).get("nodeName") if change.new else None
    if after and (change.old is None or spec_of(change.old).get("nodeName") != after):
        node = lister.get(kinds.NODE, "", after)
        if node is None or spec_of(node).get("taints"):
            yield Key("", after)
