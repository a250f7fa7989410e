"""A row of `kubectl get pods`: how many containers are ready, and one word for the state of all containers."""

from typing import Any

from pumice.api import Object
from pumice.api.json_objects import condition, is_true
from pumice.api.times import age
from pumice.cluster.apiserver.scheme.kinds import Column
from pumice.cluster.apiserver.tables.table import AGE


def _statuses(pod: Object, field: str = "containerStatuses") -> list[Any]:
    return (pod.get("status") or {}).get(field) or []


def _ready(pod: Object, now: float) -> str:
    return f"{sum(bool(one.get('ready')) for one in _statuses(pod))}/{len(pod['spec'].get('containers', ()))}"


def _state(pod: Object, now: float) -> str:
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    word = status.get("reason") or status.get("phase") or "Unknown"
    if (condition(pod, "PodScheduled") or {}).get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    return _init_state(pod) or _container_state(pod, word)


def _init_state(pod: Object) -> str:
    """The state of the pod while its init containers run; empty once they have ended."""
    total = len(pod["spec"].get("initContainers", ()))
    for index, one in enumerate(_statuses(pod, "initContainerStatuses")):
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended and ended.get("exitCode", 0) == 0:
            continue
        if ended:
            return f"Init:{ended.get('reason') or 'ExitCode:' + str(ended.get('exitCode'))}"
        if waiting and waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}"
        return f"Init:{index}/{total}"
    return ""


def _container_state(pod: Object, word: str) -> str:
    running = False
    for one in reversed(_statuses(pod)):
        state = one.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            word = state["waiting"]["reason"]
        elif state.get("terminated"):
            ended = state["terminated"]
            word = ended.get("reason") or (f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}")
        elif one.get("ready") and state.get("running") is not None:
            running = True
    if word == "Completed" and running:
        return "Running" if is_true(pod, "Ready") else "NotReady"
    return str(word)


def _restarts(pod: Object, now: float) -> str:
    statuses = _statuses(pod)
    count = sum(one.get("restartCount", 0) for one in statuses)
    ends = [((one.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for one in statuses]
    last = max((end for end in ends if end), default=None)
    return f"{count} ({age(last, now)} ago)" if count and last else str(count)


def _address(pod: Object, now: float) -> str:
    return (pod.get("status") or {}).get("podIP") or "<none>"


def _gates(pod: Object, now: float) -> str:
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return "<none>"
    true = {one.get("type") for one in (pod.get("status") or {}).get("conditions") or () if one.get("status") == "True"}
    return f"{sum(gate['conditionType'] in true for gate in gates)}/{len(gates)}"


POD_COLUMNS = (
    Column("Ready", _ready, description="The containers that are ready, of all."),
    Column("Status", _state, description="The state of all containers in one word."),
    Column("Restarts", _restarts, description="How often containers were started again, and when last."),
    AGE,
    Column("IP", _address, priority=1),
    Column("Node", lambda pod, now: pod["spec"].get("nodeName") or "<none>", priority=1),
    Column("Nominated Node", lambda pod, now: (pod.get("status") or {}).get("nominatedNodeName") or "<none>", priority=1),
    Column("Readiness Gates", _gates, priority=1),
)
