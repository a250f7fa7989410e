"""Events of a cluster that could help a pod that found no node: kube-scheduler's cluster events and queueing hints.

A hint says whether a pod that a rule refused should be tried again. Each plugin of kube-scheduler has its own hints (`plugins/kube/`).
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
    POD_PLACED = auto()  #: a pod was placed on a node
    POD_GONE = auto()  #: a pod left a node, or its bind failed, or it is no longer nominated there
    POD_LEAVING = auto()  #: a pod on a node is being deleted
    POD_LABELS = auto()  #: the labels of a pod on a node changed
    POD_SHRUNK = auto()  #: a pod on a node requests less than before
    OWN_UPDATE = auto()  #: the waiting pod itself changed in what scheduling reads
    VOLUMES = auto()  #: claims, volumes, their classes, what nodes may attach
    DEVICES = auto()  #: device claims, classes, slices
    NAMESPACE = auto()
    SELECTORS = auto()  #: selectors of services and of controllers of pods
    OTHER = auto()  #: objects that no rule with hints reads
    ANYTHING = auto()


class ClusterEvent(Struct, frozen=True):
    what: EventKind
    node: str = ""
    pod: Task | None = None
    before: Vector | None = None  #: allocatable, or the request of a pod that shrank
    labels: Pairs | None = None  #: the labels that the pod had before


def of_node(cluster: Cluster, before: Node | None, after: Node | None) -> list[ClusterEvent]:
    """The events that follow from a node's new form. `before` or `after` is None if there is none. A heartbeat is no event. The events
    are for use once the cluster has the new form."""
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
    """The row of the event's node; -1 if the node is gone."""
    return cluster.nodes.rows.get(event.node, -1)


def allows(cluster: Cluster, event: ClusterEvent, rule: Filter, task: Task) -> bool:
    """Whether the filter admits the pod to the event's node; False if the node is gone. True if the filter has nothing to say about the
    pod, for the profile may have configured it otherwise."""
    row, state = row_of(cluster, event), rule.prepare(task)
    if row < 0 or state is None:
        return row >= 0
    view = View(cluster.nodes, np.array([row]))
    return not any(refused.where[0] for refused in rule.refuse(state, view))
