"""Builders of wire objects, each call a new one: `pod("p").cpu(2).gpu(1).gang("train").on("n1")`.

Amounts are quantities as users write them. `build()` gives (kind, object); `cluster()` calls it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pumice.api.annotations import GROUP_NAME, HOSTNAME, PREEMPTABLE, TASK_SPEC
from pumice.api.core import Node, PriorityClass
from pumice.api.meta import Wire
from pumice.api.pod import Pod
from pumice.api.structs import convert
from pumice.api.volcano import HyperNode, PodGroup, Queue

Amount = str | int | float
B = TypeVar("B", bound="_Builder")

GPU = "nvidia.com/gpu"


class _Builder:
    """Base: a document that grows; every call returns a changed copy."""

    kind = ""
    struct: type[Wire]

    def __init__(self, document: dict[str, Any]) -> None:
        self.document = document

    def having(self: B, *path: str | int, value: Any) -> B:
        """A copy in which the field at `path` is `value`: having("spec", "priority", value=5)."""
        return type(self)(_with(self.document, path, value))

    def label(self: B, key: str, value: str) -> B:
        return self.having("metadata", "labels", key, value=value)

    def annotation(self: B, key: str, value: str) -> B:
        return self.having("metadata", "annotations", key, value=value)

    def created(self: B, instant: str) -> B:
        return self.having("metadata", "creationTimestamp", value=instant)

    def build(self) -> tuple[str, Wire]:
        return self.kind, convert(self.document, self.struct)


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


class NodeBuilder(_Builder):
    kind, struct = "Node", Node

    def resource(self, name: str, amount: Amount) -> NodeBuilder:
        return self.having("status", "allocatable", name, value=amount)

    def cpu(self, amount: Amount) -> NodeBuilder:
        return self.resource("cpu", amount)

    def memory(self, amount: Amount) -> NodeBuilder:
        return self.resource("memory", amount)

    def gpu(self, amount: Amount) -> NodeBuilder:
        return self.resource(GPU, amount)

    def pods(self, amount: int) -> NodeBuilder:
        return self.resource("pods", amount)

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> NodeBuilder:
        taints = [*self.document.get("spec", {}).get("taints", ()), {"key": key, "value": value, "effect": effect}]
        return self.having("spec", "taints", value=taints)

    def cordoned(self) -> NodeBuilder:
        return self.having("spec", "unschedulable", value=True)


class PodBuilder(_Builder):
    kind, struct = "Pod", Pod

    def request(self, name: str, amount: Amount) -> PodBuilder:
        return self.having("spec", "containers", 0, "resources", "requests", name, value=amount)

    def cpu(self, amount: Amount) -> PodBuilder:
        return self.request("cpu", amount)

    def memory(self, amount: Amount) -> PodBuilder:
        return self.request("memory", amount)

    def gpu(self, amount: Amount) -> PodBuilder:
        return self.request(GPU, amount)

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
        """Running there."""
        return self.having("spec", "nodeName", value=node_name).having("status", "phase", value="Running")

    def leaving(self) -> PodBuilder:
        return self.having("metadata", "deletionTimestamp", value="2026-01-01T00:00:00Z")

    def times(self, count: int) -> list[PodBuilder]:
        """Equal pods, their names numbered."""
        name = self.document["metadata"]["name"]
        return [self.having("metadata", "name", value=f"{name}-{index}") for index in range(count)]


class PodGroupBuilder(_Builder):
    kind, struct = "PodGroup", PodGroup

    def queue(self, name: str) -> PodGroupBuilder:
        return self.having("spec", "queue", value=name)

    def priority_class(self, name: str) -> PodGroupBuilder:
        return self.having("spec", "priorityClassName", value=name)

    def needs(self, **amounts: Amount) -> PodGroupBuilder:
        return self.having("spec", "minResources", value=amounts)

    def topology(self, highest_tier: int | None = None, mode: str = "hard") -> PodGroupBuilder:
        """How far it may spread."""
        return self.having("spec", "networkTopology", value=_topology(mode, highest_tier))

    def parts(self, label: str, size: int, least: int = 0, highest_tier: int | None = None) -> PodGroupBuilder:
        """Sub-groups: pods with the same value of a label belong together."""
        policy: dict[str, Any] = {"name": label, "matchLabelKeys": [label], "subGroupSize": size, "minSubGroups": least}
        if highest_tier is not None:
            policy["networkTopology"] = _topology("hard", highest_tier)
        return self.having("spec", "subGroupPolicy", value=[*self.document["spec"].get("subGroupPolicy", ()), policy])

    def phase(self, name: str) -> PodGroupBuilder:
        return self.having("status", "phase", value=name)


def _topology(mode: str, highest_tier: int | None) -> dict[str, Any]:
    return {"mode": mode} | ({} if highest_tier is None else {"highestTierAllowed": highest_tier})


class HyperNodeBuilder(_Builder):
    kind, struct = "HyperNode", HyperNode

    def holds(self, *names: str, kind: str = "Node") -> HyperNodeBuilder:
        """Nodes (or other HyperNodes) by name."""
        return self.member(*({"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names))

    def member(self, *members: dict[str, Any]) -> HyperNodeBuilder:
        """Members as they are written in the spec."""
        return self.having("spec", "members", value=[*self.document["spec"].get("members", ()), *members])


class QueueBuilder(_Builder):
    kind, struct = "Queue", Queue

    def weight(self, value: int) -> QueueBuilder:
        return self.having("spec", "weight", value=value)

    def capability(self, **amounts: Amount) -> QueueBuilder:
        return self.having("spec", "capability", value=amounts)

    def deserves(self, **amounts: Amount) -> QueueBuilder:
        return self.having("spec", "deserved", value=amounts)

    def parent(self, name: str) -> QueueBuilder:
        return self.having("spec", "parent", value=name)

    def closed(self) -> QueueBuilder:
        return self.having("status", "state", value="Closed")


class PriorityClassBuilder(_Builder):
    kind, struct = "PriorityClass", PriorityClass


def node(name: str) -> NodeBuilder:
    """A node for 110 pods, with nothing else yet."""
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
