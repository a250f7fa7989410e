"""Objects as a Table, which is what `kubectl get` requests."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pumice.api.annotations import DEFAULT_INGRESS_CLASS, DEFAULT_STORAGE_CLASS
from pumice.api.times import age
from pumice.cluster.apiserver.schema import Object

if TYPE_CHECKING:
    from pumice.cluster.apiserver.kinds import ServedKind


@dataclass(frozen=True)
class Column:
    """A column of `kubectl get`. `cell` returns its value for an object at the present time, in seconds since 1970."""

    name: str
    cell: Callable[[Object, float], Any]
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0


_NAME = Column("Name", lambda obj, now: obj["metadata"]["name"], format="name", description="Name must be unique within a namespace.")
_IS_DEFAULT = (DEFAULT_STORAGE_CLASS, DEFAULT_INGRESS_CLASS)
_NAME_OF_CLASS = Column("Name", lambda obj, now: _marked(obj["metadata"]), format="name", description=_NAME.description)


def _marked(metadata: Object) -> str:
    """The name of a class, marked if it is the default class."""
    notes = metadata.get("annotations") or {}
    return f"{metadata['name']} (default)" if any(notes.get(key) == "true" for key in _IS_DEFAULT) else str(metadata["name"])


def _columns(kind: ServedKind) -> tuple[Column, ...]:
    if kind.plural == "events" and not kind.custom:
        return kind.columns
    return (_NAME_OF_CLASS if kind.kind in ("StorageClass", "IngressClass") else _NAME, *kind.columns)


def table(
    kind: ServedKind, objects: Iterable[Object], now: float, metadata: Object, include: str = "Metadata", headed: bool = True
) -> Object:
    """A Table of objects. `include` is the part of each object that its row contains: None, Metadata or Object.

    Without `headed` the column definitions are left out: a watch needs them only once.
    """
    columns = _columns(kind)
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description or column.name,
            "priority": column.priority,
        }
        for column in columns
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": definitions if headed else None,
        "rows": [_row(columns, obj, now, include) for obj in objects],
    }


def _row(columns: tuple[Column, ...], obj: Object, now: float, include: str) -> Object:
    row: dict[str, Any] = {"cells": [column.cell(obj, now) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include != "None":
        row["object"] = partial(obj)
    return row


def partial(obj: Object) -> Object:
    """An object's metadata alone."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


# Columns of custom kinds: `additionalPrinterColumns`, whose cells are found by simple JSON paths.

_STEP = re.compile(r"\.?((?:[^.\[\]\\]|\\.)+)|\[(\*|-?\d+|'[^']*'|\"[^\"]*\"|\?\([^\[\]]*\))\]")
_CONDITION = re.compile(r"\?\(\s*@\.([\w.]+)\s*==\s*['\"]([^'\"]*)['\"]\s*\)")

AGE = Column("Age", lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now), "date", "", "How long ago the object was made.")


def custom_columns(declared: list[Object] | None) -> tuple[Column, ...]:
    """The declared columns, or the age if none are declared. The column of the name, which always comes first, is not among them."""
    if not declared:
        return (AGE,)
    return tuple(
        Column(
            one["name"],
            _cell(one["jsonPath"], one["type"]),
            one["type"],
            one.get("format", ""),
            one.get("description", ""),
            one.get("priority", 0),
        )
        for one in declared
    )


def _cell(path: str, type: str) -> Callable[[Object, float], Any]:
    steps = parse_path(path)

    def cell(obj: Object, now: float) -> Any:
        found = follow(steps, obj)
        if not found:
            return None
        if type == "date":
            return age(found[0], now) if isinstance(found[0], str) else "<unknown>"
        if type in ("integer", "number", "boolean"):
            return found[0] if not isinstance(found[0], dict | list) else None
        return ",".join(one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in found)

    return cell


def parse_path(path: str) -> tuple[str, ...]:
    """The steps of a JSON path such as `.status.conditions[?(@.type=="Ready")].status`. A step in brackets keeps its `[`."""
    return tuple(match[1].replace("\\.", ".") if match[1] else f"[{match[2]}" for match in _STEP.finditer(path.strip("{}")))


def follow(steps: tuple[str, ...], value: Any) -> list[Any]:
    """All values at a path, without those that are None."""
    values = [value]
    for step in steps:
        values = [inner for one in values for inner in _inside(step, one)]
    return [one for one in values if one is not None]


def _inside(step: str, value: Any) -> list[Any]:
    if not step.startswith("["):
        if step == "*":
            return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        return [value[step]] if isinstance(value, dict) and step in value else []
    inner = step[1:]
    if inner[0] in "'\"":
        return [value[inner[1:-1]]] if isinstance(value, dict) and inner[1:-1] in value else []
    if not isinstance(value, list):
        return []
    if inner == "*":
        return value
    condition = _CONDITION.match(inner)
    if condition:
        path = tuple(condition[1].split("."))
        return [item for item in value if follow(path, item)[:1] == [condition[2]]]
    index = int(inner) if inner.lstrip("-").isdigit() else len(value)
    return value[index : index + 1] if index != -1 else value[-1:]


# A row of `kubectl get pods`: how many containers are ready, and one word for the state of all containers.


def _statuses(pod: Object, field: str = "containerStatuses") -> list[Any]:
    return (pod.get("status") or {}).get(field) or []


def _ready(pod: Object, now: float) -> str:
    return f"{sum(bool(one.get('ready')) for one in _statuses(pod))}/{len(pod['spec'].get('containers', ()))}"


def _state(pod: Object, now: float) -> str:
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    word = status.get("reason") or status.get("phase") or "Unknown"
    if any(one.get("type") == "PodScheduled" and one.get("reason") == "SchedulingGated" for one in status.get("conditions") or ()):
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
        return (
            "Running"
            if any(one.get("type") == "Ready" and one.get("status") == "True" for one in pod["status"].get("conditions") or ())
            else "NotReady"
        )
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


# A row of `kubectl get nodes`.

_ROLE = "node-role.kubernetes.io/"


def _node_state(node: Object, now: float) -> str:
    ready = [one for one in (node.get("status") or {}).get("conditions") or () if one.get("type") == "Ready"]
    word = "Unknown" if not ready else "Ready" if ready[0].get("status") == "True" else "NotReady"
    return word + (",SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else "")


def _roles(node: Object, now: float) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)} | (
        {labels["kubernetes.io/role"]} if "kubernetes.io/role" in labels else set()
    )
    return ",".join(sorted(roles)) or "<none>"


def _info(field: str, default: str = "<unknown>") -> Column:
    names = {
        "kubeletVersion": "Version",
        "osImage": "OS-Image",
        "kernelVersion": "Kernel-Version",
        "containerRuntimeVersion": "Container-Runtime",
    }
    priority = 0 if field == "kubeletVersion" else 1
    return Column(
        names[field], lambda node, now: ((node.get("status") or {}).get("nodeInfo") or {}).get(field) or default, priority=priority
    )


def _node_address(type: str) -> Column:
    def cell(node: Object, now: float) -> str:
        found = [one.get("address") for one in (node.get("status") or {}).get("addresses") or () if one.get("type") == type]
        return found[0] if found else "<none>"

    return Column("Internal-IP" if type == "InternalIP" else "External-IP", cell, priority=1)


NODE_COLUMNS = (
    Column("Status", _node_state),
    Column("Roles", _roles),
    AGE,
    _info("kubeletVersion", ""),
    _node_address("InternalIP"),
    _node_address("ExternalIP"),
    _info("osImage"),
    _info("kernelVersion"),
    _info("containerRuntimeVersion"),
)
