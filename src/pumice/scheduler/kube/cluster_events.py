"""What happens in a cluster, as far as it could help a pod that found no node, and which rule it could help with.

A pod waits until something happens that one of the rules that refused it says could help (queueing hints). Rules that are not
in `HINTS`, such as extenders and rules of others, may be helped by anything. NodeName is not: a pod that names its node waits for none.
What a pod had to itself on a node (an exclusive claim, a volume or devices not yet bound) is free again when the node is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from pumice.api.core import Node
from pumice.scheduler.engine.rules import Filter
from pumice.scheduler.engine.view import View
from pumice.scheduler.kube.nominator import PipelinedRoom
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.resources import Vector
from pumice.scheduler.model.task import Pairs, Task
from pumice.scheduler.plugins.kube.indexes.existing_terms import ExistingTerms
from pumice.scheduler.plugins.kube.inter_pod_affinity import InterPodAffinityFilter
from pumice.scheduler.plugins.kube.node_affinity import NodeAffinityFilter
from pumice.scheduler.plugins.kube.taint_toleration import TaintFilter
from pumice.scheduler.plugins.kube.volume_claims import has_claims


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
    OTHER = auto()  #: objects that none of the rules in `HINTS` reads
    ANYTHING = auto()


class ClusterEvent(NamedTuple):
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


IGNORES = "ignored resources"  #: key in the cluster's memory: by schedulerName, whether NodeResourcesFit passes a resource over

QueueingHint = Callable[[Cluster, Task, ClusterEvent], bool]  #: whether a waiting pod should be tried again


def _row(cluster: Cluster, event: ClusterEvent) -> int:
    return cluster.nodes.rows.get(event.node, -1)


def _always(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return True


def _fits_empty(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the node could take the pod at all; one that grew must have grown in something that the pod asks for."""
    row = _row(cluster, event)
    if row < 0:
        return False
    has, template = cluster.nodes.allocatable[:, row], task.template
    grew = event.before is None or bool((has > event.before)[template.columns].any())
    ignores = cluster.memory.get(IGNORES, {}).get(template.scheduler_name, _nothing)
    names = cluster.dimensions.names
    return grew and all(amount <= has[column] or ignores(names[column]) for column, amount in template.needs)


def _nothing(resource: str) -> bool:
    return False


def _shrank_in_common(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    other = event.pod
    if other is None or event.before is None:
        return True
    return bool((other.template.taken < event.before)[task.template.columns].any())


def _tolerated(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return _allows(cluster, event, TaintFilter(), task)


def _schedulable(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    row = _row(cluster, event)
    return row >= 0 and not cluster.nodes.cordoned[row]


def _selected(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return _allows(cluster, event, NodeAffinityFilter(), task)


def _allows(cluster: Cluster, event: ClusterEvent, rule: Filter, task: Task) -> bool:
    """Whether the rule has nothing against the pod on the node. A rule without a word may have been set otherwise in the profile."""
    row, state = _row(cluster, event), rule.prepare(task)
    if row < 0 or state is None:
        return row >= 0
    view = View(cluster.nodes, np.array([row]))
    return not any(refused.where[0] for refused in rule.refuse(state, view))


def _frees_port(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    if event.pod is None:
        return True
    freed = {(protocol, port) for protocol, _, port in event.pod.template.host_ports}
    return any((protocol, port) in freed for protocol, _, port in task.template.host_ports)


def _near_terms(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the other pod is meant by a term of this one, or has one that means it."""
    other = event.pod
    if other is None:
        return True
    terms = cluster.index(ExistingTerms)
    own, theirs = terms.of_pod(task), terms.of_pod(other)
    return any(term.scope.has(other) for term in (*own.affinity, *own.anti)) or any(term.scope.has(task) for term in theirs.anti)


def _was_or_is_near(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the other pod is meant by a term of this one, or was by its old labels; whom its own terms mean may hang on them, too."""
    other = event.pod
    if other is None or event.labels is None:
        return True
    terms = cluster.index(ExistingTerms)
    own, forms = terms.of_pod(task), (other.labels, event.labels)
    meant = any(term.scope.means(other.namespace, labels) for term in (*own.affinity, *own.anti) for labels in forms)
    return meant or bool(terms.of_pod(other).anti)


def _same_namespace(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return event.pod is None or event.pod.namespace == task.namespace


def _has_defaults(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the constraints that refused the pod are the profile's, whose selectors are taken from other objects."""
    return not task.template.spec.topology_spread_constraints


def _had_claims(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the other pod may give back a volume that nobody had bound yet."""
    return event.pod is None or has_claims(event.pod.template)


_NODES_COME = {EventKind.NODE_ADDED: _always}
_VOLUMES = {EventKind.VOLUMES: _always, EventKind.NODE_ADDED: _always}

HINTS: dict[str, dict[EventKind, QueueingHint]] = {
    "NodeResourcesFit": {
        EventKind.POD_GONE: _always,
        EventKind.POD_SHRUNK: _shrank_in_common,
        EventKind.NODE_ADDED: _fits_empty,
        EventKind.NODE_ALLOCATABLE: _fits_empty,
    },
    "NodeUnschedulable": {EventKind.NODE_ADDED: _schedulable, EventKind.NODE_TAINTS: _schedulable},
    "TaintToleration": {EventKind.NODE_ADDED: _tolerated, EventKind.NODE_TAINTS: _tolerated},
    "NodeAffinity": {EventKind.NODE_ADDED: _selected, EventKind.NODE_LABELS: _selected},
    "NodePorts": {EventKind.POD_GONE: _frees_port, **_NODES_COME},
    InterPodAffinityFilter.name: {
        EventKind.POD_PLACED: _near_terms,
        EventKind.POD_GONE: _near_terms,
        EventKind.POD_LABELS: _was_or_is_near,
        EventKind.NODE_REMOVED: _always,
        EventKind.NODE_LABELS: _always,
        EventKind.NAMESPACE: _always,
        **_NODES_COME,
    },
    "PodTopologySpread": {
        EventKind.POD_PLACED: _same_namespace,
        EventKind.POD_LEAVING: _same_namespace,
        EventKind.POD_GONE: _same_namespace,
        EventKind.POD_LABELS: _same_namespace,
        EventKind.SELECTORS: _has_defaults,
        EventKind.NODE_REMOVED: _always,
        EventKind.NODE_LABELS: _always,
        EventKind.NODE_TAINTS: _always,
        **_NODES_COME,
    },
    "VolumeRestrictions": {EventKind.POD_GONE: _always, EventKind.NODE_REMOVED: _always, **_VOLUMES},
    "NodeVolumeLimits": {EventKind.POD_GONE: _always, **_VOLUMES},
    "VolumeBinding": {EventKind.POD_GONE: _had_claims, EventKind.NODE_REMOVED: _always, EventKind.NODE_LABELS: _always, **_VOLUMES},
    "VolumeZone": {EventKind.NODE_LABELS: _always, **_VOLUMES},
    "DynamicResources": {
        EventKind.DEVICES: _always,
        EventKind.POD_GONE: _always,
        EventKind.NODE_REMOVED: _always,
        EventKind.NODE_LABELS: _always,
        **_NODES_COME,
    },
    "SchedulingGates": {},
}


FLEETING = frozenset([PipelinedRoom.name])  #: rules that refuse for the length of a session: no event tells when they no longer do


def may_help(cluster: Cluster, task: Task, refused_by: Iterable[str], event: ClusterEvent) -> bool:
    """Whether an event could help a pod that these rules refused. Its own update may always; what else is told of itself never."""
    if event.what is EventKind.ANYTHING or event.pod is task:
        return event.what in (EventKind.ANYTHING, EventKind.OWN_UPDATE)
    for name in refused_by:
        hints = HINTS.get(name)
        if hints is None:
            return True
        hint = hints.get(event.what)
        if hint is not None and hint(cluster, task, event):
            return True
    return False
