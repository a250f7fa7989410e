"""Kubernetes' own PodGroups by the rules of 1.37: the shapes of scheduler_perf's podgroup workloads. The work is the cycle alone.

Nodes have 4 CPU, 32 GiB and 110 pods, racks are of 100 nodes, pods ask for 100m and 100Mi. Upstream places topology-aware gangs on 5,000
nodes at 492 to 630 pods/s with its limit of placements, and at 104 to 114 pods/s with all placements scored, as here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bench import shapes
from bench.kube_scheduler import NOW
from bench.measure import Row, measured
from pumice.api import kube_pod_groups as api, yaml
from pumice.api.core import Node, NodeStatus
from pumice.api.kinds import COMPOSITE_POD_GROUP, NATIVE_POD_GROUP
from pumice.api.meta import Metadata
from pumice.api.pod import Container, Pod, PodSpec, PodStatus, Present, ResourceRequirements, SchedulingGroup
from pumice.api.quantity import quantity
from pumice.api.times import rfc3339
from pumice.scheduler.config import KUBE_DEFAULT, schedulers_of
from pumice.scheduler.config.kube_conf import read_kube
from pumice.scheduler.framework.cycle import cycle
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.feature_gates import release
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model.cluster import Cluster

RACK = "example.com/rack"
GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True, "CompositePodGroup": True}


def policy() -> Policy:
    return read_kube(next(yaml.documents(KUBE_DEFAULT, "default")), {}, release(37, GATES))[0]


def nodes(count: int, per_rack: int = 100) -> shapes.Items:
    room = {name: quantity(amount) for name, amount in (("cpu", "4"), ("memory", "32Gi"), ("pods", "110"))}
    for number in range(count):
        name = f"node-{number:05d}"
        labels = {RACK: f"rack-{number // per_rack:03d}", "kubernetes.io/hostname": name}
        yield "Node", Node(Metadata(name=name, labels=labels), status=NodeStatus(allocatable=room))


def gangs(prefix: str, count: int, size: int, *, key: str = "", parent: str = "", **told: Any) -> Iterator[tuple[str, Any]]:
    """Gangs of equal pending pods. `told`: more about them, as `members` takes it."""
    constraints = api.SchedulingConstraints([api.TopologyConstraint(key)]) if key else None
    for number in range(count):
        name = f"{prefix}-{number:04d}"
        mode = api.DisruptionMode(whole=Present()) if told.get("whole") else None
        spec = api.NativeGroupSpec(
            parent or None,
            constraints,
            mode,
            priority=told.get("priority", 0),
            scheduling_policy=api.PodGroupSchedulingPolicy(gang=api.GangSchedulingPolicy(size)),
        )
        yield NATIVE_POD_GROUP, api.NativePodGroup(Metadata(name=name, namespace="default", uid=name), spec)
        yield from members(name, size, told.get("cpu", "100m"), told.get("priority", 0), told.get("on"))


def members(of: str, size: int, cpu: str, priority: int, on: Callable[[], str] | None = None, *, alone: bool = False) -> shapes.Items:
    asked = ResourceRequirements(requests={"cpu": quantity(cpu), "memory": quantity("100Mi")})
    containers = [Container(name="main", image="app:1", resources=asked)]
    for number in range(size):
        meta = Metadata(name=f"{of}-{number:04d}", namespace="default", uid=f"{of}-{number}", creation_timestamp=rfc3339(shapes.EPOCH))
        node = on() if on is not None else None
        group = None if alone else SchedulingGroup(of)
        spec = PodSpec(containers=containers, node_name=node, scheduler_name="default-scheduler", priority=priority, scheduling_group=group)
        yield "Pod", Pod(meta, spec, PodStatus(phase="Running" if node else "Pending", start_time=rfc3339(shapes.EPOCH) if node else None))


def trees(count: int, children: int, size: int) -> Iterator[tuple[str, Any]]:
    """Trees of gangs, each in one rack."""
    for number in range(count):
        name = f"tree-{number:03d}"
        policy_of = api.CompositePolicy(gang=api.CompositeGang(children))
        spec = api.CompositeSpec(
            scheduling_constraints=api.SchedulingConstraints([api.TopologyConstraint(RACK)]), scheduling_policy=policy_of
        )
        yield COMPOSITE_POD_GROUP, api.CompositePodGroup(Metadata(name=name, namespace="default", uid=name), spec)
        yield from gangs(f"{name}-g", children, size, parent=name)


def cluster(*parts: Iterator[tuple[str, Any]]) -> Callable[[], Cluster]:
    items = [item for part in parts for item in part]

    def build() -> Cluster:
        made = Cluster(schedulers_of(policy()))
        for kind, item in items:
            made.put(kind, item)
        return made

    return build


def decide(made: Cluster) -> Decisions:
    return cycle(made, policy(), NOW)


def victims(count: int, size: int, over: int) -> Iterator[tuple[str, Any]]:
    """Running gangs of unimportant pods, which go as a whole."""
    place = iter(range(count * size))
    yield from gangs("low", count, size, cpu="400m", on=lambda: f"node-{next(place) % over:05d}", whole=True)


def run() -> list[Row]:
    return [
        measured("native gangs: 5,000 nodes, 2,000 gangs of 3", 1.5, None, cluster(nodes(5000), gangs("g", 2000, 3)), decide, 1),
        measured("native gangs: 5,000 nodes, 9 gangs of 1,000", 2, None, cluster(nodes(5000), gangs("g", 9, 1000)), decide, 1),
        measured(
            "native gangs: 5,000 nodes in 50 racks, 750 gangs of 4, each in a rack, all racks scored",
            0.6,
            None,
            cluster(nodes(5000), gangs("g", 750, 4, key=RACK)),
            decide,
            1,
        ),
        measured(
            "native gangs: 5,000 nodes in 50 racks, 6 gangs of 1,000, each in a rack, all racks scored",
            1.2,
            None,
            cluster(nodes(5000), gangs("g", 6, 1000, key=RACK)),
            decide,
            1,
        ),
        measured(
            "native gangs: 5,000 nodes in 50 racks, 50 trees of 4 gangs of 5", 0.6, None, cluster(nodes(5000), trees(50, 4, 5)), decide, 1
        ),
        measured("native gangs: 5,000 nodes, 10 gangs of 5,000", 2.5, None, cluster(nodes(5000), gangs("g", 10, 5000)), decide, 1),
        measured(
            "native gangs: 1,000 nodes, 40 pods evict of 1,000 gangs of 10",
            0.3,
            None,
            cluster(nodes(1000), victims(1000, 10, 1000), members("single", 40, "3", 9, alone=True)),
            decide,
            1,
        ),
        measured(
            "native gangs: 1,000 nodes, a gang of 10 evicts of 1,000 gangs of 10",
            1,
            None,
            cluster(nodes(1000), victims(1000, 10, 1000), gangs("high", 1, 10, cpu="3", priority=9)),
            decide,
            1,
        ),
    ]
