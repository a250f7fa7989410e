"""Events of a cluster that could help a pod that found no node: kube-scheduler's cluster events and queueing hints.

A hint says whether a pod that a rule refused should be tried again. Each plugin of kube-scheduler has its own hints (`plugins/kube/`).
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from pumice.api.core import Node
from pumice.api.pod import PodSpec
from pumice.scheduler.engine import Filter, View
from pumice.scheduler.model import Cluster, Task, Template, Vector
from pumice.scheduler.model.shared_templates import Pairs


class EventKind(Enum):
    """Kinds of events. The values are upstream's names in metrics; of objects that come, change and go, their kind is the beginning."""

    NODE_ADDED = "NodeAdd"
    NODE_REMOVED = "NodeDelete"
    NODE_ALLOCATABLE = "NodeUpdateNodeAllocatable"
    NODE_LABELS = "NodeUpdateNodeLabel"
    NODE_TAINTS = "NodeUpdateNodeTaint"  #: or whether it is cordoned
    NODE_FEATURES = "NodeUpdateNodeDeclaredFeature"
    POD_PLACED = "AssignedPodAdd"  #: a pod was placed on a node
    POD_GONE = "AssignedPodDelete"  #: a pod left a node, or its bind failed, or it is no longer nominated there
    POD_LEAVING = "AssignedPodUpdate"  #: a pod on a node is being deleted
    POD_LABELS = "AssignedPodUpdatePodLabel"  #: the labels of a pod on a node changed
    POD_SHRUNK = "AssignedPodUpdatePodScaleDown"  #: a pod on a node requests less than before
    OWN_LABELS = "TargetPodUpdatePodLabel"  #: the labels of the waiting pod itself changed
    OWN_TOLERATIONS = "TargetPodUpdatePodToleration"
    OWN_SHRUNK = "TargetPodUpdatePodScaleDown"  #: the waiting pod itself requests less than before
    OWN_CLAIMS = "TargetPodUpdatePodGeneratedResourceClaim"
    OWN_UPDATE = "TargetPodUpdate"  #: it changed in something else that rules without hints might read
    OWN_RENEWAL = "TargetPodRenewal"  #: it changed in what no pod may change
    VOLUME_CLAIM = "PersistentVolumeClaim"
    VOLUME = "PersistentVolume"
    STORAGE_CLASS = "StorageClass"
    CSI_NODE = "CSINode"
    CSI_DRIVER = "CSIDriver"
    CAPACITY = "CSIStorageCapacity"
    ATTACHMENT = "VolumeAttachment"
    DEVICE_CLAIM = "ResourceClaim"
    SLICE = "ResourceSlice"
    DEVICE_CLASS = "DeviceClass"
    DEVICE_TAINTS = "ResourceSliceUpdate"  #: a rule that taints devices
    NAMESPACE = "Namespace"
    SELECTORS = "SelectorUpdate"  #: selectors of services and of controllers of pods
    OTHER = "OtherUpdate"  #: objects that no rule with hints reads
    ANYTHING = "AnyUpdate"


#: events of the waiting pod itself, which help no other pod
OWN = frozenset(kind for kind in EventKind if kind.name.startswith("OWN_"))


class ClusterEvent(Struct, frozen=True):
    what: EventKind
    node: str = ""
    pod: Task | None = None
    before: Vector | None = None  #: allocatable, or the request of a pod that shrank
    labels: Pairs | None = None  #: the labels that the pod had before
    old: Any = None  #: the object before it changed; None if it came
    new: Any = None  #: the object as it is now; None if it went

    @property
    def name(self) -> str:
        """Upstream's name in metrics."""
        if self.old is None and self.new is None:
            return self.what.value
        return f"{self.what.value}{'Add' if self.old is None else 'Delete' if self.new is None else 'Update'}"

    @property
    def key(self) -> str:
        """The object that came, changed or went, by "namespace/name"."""
        meta = (self.old if self.new is None else self.new).metadata
        return f"{meta.namespace}/{meta.name}"


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
    if before.status.declared_features != after.status.declared_features:
        found.append(ClusterEvent(EventKind.NODE_FEATURES, name))
    if (before.spec.taints, before.spec.unschedulable) != (after.spec.taints, after.spec.unschedulable):
        found.append(ClusterEvent(EventKind.NODE_TAINTS, name))
    return found


def of_own(task: Task, labels: Pairs, template: Template, claims: tuple[tuple[str, str], ...]) -> list[ClusterEvent]:
    """The events that follow from a new form of a waiting pod. It had these labels, this template and these claims before."""
    found = []
    if _lasting(task.template.spec) != _lasting(template.spec):
        found.append(ClusterEvent(EventKind.OWN_RENEWAL, pod=task))
    if task.labels != labels:
        found.append(ClusterEvent(EventKind.OWN_LABELS, pod=task, labels=labels))
    if task.template.spec.tolerations != template.spec.tolerations:
        found.append(ClusterEvent(EventKind.OWN_TOLERATIONS, pod=task))
    if (task.template.request < template.request).any():
        found.append(ClusterEvent(EventKind.OWN_SHRUNK, pod=task))
    if task.claims != claims:
        found.append(ClusterEvent(EventKind.OWN_CLAIMS, pod=task))
    return found or [ClusterEvent(EventKind.OWN_UPDATE, pod=task)]


def _lasting(spec: PodSpec) -> PodSpec:
    """The fields of a pod without gates that may not be changed."""
    return replace(spec, tolerations=None, containers=None, init_containers=None, resources=None)


QueueingHint = Callable[[Cluster, Task, ClusterEvent], bool]  #: whether a waiting pod should be tried again


def always(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return True


def unless_gone(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """An object that came or changed may help, one that went cannot."""
    return event.new is not None


def row_of(cluster: Cluster, event: ClusterEvent) -> int:
    return cluster.nodes.rows.get(event.node, -1)


def allows(cluster: Cluster, event: ClusterEvent, rule: Filter, task: Task) -> bool:
    """Whether the filter admits the pod to the event's node; False if the node is gone. True if the filter has nothing to say about the
    pod, for the profile may have configured it otherwise."""
    row, state = row_of(cluster, event), rule.prepare(task)
    if row < 0 or state is None:
        return row >= 0
    view = View(cluster.nodes, np.array([row]))
    return not any(refused.where[0] for refused in rule.refuse(state, view))
