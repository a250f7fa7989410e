"""What a kubelet writes into a pod's status: once its containers run, have ended or run again, after a change of its spec, or if the node
rejects it. Pure functions.
"""

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

from pumice.api import Object, rfc3339, spec_of, status_of, uid_of
from pumice.api.json_objects import condition, field
from pumice.cluster.nodes.container_restarts import restarts, restarts_now
from pumice.cluster.nodes.rejection import Rejection
from pumice.cluster.nodes.stage import PodStage

KILLED = 137  #: the exit code of containers that did not end in time


class PodAddresses(NamedTuple):
    """The addresses of a pod."""

    pod_ip: str
    host_ip: str


def status_after(pod: Object, stage: PodStage, now: float, place: Callable[[], PodAddresses]) -> Object | Literal["gone"]:
    """The pod's status once the stage is over, or "gone". `place` finds where the pod is."""
    match stage.becomes:
        case "Gone":
            return "gone"
        case "Running":
            return running(pod, now, *place())
        case "Succeeded":
            return ended(pod, now, 0, stage.reason, stage.message)
        case "Failed":
            return ended(pod, now, stage.code_of(pod) or 1, stage.reason, stage.message)
        case "Ended":
            code = stage.code_of(pod)
            if restarts_now(pod, code):
                return restarted(pod, now, code)
            return ended(pod, now, code, stage.reason, stage.message)


READY = ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")


def running(pod: Object, now: float, pod_ip: str, host_ip: str) -> Object:
    """The pod's status once its containers run and its init containers are done."""
    at = rfc3339(now)
    status = {
        **_with_conditions(pod, dict.fromkeys(READY, ("True", "")), at),
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
    """The pod's status once all containers have ended with this exit code."""
    at = rfc3339(now)
    word = "PodCompleted" if exit_code == 0 else "PodFailed"
    conditions = {"Ready": ("False", word), "ContainersReady": ("False", word)}
    if exit_code == 0:
        conditions["Initialized"] = ("True", word)
    status = {
        **_with_conditions(pod, conditions, at),
        "phase": "Succeeded" if exit_code == 0 else "Failed",
        "observedGeneration": _generation(pod),
        "containerStatuses": [_ended(pod, each, at, exit_code) for each in spec_of(pod).get("containers") or ()],
    }
    status.update({key: text for key, text in (("reason", reason), ("message", message)) if text})
    return status


def restarted(pod: Object, now: float, exit_code: int) -> Object:
    """The pod's status once its containers have ended with this exit code and run again."""
    at = rfc3339(now)
    containers = []
    for each in spec_of(pod).get("containers") or ():
        last = {"terminated": _ended(pod, each, at, exit_code)["state"]["terminated"]}
        containers.append(_running(pod, each, at) | {"lastState": last, "restartCount": restarts(pod) + 1})
    return status_of(pod) | {"containerStatuses": containers}


def rejected(pod: Object, now: float, reason: str, message: str) -> Object:
    """The pod's status once the node has rejected it."""
    scheduled = _with_conditions(pod, {"PodScheduled": ("True", "")}, rfc3339(now))
    seen = {"startTime": rfc3339(now), "observedGeneration": _generation(pod)}
    return scheduled | {"phase": "Failed", "reason": reason, "message": message, **seen}


def _generation(pod: Object) -> int:
    return int(pod["metadata"].get("generation", 1))


def _with_conditions(pod: Object, values: dict[str, tuple[str, str]], at: str) -> Object:
    """The pod's status with these conditions, each given by its type, value and reason. Other conditions stay as they are."""
    before = {each["type"]: each for each in status_of(pod).get("conditions") or ()}
    fresh = [_condition(before.get(type_), type_, value, reason, at) for type_, (value, reason) in values.items()]
    others: Iterable[Object] = (each for type_, each in before.items() if type_ not in values)
    return status_of(pod) | {"conditions": [*fresh, *others]}


def _condition(before: Object | None, type_: str, value: str, reason: str, at: str) -> Object:
    since = before["lastTransitionTime"] if before and before.get("status") == value and before.get("lastTransitionTime") else at
    return {"type": type_, "status": value, "lastProbeTime": None, "lastTransitionTime": since} | ({"reason": reason} if reason else {})


def _running(pod: Object, container: Object, at: str) -> Object:
    return _head(pod, container) | {"ready": True, "started": True, "state": {"running": {"startedAt": at}}} | _given(container)


def _given(container: Object) -> Object:
    """What the container has been given of its node, as its status says it."""
    resources = container.get("resources")
    if not resources:
        return {}
    requests = resources.get("requests")
    return {"resources": resources} | ({"allocatedResources": requests} if requests else {})


RESIZE_PENDING = "PodResizePending"


def changed(pod: Object, now: float, resized: bool, refused: Rejection | None) -> Object:
    """The status of a running pod after a change of its spec: if it is resized its containers have the new amounts, unless the node has
    refused them, and ephemeral containers run."""
    at = rfc3339(now)
    before = {each["name"]: each for each in status_of(pod).get("containerStatuses") or ()}
    others = [each for each in status_of(pod).get("conditions") or () if each["type"] != RESIZE_PENDING]
    status = {**status_of(pod), "observedGeneration": _generation(pod), "conditions": others}
    if refused is not None:
        since = _condition(condition(pod, RESIZE_PENDING), RESIZE_PENDING, "True", refused.reason, at)
        status["conditions"] = [*others, since | {"message": refused.message}]
    elif resized:
        status["containerStatuses"] = [
            before[each["name"]] | _given(each) for each in spec_of(pod).get("containers") or () if each["name"] in before
        ]
    debugging = {each["name"]: each for each in status_of(pod).get("ephemeralContainerStatuses") or ()}
    added = [debugging.get(each["name"]) or _running(pod, each, at) for each in spec_of(pod).get("ephemeralContainers") or ()]
    return status | ({"ephemeralContainerStatuses": added} if added else {})


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
