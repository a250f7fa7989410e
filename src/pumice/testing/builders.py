"""Builders of Kubernetes objects; every call returns a new builder: `pod("p").cpu(2).gpu(1).gang("train").on("n1")`.

Amounts are quantities as users write them. `build()` returns (kind, object); `cluster()` calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pumice.api import rfc3339
from pumice.api.annotations import GROUP_NAME, HOSTNAME, PREEMPTABLE, TASK_SPEC
from pumice.api.core import Node, PriorityClass
from pumice.api.kinds import CLUSTER_WIDE
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.structs import STRUCTS, convert
from pumice.api.volcano import HyperNode, PodGroup, Queue

Amount = str | int | float
B = TypeVar("B", bound="Builder")

GPU = "nvidia.com/gpu"
_STRUCTS = {kind.kept_as: struct for kind, struct in STRUCTS.items()}


class Builder:
    """An object under construction: every call returns a changed copy."""

    kind = ""
    struct: type[Wire]

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def having(self: B, *path: str | int, value: Any) -> B:
        """A copy in which the field at `path` is `value`: having("spec", "priority", value=5)."""
        return type(self)(_with(self.document, path, value))

    def label(self: B, key: str, value: str) -> B:
        return self.having("metadata", "labels", key, value=value)

    def labels(self: B, labels: Mapping[str, str]) -> B:
        return self.having("metadata", "labels", value=self.document["metadata"].get("labels", {}) | dict(labels))

    def annotation(self: B, key: str, value: str) -> B:
        return self.having("metadata", "annotations", key, value=value)

    def annotations(self: B, notes: Mapping[str, str]) -> B:
        return self.having("metadata", "annotations", value=self.document["metadata"].get("annotations", {}) | dict(notes))

    def created(self: B, instant: str | float) -> B:
        """Set the creation timestamp: as text, or in seconds since 1970 (`NOW - 60`; 1 is before 2)."""
        return self.having("metadata", "creationTimestamp", value=_instant(instant))

    def build(self) -> tuple[str, Wire]:
        return self.kind, convert(self.document, self.struct)


def _instant(instant: str | float) -> str:
    return instant if isinstance(instant, str) else rfc3339(instant)


def _amounts(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    """The amounts, with the full resource name in place of `gpu`."""
    return {GPU if name == "gpu" else name: amount for name, amount in amounts.items()}


def _of_volcano(amounts: Mapping[str, Amount]) -> dict[str, Amount]:
    return {f"volcano.sh/{name.replace('_', '-')}": amount for name, amount in amounts.items()}


def _with(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        items = list(value or ())
        while len(items) <= step:
            items.append({})
        items[step] = _with(items[step], rest, new)
        return items
    return {**(value or {}), step: _with((value or {}).get(step), rest, new)}


class NodeBuilder(Builder):
    kind, struct = "Node", Node

    def resource(self, name: str, amount: Amount) -> NodeBuilder:
        return self.has(**{name: amount})

    def cpu(self, amount: Amount) -> NodeBuilder:
        return self.resource("cpu", amount)

    def memory(self, amount: Amount) -> NodeBuilder:
        return self.resource("memory", amount)

    def gpu(self, amount: Amount) -> NodeBuilder:
        return self.resource(GPU, amount)

    def pods(self, amount: int) -> NodeBuilder:
        return self.resource("pods", amount)

    def has(self, **amounts: Amount) -> NodeBuilder:
        """Set several resources: has(cpu=8, memory="16Gi", gpu=2)."""
        total = self.document["status"]["allocatable"] | _amounts(amounts)
        return self.having("status", "allocatable", value=total).having("status", "capacity", value=total)

    def volcano(self, **amounts: Amount) -> NodeBuilder:
        """Set resources of volcano.sh: volcano(gpu_number=2, gpu_memory=16384)."""
        return self.has(**_of_volcano(amounts))

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> NodeBuilder:
        taints = [*self.document.get("spec", {}).get("taints", ()), {"key": key, "value": value, "effect": effect}]
        return self.having("spec", "taints", value=taints)

    def cordoned(self) -> NodeBuilder:
        return self.having("spec", "unschedulable", value=True)


class PodBuilder(Builder):
    kind, struct = "Pod", Pod

    def request(self, name: str, amount: Amount) -> PodBuilder:
        return self.having("spec", "containers", 0, "resources", "requests", name, value=amount)

    def cpu(self, amount: Amount) -> PodBuilder:
        return self.request("cpu", amount)

    def memory(self, amount: Amount) -> PodBuilder:
        return self.request("memory", amount)

    def gpu(self, amount: Amount) -> PodBuilder:
        return self.request(GPU, amount)

    def asks(self, **amounts: Amount) -> PodBuilder:
        """Set several requests: asks(cpu=1, memory="1Gi", gpu=2)."""
        return self._resources("requests", _amounts(amounts))

    def limits(self, **amounts: Amount) -> PodBuilder:
        """Set limits, which are requests as well."""
        return self.asks(**amounts)._resources("limits", _amounts(amounts))

    def volcano(self, **amounts: Amount) -> PodBuilder:
        """Set limits of volcano.sh: volcano(gpu_memory=1024), volcano(vgpu_number=1, vgpu_cores=30)."""
        return self.limits(**_of_volcano(amounts))

    def _resources(self, which: str, amounts: Mapping[str, Amount]) -> PodBuilder:
        made = self
        for name, amount in amounts.items():
            made = made.having("spec", "containers", 0, "resources", which, name, value=amount)
        return made

    def containers(self, *containers: dict[str, Any]) -> PodBuilder:
        """Set the containers, as they are written in a pod's spec."""
        return self.having("spec", "containers", value=list(containers))

    def gang(self, group: str) -> PodBuilder:
        return self.annotation(GROUP_NAME, group)

    def role(self, name: str) -> PodBuilder:
        return self.annotation(TASK_SPEC, name)

    def preemptable(self, value: bool) -> PodBuilder:
        return self.annotation(PREEMPTABLE, str(value).lower())

    def priority(self, value: int) -> PodBuilder:
        return self.having("spec", "priority", value=value)

    def selector(self, key: str, value: str) -> PodBuilder:
        return self.having("spec", "nodeSelector", key, value=value)

    def tolerates(self, key: str, effect: str = "") -> PodBuilder:
        tolerations = [*self.document["spec"].get("tolerations", ()), {"key": key, "operator": "Exists", "effect": effect}]
        return self.having("spec", "tolerations", value=tolerations)

    def scheduler(self, name: str) -> PodBuilder:
        return self.having("spec", "schedulerName", value=name)

    def on(self, node_name: str) -> PodBuilder:
        """Let the pod run on this node; it stays pending if the name is empty."""
        return self.having("spec", "nodeName", value=node_name).phase("Running") if node_name else self

    def phase(self, name: str) -> PodBuilder:
        return self.having("status", "phase", value=name)

    def started(self, instant: str | float) -> PodBuilder:
        return self.having("status", "startTime", value=_instant(instant))

    def owned(self, kind: str, name: str) -> PodBuilder:
        """Let this controller own the pod: owned("ReplicaSet", "web-5f")."""
        return self.having("metadata", "ownerReferences", value=[{"kind": kind, "name": name, "controller": True}])

    def leaving(self) -> PodBuilder:
        return self.having("metadata", "deletionTimestamp", value="2026-01-01T00:00:00Z")

    def times(self, count: int) -> list[PodBuilder]:
        """Several equal pods with numbered names."""
        name = self.document["metadata"]["name"]
        return [self.having("metadata", "name", value=f"{name}-{index}") for index in range(count)]


class PodGroupBuilder(Builder):
    kind, struct = "PodGroup", PodGroup

    def queue(self, name: str) -> PodGroupBuilder:
        return self.having("spec", "queue", value=name)

    def priority_class(self, name: str) -> PodGroupBuilder:
        return self.having("spec", "priorityClassName", value=name)

    def needs(self, **amounts: Amount) -> PodGroupBuilder:
        return self.having("spec", "minResources", value=_amounts(amounts))

    def roles(self, **least: int) -> PodGroupBuilder:
        """Set how many pods of each role the job needs: roles(driver=1, worker=4)."""
        return self.having("spec", "minTaskMember", value=least)

    def topology(self, highest_tier: int | None = None, mode: str = "hard") -> PodGroupBuilder:
        """Set how far the job may spread over HyperNodes."""
        return self.having("spec", "networkTopology", value=_topology(mode, highest_tier))

    def parts(self, label: str, size: int, least: int = 0, highest_tier: int | None = None) -> PodGroupBuilder:
        """Add sub-groups: pods with the same value of a label belong together."""
        policy: dict[str, Any] = {"name": label, "matchLabelKeys": [label], "subGroupSize": size, "minSubGroups": least}
        if highest_tier is not None:
            policy["networkTopology"] = _topology("hard", highest_tier)
        return self.having("spec", "subGroupPolicy", value=[*self.document["spec"].get("subGroupPolicy", ()), policy])

    def phase(self, name: str) -> PodGroupBuilder:
        return self.having("status", "phase", value=name)

    def admitted(self) -> PodGroupBuilder:
        """Let the group be admitted already, as the action enqueue does it."""
        return self.phase("Inqueue")

    def pods(self, count: int, on: str = "", **requests: Amount) -> list[Builder]:
        """The group and this number of pods: podgroup("train").pods(2, cpu=4) has the pods train-0 and train-1."""
        name, namespace = (self.document["metadata"][key] for key in ("name", "namespace"))
        member = pod(name, namespace).gang(name).asks(**requests)
        return [self, *member.on(on).times(count)]


def _topology(mode: str, highest_tier: int | None) -> dict[str, Any]:
    return {"mode": mode} | ({} if highest_tier is None else {"highestTierAllowed": highest_tier})


class HyperNodeBuilder(Builder):
    kind, struct = "HyperNode", HyperNode

    def holds(self, *names: str, kind: str = "Node") -> HyperNodeBuilder:
        """Add nodes (or other HyperNodes) as members, by name."""
        return self.member(*({"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names))

    def member(self, *members: dict[str, Any]) -> HyperNodeBuilder:
        """Add members, as they are written in the spec."""
        return self.having("spec", "members", value=[*self.document["spec"].get("members", ()), *members])


class QueueBuilder(Builder):
    kind, struct = "Queue", Queue

    def weight(self, value: int) -> QueueBuilder:
        return self.having("spec", "weight", value=value)

    def capability(self, **amounts: Amount) -> QueueBuilder:
        return self.having("spec", "capability", value=_amounts(amounts))

    def deserves(self, **amounts: Amount) -> QueueBuilder:
        return self.having("spec", "deserved", value=_amounts(amounts))

    def guarantees(self, **amounts: Amount) -> QueueBuilder:
        return self.having("spec", "guarantee", "resource", value=_amounts(amounts))

    def priority(self, value: int) -> QueueBuilder:
        return self.having("spec", "priority", value=value)

    def parent(self, name: str) -> QueueBuilder:
        return self.having("spec", "parent", value=name)

    def state(self, name: str) -> QueueBuilder:
        """Set the state: Open, Closing or Closed."""
        return self.having("status", "state", value=name)


class PriorityClassBuilder(Builder):
    kind, struct = "PriorityClass", PriorityClass


class ObjectBuilder(Builder):
    """Builder of an object of any other kind that scheduling reads."""

    def build(self) -> tuple[str, Wire]:
        kind = self.document["kind"]
        return kind, convert(self.document, _STRUCTS[kind])


def node(name: str) -> NodeBuilder:
    """A node for 110 pods, without other resources yet."""
    return NodeBuilder({"metadata": {"name": name, "labels": {HOSTNAME: name}}, "status": {"allocatable": {"pods": 110}}})


def pod(name: str, namespace: str = "default") -> PodBuilder:
    """A pending pod of one container."""
    spec = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "main"}]}
    return PodBuilder({"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def podgroup(name: str, minimum: int = 1, namespace: str = "default") -> PodGroupBuilder:
    return PodGroupBuilder({"metadata": {"name": name, "namespace": namespace}, "spec": {"minMember": minimum}})


def hypernode(name: str, tier: int = 1, tier_name: str = "") -> HyperNodeBuilder:
    return HyperNodeBuilder({"metadata": {"name": name}, "spec": {"tier": tier, "tierName": tier_name}})


def queue(name: str) -> QueueBuilder:
    return QueueBuilder({"metadata": {"name": name}, "spec": {"weight": 1}, "status": {"state": "Open"}})


def priority_class(name: str, value: int) -> PriorityClassBuilder:
    return PriorityClassBuilder({"metadata": {"name": name}, "value": value})


def manifest(kind: str, name: str, namespace: str = "default", **parts: Any) -> ObjectBuilder:
    """An object of any other kind that scheduling reads: manifest("ResourceQuota", "most", spec={"hard": {"cpu": 9}})."""
    place = {} if kind in CLUSTER_WIDE else {"namespace": namespace}
    return ObjectBuilder({"kind": kind, "metadata": {"name": name} | place} | parts)
