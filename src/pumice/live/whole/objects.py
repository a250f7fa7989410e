"""The jobs of a workload as documents, as a user would send them to an API server."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np
from msgspec.structs import replace

from pumice.api.annotations import GROUP_NAME
from pumice.api.json_objects import Object
from pumice.api.meta import Wire
from pumice.api.structs import API_VERSIONS, encode
from pumice.api.volcano import PodGroup
from pumice.cluster.nodes.stage import PodStage, Stages
from pumice.simulate.objects import class_name, group_of, object_name
from pumice.simulate.work import Role, Work

RUN_SECONDS, EXIT_CODE = "pumice.io/run-seconds", "pumice.io/exit-code"
KILLED = "137"
SHARED = ("cpu", "memory", "ephemeral-storage", "pods")  #: resources of which a limit may be above the request


def stages(grace_s: float) -> Stages:
    """A pod runs from its bind on, as long as is noted on it; one that is asked to end is gone after so long."""
    return Stages(
        [
            PodStage("start", "Pending", "Running"),
            PodStage("finish", "Running", "Ended", {"annotation": RUN_SECONDS}, {"annotation": EXIT_CODE, "default": 0}),
            PodStage("stop", "Terminating", "Gone", grace_s),
        ]
    )


def document(kind: str, item: Wire) -> Object:
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, **msgspec.json.decode(encode(item))}


def group_document(work: Work) -> Object:
    group: PodGroup = group_of(work, "")
    return document("PodGroup", replace(group, metadata=replace(group.metadata, creation_timestamp=None, uid=None)))


def pod_document(work: Work, number: int, role: Role, scheduler: str, run: float, *, grouped: bool, killed: bool) -> Object:
    """One pod that will run so long."""
    name = object_name(work)
    notes = {**(role.annotations or {}), RUN_SECONDS: np.format_float_positional(run, trim="0")}
    if grouped:
        notes[GROUP_NAME] = name
    if killed:
        notes[EXIT_CODE] = KILLED
    metadata = {"name": f"{name}-{number}", "namespace": work.namespace, "labels": role.labels or {}, "annotations": notes}
    spec = _spec(role) | {"schedulerName": scheduler}
    if work.priority:
        spec["priorityClassName"] = class_name(work.priority)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@lru_cache(maxsize=4096)
def _spec(role: Role) -> Object:
    """What the workload tells, and what a server would not take a pod without."""
    spec: Object = msgspec.json.decode(encode(role.spec))
    for field in ("nodeName", "priority", "preemptionPolicy"):
        spec.pop(field, None)
    containers = [_container(container, number) for number, container in enumerate(spec.get("containers") or [{}])]
    return spec | {"restartPolicy": "Never", "containers": containers}


def _container(container: Object, number: int) -> Object:
    resources = container.get("resources") or {}
    asked = resources.get("requests") or {}
    limits = {name: amount for name, amount in asked.items() if name not in SHARED} | (resources.get("limits") or {})
    named = {"name": f"main-{number}", "image": "simulated"} | container
    return named | {"resources": resources | ({"limits": limits} if limits else {})}
