"""Kubernetes' own groups of pods: PodGroups, and trees of CompositePodGroups with PodGroups as leaves.

`Groups` resolves the objects as they are now. The unit that is tried is a root with all pending members of its leaves (`GroupEntity`). A
PodGroup that is missing, or whose chain of parents is incomplete or circular, has no root: its pods wait for the objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pumice.api.kinds import COMPOSITE_POD_GROUP, NATIVE_POD_GROUP
from pumice.api.kube_pod_groups import SCHEDULED, CompositePodGroup, NativePodGroup
from pumice.api.meta import Condition
from pumice.scheduler.framework.feature_gates import Release
from pumice.scheduler.model import Cluster, Task, status

LEAF, COMPOSITE = "podgroup", "compositepodgroup"  #: the two types, as messages name them


@dataclass(eq=False)
class NativeGroup:
    """A PodGroup or a CompositePodGroup. `key`: "namespace/name"."""

    key: str
    wire: NativePodGroup | CompositePodGroup
    parent: NativeGroup | None = None
    children: list[NativeGroup] = field(default_factory=list)  #: in the order in which they are tried

    @property
    def kind(self) -> str:
        return LEAF if isinstance(self.wire, NativePodGroup) else COMPOSITE

    @property
    def uid(self) -> str:
        """A name that is unique among groups of both types and pods."""
        return f"{self.kind} {self.key}"

    @property
    def minimum(self) -> int:
        """How many members, or children, must be placed together."""
        wire = self.wire
        if isinstance(wire, NativePodGroup):
            return wire.spec.scheduling_policy.gang.min_count if wire.spec.scheduling_policy.gang else 1
        return wire.spec.scheduling_policy.gang.min_group_count if wire.spec.scheduling_policy.gang else 1

    @property
    def priority(self) -> int:
        return self.wire.spec.priority or 0

    @property
    def topology_key(self) -> str:
        """The node label by whose values its placements are made; empty for none."""
        constraints = self.wire.spec.scheduling_constraints
        return constraints.topology[0].key if constraints and constraints.topology else ""

    @property
    def goes_whole(self) -> bool:
        """Whether all its members are evicted together (disruption mode `all`)."""
        mode = self.wire.spec.disruption_mode
        return mode is not None and mode.whole is not None

    @property
    def condition(self) -> Condition | None:
        """The condition of a PodGroup that says whether it has been scheduled."""
        wire = self.wire
        found = wire.status.conditions if isinstance(wire, NativePodGroup) else None
        return next((each for each in found or () if each.type == SCHEDULED), None)

    @property
    def leaves(self) -> Iterator[NativeGroup]:
        """The PodGroups of its tree, in order; a PodGroup itself."""
        if self.kind == LEAF:
            yield self
        for child in self.children:
            yield from child.leaves

    def below(self, levels: int) -> NativeGroup | None:
        """The first group that is so many levels below it, in order; None if its tree is not so deep."""
        if levels == 0:
            return self
        return next((found for child in self.children if (found := child.below(levels - 1)) is not None), None)

    @property
    def ancestry(self) -> Iterator[NativeGroup]:
        """It and all groups above it."""
        yield self
        if self.parent is not None:
            yield from self.parent.ancestry


class Groups:
    """The groups of a cluster, resolved when they are asked for. They hold until an object of theirs changes."""

    def __init__(self, cluster: Cluster, release: Release) -> None:
        self._cluster = cluster
        self._nested = release.has("CompositePodGroup")
        self._known: dict[tuple[str, str], NativeGroup] = {}
        self._children: dict[str, list[NativeGroup]] | None = None
        self._roots: dict[str, NativeGroup | None] = {}

    def leaf(self, key: str) -> NativeGroup | None:
        """The PodGroup of this key, whether or not its parents exist."""
        return self._group(NATIVE_POD_GROUP, key)

    def root_of(self, leaf_key: str) -> NativeGroup | None:
        """The root of the tree that a PodGroup is in; None if a part of the way to it is missing."""
        if leaf_key not in self._roots:
            leaf = self.leaf(leaf_key)
            self._roots[leaf_key] = self._climb(leaf) if leaf is not None else None
        return self._roots[leaf_key]

    def _climb(self, group: NativeGroup) -> NativeGroup | None:
        met: set[int] = set()
        while (parent_key := self._parent_key(group)) is not None:
            met.add(id(group))
            parent = self._group(COMPOSITE_POD_GROUP, parent_key)
            if parent is None or id(parent) in met:
                return None
            group = parent
        self._link(group)
        return group

    def _link(self, group: NativeGroup) -> None:
        """Fill in the children of a group and of those below it."""
        if group.kind == COMPOSITE and not group.children:
            group.children = sorted(self._children_of(group.key), key=lambda each: (each.wire.metadata.created, each.wire.metadata.name))
            for child in group.children:
                child.parent = group
                self._link(child)

    def _parent_key(self, group: NativeGroup) -> str | None:
        name = group.wire.spec.parent_composite_pod_group_name
        return f"{group.key.partition('/')[0]}/{name}" if name and self._nested else None

    def _group(self, kind: str, key: str) -> NativeGroup | None:
        found = self._known.get((kind, key))
        if found is None and (wire := self._cluster.of(kind).get(key)) is not None:
            found = self._known[kind, key] = NativeGroup(key, wire)
        return found

    def _children_of(self, key: str) -> list[NativeGroup]:
        if self._children is None:
            self._children = {}
            for kind in (NATIVE_POD_GROUP, COMPOSITE_POD_GROUP):
                for each in self._cluster.of(kind):
                    group = self._group(kind, each)
                    parent_key = self._parent_key(group) if group is not None else None
                    if group is not None and parent_key is not None:
                        self._children.setdefault(parent_key, []).append(group)
        return self._children.get(key, [])

    # -- members

    def known(self, leaf: NativeGroup, schedulers: Mapping[str, object]) -> int:
        """The number of members that count before the group is tried: those on nodes, and pending ones whose schedulerName is ours."""
        members = self._cluster.members.get(leaf.key, {}).values()
        return sum(not t.status & status.FINISHED and bool(t.node_name or t.template.scheduler_name in schedulers) for t in members)

    def scheduled(self, group: NativeGroup) -> list[Task]:
        """The members of a group, or of its tree, that have a node."""
        return [task for leaf in group.leaves for task in self._cluster.members.get(leaf.key, {}).values() if holds_node(task)]


def holds_node(task: Task) -> bool:
    return bool(task.node_name) and not task.status & status.FINISHED


@dataclass
class GroupEntity:
    """A root group with its pending members: the unit that waits in the scheduling queue, and that is tried."""

    root: NativeGroup
    members: dict[str, list[Task]]  #: by the key of the leaf

    @property
    def uid(self) -> str:
        return self.root.uid

    @property
    def tasks(self) -> Sequence[Task]:
        """All its pending members, leaf by leaf."""
        return [task for leaf in self.root.leaves for task in self.members.get(leaf.key, ())]
