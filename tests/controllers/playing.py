"""Workloads on a few nodes, played until nothing moves."""

from __future__ import annotations

from typing import Any

from pumice.api import kinds
from pumice.api.json_objects import Object, name_of
from pumice.controllers.kubernetes.owned_pods import active, ready
from pumice.controllers.registry import kubernetes_controllers
from tests.controllers.collected import Collected
from tests.controllers.stage import Stage, pod_spec


def template(image: str = "a", **more: Any) -> Object:
    spec = {**pod_spec(), **more}
    spec["containers"][0]["image"] = image
    return {"metadata": {"labels": {"app": "web"}}, "spec": spec}


def workload(kind: str, name: str = "web", **spec: Any) -> Object:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1}
    fields = {"selector": {"matchLabels": {"app": "web"}}, "template": template(), **spec}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": fields}


def node(name: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
    ready_now = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels or {}}, "spec": spec, "status": ready_now}


def play(*objects: Object) -> Stage:
    return Stage(node("n1"), *objects, controllers=[*kubernetes_controllers(), Collected()])


def alive(stage: Stage) -> list[Object]:
    return [pod for pod in stage.lister.all(kinds.POD) if active(pod)]


def start(stage: Stage) -> None:
    """Every pod that is not running yet runs and is ready."""
    fresh = [name_of(pod) for pod in alive(stage) if not ready(pod)]
    if fresh:
        stage.bind(*fresh)
        stage.pods("Running", *fresh)
