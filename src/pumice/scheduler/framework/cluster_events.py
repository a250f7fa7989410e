"""What happens in a cluster, as far as it could help a pod that found no node: kube-scheduler's cluster events, and hints about them.

A hint says whether a pod that a rule refused should be tried again. Each plugin of kube-scheduler has its own (`plugins/kube/`).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

import numpy as np
from msgspec import Struct

from pumice.api.core import Node
from pumice.scheduler.engine.rules import Filter
from pumice.scheduler.engine.view import View
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import Vector
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Pairs


class EventKind(Enum):
    NODE_ADDED = auto()
    NODE_REMOVED = auto()
    NODE_ALLOCATABLE = auto()
    NODE_LABELS = auto()
    NODE_TAINTS = auto()  #: or whether it is cordoned
    POD_PLACED = auto()  #: a pod came to a node
    POD_GONE = auto()  #: a pod left a node, or its bind failed, or it is no longer nominated there
    POD_LEAVING = auto()  #: a pod on a node was asked to go
    POD_LABELS = auto()  #: of a pod on a node
    POD_SHRUNK = auto()  #: a pod on a node asks for less than before
    OWN_UPDATE = auto()  #: the waiting pod itself changed in what scheduling reads
    VOLUMES = auto()  #: claims, volumes, their classes, what nodes may attach
    DEVICES = auto()  #: device claims, classes, slices
    NAMESPACE = auto()
    SELECTORS = auto()  #: of services, and of what controls pods
    OTHER = auto()  #: objects that no rule with hints reads
    ANYTHING = auto()


class ClusterEvent(Struct, frozen=True):
    what: EventKind
    node: str = ""
    pod: Task | None = None
    before: Vector | None = None  #: allocatable, or the request of a pod that shrank
    labels: Pairs | None = None  #: those that the pod had before


def of_node(cluster: Cluster, before: Node | None, after: Node | None) -> list[ClusterEvent]:
    """What a node's new form means; None where there is none. A heartbeat means nothing. To be told once the cluster has it."""
    if before is None or after is None:
        node = after or before
        return [ClusterEvent(EventKind.NODE_ADDED if after else EventKind.NODE_REMOVED, node.metadata.name)] if node else []
    name = after.metadata.name
    found = []
    if before.status.allocatable != after.status.allocatable:
        found.append(ClusterEvent(EventKind.NODE_ALLOCATABLE, name, before=cluster.dimensions.vector(before.status.allocatable)))
    if before.metadata.labels != after.metadata.labels:
        found.append(ClusterEvent(EventKind.NODE_LABELS, name))
    if (before.spec.taints, before.spec.unschedulable) != (after.spec.taints, after.spec.unschedulable):
        found.append(ClusterEvent(EventKind.NODE_TAINTS, name))
    return found


QueueingHint = Callable[[Cluster, Task, ClusterEvent], bool]  #: whether a waiting pod should be tried again


def always(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return True


def row_of(cluster: Cluster, event: ClusterEvent) -> int:
    """The row of the node it happened to; -1 if it is gone."""
    return cluster.nodes.rows.get(event.node, -1)


def allows(cluster: Cluster, event: ClusterEvent, rule: Filter, task: Task) -> bool:
    """Whether the rule has nothing against the pod on the node. A rule without a word may have been set otherwise in the profile."""
    row, state = row_of(cluster, event), rule.prepare(task)
    if row < 0 or state is None:
        return row >= 0
    view = View(cluster.nodes, np.array([row]))
    return not any(refused.where[0] for refused in rule.refuse(state, view))
