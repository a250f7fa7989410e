"""What a kubelet writes into a pod's status: containers, conditions, addresses, times. Pure: the pod, and what became of it."""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api.annotations import CPU_USAGE, MEMORY_USAGE
from pumice.api.json_objects import Object, annotations_of, field, spec_of, status_of, uid_of
from pumice.api.times import rfc3339

READY = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


def running(pod: Object, now: float, pod_ip: str, host_ip: str) -> Object:
    """All containers run, those that only prepare have done so."""
    at = rfc3339(now)
    status = {
        **_told(pod, dict.fromkeys(READY, ("True", "")), at),
        "phase": "Running",
        "observedGeneration": _generation(pod),
        "startTime": status_of(pod).get("startTime") or at,
        "podIP": pod_ip,
        "podIPs": [{"ip": pod_ip}],
        "hostIP": host_ip,
        "hostIPs": [{"ip": host_ip}],
        "containerStatuses": [_running(pod, each, at) for each in spec_of(pod).get("containers") or ()],
    }
    status.pop("nominatedNodeName", None)
    prepared = [_prepared(pod, each, at) for each in spec_of(pod).get("initContainers") or ()]
    return status | ({"initContainerStatuses": prepared} if prepared else {})


def ended(pod: Object, now: float, exit_code: int, reason: str, message: str) -> Object:
    """All containers have ended with that code."""
    at = rfc3339(now)
    word = "PodCompleted" if exit_code == 0 else "PodFailed"
    conditions = {"Ready": ("False", word), "ContainersReady": ("False", word)}
    if exit_code == 0:
        conditions["Initialized"] = ("True", word)
    status = {
        **_told(pod, conditions, at),
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "observedGeneration": _generation(pod),
        "containerStatuses": [_ended(pod, each, at, exit_code) for each in spec_of(pod).get("containers") or ()],
    }
    status.update({key: text for key, text in (("reason", reason), ("message", message)) if text})
    return status


def restarted(pod: Object, now: float, exit_code: int) -> Object:
    """The containers have ended with that code and run again."""
    at = rfc3339(now)
    containers = []
    for each in spec_of(pod).get("containers") or ():
        last = {"terminated": _ended(pod, each, at, exit_code)["state"]["terminated"]}
        containers.append(_running(pod, each, at) | {"lastState": last, "restartCount": restarts(pod) + 1})
    return status_of(pod) | {"containerStatuses": containers}


def rejected(pod: Object, now: float, reason: str, message: str) -> Object:
    """The node does not take the pod."""
    scheduled = _told(pod, {"PodScheduled": ("True", "")}, rfc3339(now))
    seen = {"startTime": rfc3339(now), "observedGeneration": _generation(pod)}
    return scheduled | {"phase": "Failed", "reason": reason, "message": message, **seen}


def _generation(pod: Object) -> int:
    return int(pod["metadata"].get("generation", 1))


def restarts(pod: Object) -> int:
    return max((each.get("restartCount", 0) for each in status_of(pod).get("containerStatuses") or ()), default=0)


def restarts_itself(pod: Object, exit_code: int) -> bool:
    policy = spec_of(pod).get("restartPolicy", "Always")
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def usage(pod: Object, milli: dict[str, int]) -> dict[str, str]:
    """What metrics tell of a pod that asks for `milli`: as annotated, else four fifths of the CPU and memory that it asked for."""
    notes = annotations_of(pod)
    cpu = notes.get(CPU_USAGE) or f"{milli.get('cpu', 0) * 4 // 5}m"
    memory = notes.get(MEMORY_USAGE) or f"{milli.get('memory', 0) // 1000 * 4 // 5 // 1024}Ki"
    return {"cpu": cpu, "memory": memory}


def _told(pod: Object, values: dict[str, tuple[str, str]], at: str) -> Object:
    """The status with these conditions, each with value and reason."""
    before = {each["type"]: each for each in status_of(pod).get("conditions") or ()}
    fresh = [_condition(before.get(type_), type_, value, reason, at) for type_, (value, reason) in values.items()]
    others: Iterable[Object] = (each for type_, each in before.items() if type_ not in values)
    return status_of(pod) | {"conditions": [*fresh, *others]}


def _condition(before: Object | None, type_: str, value: str, reason: str, at: str) -> Object:
    since = before["lastTransitionTime"] if before and before.get("status") == value and before.get("lastTransitionTime") else at
    return {"type": type_, "status": value, "lastProbeTime": None, "lastTransitionTime": since} | ({"reason": reason} if reason else {})


def _running(pod: Object, container: Object, at: str) -> Object:
    return _head(pod, container) | {"ready": True, "started": True, "state": {"running": {"startedAt": at}}}


def _prepared(pod: Object, container: Object, at: str) -> Object:
    if container.get("restartPolicy") == "Always":
        return _running(pod, container, at)
    end = {"exitCode": 0, "reason": "Completed", "startedAt": at, "finishedAt": at}
    return _head(pod, container) | {"ready": True, "started": False, "state": {"terminated": end}}


def _ended(pod: Object, container: Object, at: str, exit_code: int) -> Object:
    before: Object = next((each for each in status_of(pod).get("containerStatuses") or () if each["name"] == container["name"]), {})
    begun = field(before, "state.running.startedAt") or at
    reason = "Completed" if exit_code == 0 else "Error"
    end = {"exitCode": exit_code, "reason": reason, "startedAt": begun, "finishedAt": at, "containerID": _id(pod, container)}
    count = before.get("restartCount", 0)
    return _head(pod, container) | {"ready": False, "started": False, "restartCount": count, "state": {"terminated": end}}


def _head(pod: Object, container: Object) -> Object:
    image = container.get("image", "")
    identity = {"name": container["name"], "image": image, "imageID": f"simulated://{image}", "containerID": _id(pod, container)}
    return identity | {"restartCount": 0, "lastState": {}}


def _id(pod: Object, container: Object) -> str:
    return f"simulated://{uid_of(pod)}/{container['name']}"


# What `kubectl logs` shows of a simulated container: when it started, and how it ended.


def log_of(pod: Object, container: str, query: dict[str, str]) -> str:
    """For the API server's `log_source`."""
    statuses = [*(status_of(pod).get("containerStatuses") or ()), *(status_of(pod).get("initContainerStatuses") or ())]
    found: Object = next((each for each in statuses if each["name"] == container), {})
    lines = []
    begun = field(found, "state.running.startedAt") or field(found, "state.terminated.startedAt")
    if begun:
        lines.append(f"{begun} simulated container {container} of {pod['metadata']['name']} started on {pod['spec']['nodeName']}")
    end = field(found, "state.terminated")
    if end:
        lines.append(f"{end['finishedAt']} ended with exit code {end['exitCode']}")
    last = query.get("tailLines", "")
    return "".join(f"{line}\n" for line in (lines[max(len(lines) - int(last), 0) :] if last.isdigit() else lines))
