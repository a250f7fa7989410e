"""Volumes, claims and classes, and pods that use them."""

from __future__ import annotations

from typing import Any

from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.kube.volume_binding import BoundVolumes, WaitingVolumes
from pumice.testing import ObjectBuilder, PodBuilder, manifest, pod
from tests.nodes_for_pods.asking import HOST, zoned

Thing = dict[str, Any]
NODES = zoned(a="z1", b="z2", c="")


def on_nodes(*names: str) -> Thing:
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": list(names)}]}]}}


def volume(
    name: str, size: str = "1Gi", nodes: str = "", labels: Thing | None = None, phase: str = "Available", **spec: Any
) -> ObjectBuilder:
    wanted: Thing = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"} | spec
    if nodes:
        wanted["nodeAffinity"] = on_nodes(*nodes.split())
    return manifest("PersistentVolume", name, spec=wanted, status={"phase": phase}).labels(labels or {})


def claim(name: str, volume_name: str = "", size: str = "1Gi", bound: bool = True, phase: str = "", **spec: Any) -> ObjectBuilder:
    wanted: Thing = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local", "resources": {"requests": {"storage": size}}} | spec
    if volume_name:
        wanted["volumeName"] = volume_name
    made = manifest("PersistentVolumeClaim", name, spec=wanted, status={"phase": phase})
    return made.annotation("pv.kubernetes.io/bind-completed", "yes") if volume_name and bound else made


def storage_class(name: str = "local", provisioner: str = "kubernetes.io/no-provisioner", **more: Any) -> ObjectBuilder:
    return manifest("StorageClass", name, **{"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"} | more)


def using(name: str, *claims: str) -> PodBuilder:
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}} for i, each in enumerate(claims)]
    return pod(name).having("spec", "volumes", value=volumes)


def binding(made: Cluster) -> list[Any]:
    return [BoundVolumes(made), WaitingVolumes(made)]


def driver(publishes: bool | None = True) -> ObjectBuilder:
    return manifest("CSIDriver", "made.by/us", spec={"storageCapacity": publishes})
