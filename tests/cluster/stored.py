"""Objects put into a real cluster's etcd as they are: their uids and times are those of the input, which no API server would take."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Iterable
from typing import Any

from realcluster import RealCluster

#: kind to where etcd has it, and whether it is in a namespace
PLACES = {
    "Namespace": ("namespaces", False),
    "Node": ("minions", False),
    "Pod": ("pods", True),
    "PriorityClass": ("priorityclasses", False),
    "PodDisruptionBudget": ("poddisruptionbudgets", True),
    "ResourceQuota": ("resourcequotas", True),
    "PersistentVolumeClaim": ("persistentvolumeclaims", True),
    "PersistentVolume": ("persistentvolumes", False),
    "StorageClass": ("storageclasses", False),
    "CSINode": ("csinodes", False),
    "ReplicaSet": ("replicasets", True),
    "StatefulSet": ("statefulsets", True),
    "Queue": ("scheduling.volcano.sh/queues", False),
    "PodGroup": ("scheduling.volcano.sh/podgroups", True),
    "HyperNode": ("topology.volcano.sh/hypernodes", False),
    "Numatopology": ("nodeinfo.volcano.sh/numatopologies", False),
}


class Etcd:
    """The etcd of a real cluster."""

    def __init__(self, cluster: RealCluster) -> None:
        self._url = cluster.etcd_url

    def replace_all(self, objects: Iterable[dict[str, Any]]) -> None:
        """These objects, and of their kinds no others."""
        self.clear(place for place, _ in PLACES.values() if place != "namespaces")
        for item in objects:
            place, in_namespace = PLACES[item["kind"]]
            metadata = item["metadata"]
            name = f"{metadata['namespace']}/{metadata['name']}" if in_namespace else metadata["name"]
            self._call("put", {"key": _encoded(f"/registry/{place}/{name}"), "value": _encoded(json.dumps(item, default=str))})

    def clear(self, places: Iterable[str]) -> None:
        """Nothing is left there."""
        for place in places:
            self._call("deleterange", {"key": _encoded(f"/registry/{place}/"), "range_end": _encoded(f"/registry/{place}0")})

    def revision(self) -> int:
        """It grows with every write."""
        return int(self._call("range", {"key": _encoded("/registry")})["header"]["revision"])

    def _call(self, method: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{self._url}/v3/kv/{method}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def as_stored(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects with what an API server and Volcano's controllers would have added: namespaces, priorities, queues that are open."""
    given = [json.loads(json.dumps(item, default=str)) for item in documents if item["kind"] in PLACES]
    priorities = {item["metadata"]["name"]: item["value"] for item in given if item["kind"] == "PriorityClass"}
    for item in given:
        metadata = item["metadata"]
        if PLACES[item["kind"]][1]:
            metadata.setdefault("namespace", "default")
        metadata.setdefault("uid", "-".join(filter(None, (metadata.get("namespace"), metadata["name"]))))
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        match item["kind"]:
            case "Pod":
                item.setdefault("status", {}).setdefault("phase", "Pending")
                item["spec"].setdefault("schedulerName", "volcano")
                item["spec"].setdefault("priority", priorities.get(item["spec"].get("priorityClassName"), 0))
            case "Queue":
                item["spec"] = {"weight": 1} | (item.get("spec") or {})
                item["status"] = {"state": "Open"} | (item.get("status") or {})
            case "PodGroup":
                item["spec"] = {"queue": "default", "minMember": 1} | (item.get("spec") or {})
                item["status"] = {"phase": "Pending"} | (item.get("status") or {})
    return [*_namespaces_of(given), *_default_queue(given), *given]


def _namespaces_of(items: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    there = {item["metadata"]["name"] for item in items if item["kind"] == "Namespace"}
    for name in sorted({item["metadata"].get("namespace", "default") for item in items} - there):
        metadata = {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "status": {"phase": "Active"}}


def _default_queue(items: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    if not any(item["kind"] == "Queue" and item["metadata"]["name"] == "default" for item in items):
        metadata = {"name": "default", "uid": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
        head = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": metadata}
        yield {**head, "spec": {"weight": 1, "reclaimable": True}, "status": {"state": "Open"}}
