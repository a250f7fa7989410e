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

from pumice.actions.kube.promised import PromisedRoom
from pumice.api.core import Node
from pumice.engine.rules import Filter
from pumice.engine.view import View
from pumice.model.cluster import Cluster
from pumice.model.resources import Vector
from pumice.model.task import Pairs, Task
from pumice.plugins.kube.claims import has_claims
from pumice.plugins.kube.inter_pod_affinity import InterPodAffinityFilter
from pumice.plugins.kube.node_affinity import NodeAffinityFilter
from pumice.plugins.kube.standing.terms import Terms
from pumice.plugins.kube.taint_toleration import TaintFilter


class What(Enum):
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


class Happening(NamedTuple):
    what: What
    node: str = ""
    pod: Task | None = None
    before: Vector | None = None  #: allocatable, or the request of a pod that shrank
    labels: Pairs | None = None  #: those that the pod had before


def of_node(cluster: Cluster, before: Node | None, after: Node | None) -> list[Happening]:
    """What a node's new form means; None where there is none. A heartbeat means nothing. To be told once the cluster has it."""
    if before is None or after is None:
        node = after or before
        return [Happening(What.NODE_ADDED if after else What.NODE_REMOVED, node.metadata.name)] if node else []
    name = after.metadata.name
    found = []
    if before.status.allocatable != after.status.allocatable:
        found.append(Happening(What.NODE_ALLOCATABLE, name, before=cluster.dimensions.vector(before.status.allocatable)))
    if before.metadata.labels != after.metadata.labels:
        found.append(Happening(What.NODE_LABELS, name))
    if (before.spec.taints, before.spec.unschedulable) != (after.spec.taints, after.spec.unschedulable):
        found.append(Happening(What.NODE_TAINTS, name))
    return found


IGNORES = "ignored resources"  #: key in the cluster's memory: by schedulerName, whether NodeResourcesFit passes a resource over

Hint = Callable[[Cluster, Task, Happening], bool]  #: whether a waiting pod should be tried again


def _row(cluster: Cluster, event: Happening) -> int:
    return cluster.nodes.rows.get(event.node, -1)


def _always(cluster: Cluster, task: Task, event: Happening) -> bool:
    return True


def _fits_empty(cluster: Cluster, task: Task, event: Happening) -> bool:
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


def _shrank_in_common(cluster: Cluster, task: Task, event: Happening) -> bool:
    other = event.pod
    if other is None or event.before is None:
        return True
    return bool((other.template.taken < event.before)[task.template.columns].any())


def _tolerated(cluster: Cluster, task: Task, event: Happening) -> bool:
    return _allows(cluster, event, TaintFilter(), task)


def _schedulable(cluster: Cluster, task: Task, event: Happening) -> bool:
    row = _row(cluster, event)
    return row >= 0 and not cluster.nodes.cordoned[row]


def _selected(cluster: Cluster, task: Task, event: Happening) -> bool:
    return _allows(cluster, event, NodeAffinityFilter(), task)


def _allows(cluster: Cluster, event: Happening, rule: Filter, task: Task) -> bool:
    """Whether the rule has nothing against the pod on the node. A rule without a word may have been set otherwise in the profile."""
    row, state = _row(cluster, event), rule.prepare(task)
    if row < 0 or state is None:
        return row >= 0
    view = View(cluster.nodes, np.array([row]))
    return not any(refused.where[0] for refused in rule.refuse(state, view))


def _frees_port(cluster: Cluster, task: Task, event: Happening) -> bool:
    if event.pod is None:
        return True
    freed = {(protocol, port) for protocol, _, port in event.pod.template.host_ports}
    return any((protocol, port) in freed for protocol, _, port in task.template.host_ports)


def _near_terms(cluster: Cluster, task: Task, event: Happening) -> bool:
    """Whether the other pod is meant by a term of this one, or has one that means it."""
    other = event.pod
    if other is None:
        return True
    terms = cluster.index(Terms)
    own, theirs = terms.of_pod(task), terms.of_pod(other)
    return any(term.scope.has(other) for term in (*own.affinity, *own.anti)) or any(term.scope.has(task) for term in theirs.anti)


def _was_or_is_near(cluster: Cluster, task: Task, event: Happening) -> bool:
    """Whether the other pod is meant by a term of this one, or was by its old labels; whom its own terms mean may hang on them, too."""
    other = event.pod
    if other is None or event.labels is None:
        return True
    terms = cluster.index(Terms)
    own, forms = terms.of_pod(task), (other.labels, event.labels)
    meant = any(term.scope.means(other.namespace, labels) for term in (*own.affinity, *own.anti) for labels in forms)
    return meant or bool(terms.of_pod(other).anti)


def _same_namespace(cluster: Cluster, task: Task, event: Happening) -> bool:
    return event.pod is None or event.pod.namespace == task.namespace


def _has_defaults(cluster: Cluster, task: Task, event: Happening) -> bool:
    """Whether the constraints that refused the pod are the profile's, whose selectors are taken from other objects."""
    return not task.template.spec.topology_spread_constraints


def _had_claims(cluster: Cluster, task: Task, event: Happening) -> bool:
    """Whether the other pod may give back a volume that nobody had bound yet."""
    return event.pod is None or has_claims(event.pod.template)


_NODES_COME = {What.NODE_ADDED: _always}
_VOLUMES = {What.VOLUMES: _always, What.NODE_ADDED: _always}

HINTS: dict[str, dict[What, Hint]] = {
    "NodeResourcesFit": {
        What.POD_GONE: _always,
        What.POD_SHRUNK: _shrank_in_common,
        What.NODE_ADDED: _fits_empty,
        What.NODE_ALLOCATABLE: _fits_empty,
    },
    "NodeUnschedulable": {What.NODE_ADDED: _schedulable, What.NODE_TAINTS: _schedulable},
    "TaintToleration": {What.NODE_ADDED: _tolerated, What.NODE_TAINTS: _tolerated},
    "NodeAffinity": {What.NODE_ADDED: _selected, What.NODE_LABELS: _selected},
    "NodePorts": {What.POD_GONE: _frees_port, **_NODES_COME},
    InterPodAffinityFilter.name: {
        What.POD_PLACED: _near_terms,
        What.POD_GONE: _near_terms,
        What.POD_LABELS: _was_or_is_near,
        What.NODE_REMOVED: _always,
        What.NODE_LABELS: _always,
        What.NAMESPACE: _always,
        **_NODES_COME,
    },
    "PodTopologySpread": {
        What.POD_PLACED: _same_namespace,
        What.POD_LEAVING: _same_namespace,
        What.POD_GONE: _same_namespace,
        What.POD_LABELS: _same_namespace,
        What.SELECTORS: _has_defaults,
        What.NODE_REMOVED: _always,
        What.NODE_LABELS: _always,
        What.NODE_TAINTS: _always,
        **_NODES_COME,
    },
    "VolumeRestrictions": {What.POD_GONE: _always, What.NODE_REMOVED: _always, **_VOLUMES},
    "NodeVolumeLimits": {What.POD_GONE: _always, **_VOLUMES},
    "VolumeBinding": {What.POD_GONE: _had_claims, What.NODE_REMOVED: _always, What.NODE_LABELS: _always, **_VOLUMES},
    "VolumeZone": {What.NODE_LABELS: _always, **_VOLUMES},
    "DynamicResources": {
        What.DEVICES: _always,
        What.POD_GONE: _always,
        What.NODE_REMOVED: _always,
        What.NODE_LABELS: _always,
        **_NODES_COME,
    },
    "SchedulingGates": {},
}


FLEETING = frozenset([PromisedRoom.name])  #: rules that refuse for the length of a session: no event tells when they no longer do


def helps(cluster: Cluster, task: Task, refused_by: Iterable[str], event: Happening) -> bool:
    """Whether an event could help a pod that these rules refused. Its own update may always; what else is told of itself never."""
    if event.what is What.ANYTHING or event.pod is task:
        return event.what in (What.ANYTHING, What.OWN_UPDATE)
    for name in refused_by:
        hints = HINTS.get(name)
        if hints is None:
            return True
        hint = hints.get(event.what)
        if hint is not None and hint(cluster, task, event):
            return True
    return False
