"""Clusters of the sizes and shapes that the budgets name, made of wire objects."""

from __future__ import annotations

from collections.abc import Iterator

from pumice.api.core import Node, NodeStatus, PriorityClass
from pumice.api.meta import Metadata, Wire
from pumice.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from pumice.api.quantity import quantity
from pumice.api.times import rfc3339
from pumice.api.volcano import PodGroup, PodGroupSpec, PodGroupStatus, Queue, QueueSpec, QueueStatus
from pumice.scheduler.model.cluster import Cluster

Items = Iterator[tuple[str, Wire]]

EPOCH = 1_767_225_600.0


def nodes(count: int, **allocatable: str | int) -> Items:
    given = {name.replace("_", "/").replace("gpu", "nvidia.com/gpu"): quantity(value) for name, value in allocatable.items()}
    for number in range(count):
        name = f"node-{number:05d}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
        yield "Node", Node(Metadata(name=name, labels=labels), status=NodeStatus(allocatable={"pods": quantity(110)} | given))


def queues(*named: tuple[str, int]) -> Items:
    for name, weight in (("default", 1), ("root", 1), *named):
        yield "Queue", Queue(Metadata(name=name), QueueSpec(weight=weight, reclaimable=name != "root"), QueueStatus(state="Open"))


def classes(**values: int) -> Items:
    for name, value in values.items():
        yield "PriorityClass", PriorityClass(Metadata(name=name), value)


def gang(
    name: str,
    size: int,
    requests: dict[str, str],
    *,
    minimum: int | None = None,
    queue: str = "default",
    priority: str | None = None,
    phase: str = "Pending",
    on: Iterator[str] | None = None,
    created: float = 0.0,
    namespace: str = "default",
) -> Items:
    """A PodGroup and its pods. The pods run on the nodes that `on` gives; without `on` they are pending."""
    asked = {key.replace("gpu", "nvidia.com/gpu"): quantity(value) for key, value in requests.items()}
    born = rfc3339(EPOCH + created)
    least = {key: quantity(f"{q.milli * (minimum or size)}m") for key, q in asked.items()}
    spec = PodGroupSpec(min_member=minimum or size, queue=queue, priority_class_name=priority, min_resources=least)
    yield "PodGroup", PodGroup(Metadata(name=name, namespace=namespace, creation_timestamp=born), spec, PodGroupStatus(phase=phase))  # type: ignore[arg-type]
    containers = [Container(name="main", image="train:1", resources=ResourceRequirements(requests=asked))]
    for index in range(size):
        meta = Metadata(
            name=f"{name}-worker-{index}",
            namespace=namespace,
            uid=f"{name}-{index}",
            labels={"app": name, "volcano.sh/task-index": str(index)},
            annotations={"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": "worker"},
            creation_timestamp=born,
        )
        node = next(on) if on else None
        pod_spec = PodSpec(containers=containers, node_name=node, scheduler_name="volcano", priority=VALUES.get(priority or ""))
        yield "Pod", Pod(meta, pod_spec, PodStatus(phase="Running" if node else "Pending"))


VALUES = {"high": 1000, "low": 10}


def cluster(*parts: Items) -> Cluster:
    made = Cluster()
    for part in parts:
        for kind, item in part:
            made.put(kind, item)
    return made


def spread(count: int) -> Iterator[str]:
    """The names of this many nodes, in turn and without end."""
    while True:
        for number in range(count):
            yield f"node-{number:05d}"


def many(builders: Iterator[Items]) -> Items:
    for builder in builders:
        yield from builder
