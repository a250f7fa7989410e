"""nodegroup: queues keep to groups of nodes.

Nodes name their group in a label; a queue's spec.affinity says which groups it must or may use and which it must not. Strictly, a
queue without affinity uses no grouped nodes and one with affinity none without group; `strict: false` lets the former use nodes
without a group. A queue may also limit, in an annotation, what its tasks hold of each group. With the switch enableHierarchy a
queue without affinity has that of its nearest ancestor.
"""

from collections.abc import Hashable, Sequence
from functools import cache
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct, field

from pumice.api.annotations import NODE_GROUP, NODE_GROUP_LIMITS
from pumice.api.quantity import QuantityError, quantity
from pumice.api.volcano import QueueAffinity
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rejected, Scorer, Scores, View
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, Mask, Queue, Task, Vector, status

OUTSIDE = Reason("node(s) were in no node group of the queue", final=True)
EXHAUSTED = Reason("node(s) were in a node group of which the queue holds all it may", final=True)
UNREADABLE = Reason(f"the queue's annotation {NODE_GROUP_LIMITS} cannot be read", final=True)

REQUIRED_SCORE, PREFERRED_SCORE, AVOIDED_SCORE = 100.0, 50.0, -1.0


class NodeGroupArgs(Struct):
    strict: bool = True
    preferred_order: bool = field(name="enablePreferredOrder", default=False)


class AffinityGroups:
    """A queue's affinity, as sets of group names."""

    def __init__(self, affinity: QueueAffinity) -> None:
        near, far = affinity.node_group_affinity, affinity.node_group_anti_affinity
        self.required = tuple((near and near.required) or ())
        self.preferred = tuple((near and near.preferred) or ())
        self.banned = tuple((far and far.required) or ())
        self.avoided = tuple((far and far.preferred) or ())

    def __bool__(self) -> bool:
        return bool(self.required or self.preferred or self.banned or self.avoided)

    def admit(self, group: str) -> bool:
        """Whether the queue's pods may use the group: it is named and not banned. A group in several lists: avoided outweighs banned, and
        banned outweighs required and preferred."""
        return group in self.avoided or (group not in self.banned and (group in self.required or group in self.preferred))

    def score(self, group: str, ordered: bool) -> float:
        if group in self.avoided:
            return AVOIDED_SCORE
        score = REQUIRED_SCORE if group in self.required else 0.0
        if group in self.preferred:
            count = len(self.preferred)
            score += PREFERRED_SCORE * ((count - self.preferred.index(group)) / count if ordered else 1.0)
        return score


class NodeGroup(Plugin):
    name = "nodegroup"
    reads_only_state = True
    Args = NodeGroupArgs

    def open(self, session: Session) -> None:
        super().open(session)
        self.groups_of = cache(self._find_groups)
        self.limits_of = cache(self._read_limits)
        self._held: dict[str, dict[str, Vector]] = {}  #: what queues hold, by queue and group; only of queues with limits, once asked for
        self._placed: dict[str, str] = {}  #: the group in which a task is counted, by its uid

    def filters(self) -> list[Filter]:
        return [GroupFilter(self), LimitFilter(self)]

    def scorers(self) -> list[Scorer]:
        return [GroupScorer(self)]

    def _find_groups(self, queue: Queue) -> AffinityGroups | None:
        seen = set()
        while queue.name not in seen:
            seen.add(queue.name)
            affinity = queue.wire.spec.affinity if queue.wire else None
            if affinity is not None:
                return AffinityGroups(affinity)
            parent = self.session.cluster.queues.get(queue.parent) if self.hierarchy else None
            if parent is None:
                return None
            queue = parent
        return None

    def _read_limits(self, queue: Queue) -> dict[str, dict[int, float]] | None:
        """A queue's limits by group, as column to amount; None if the annotation cannot be read."""
        text = queue.annotations.get(NODE_GROUP_LIMITS)
        if not text:
            return {}
        try:
            given = msgspec.json.decode(text, type=dict[str, dict[str, str | int | float]])
            return {group: self._amounts(limits) for group, limits in given.items()}
        except (msgspec.DecodeError, QuantityError):
            return None

    def _amounts(self, limits: dict[str, str | int | float]) -> dict[int, float]:
        """The limits by column. A resource that no object has named yet is left out: its limit cannot be exceeded."""
        dimensions = self.session.cluster.dimensions
        return dimensions.amounts({name: quantity(value) for name, value in limits.items() if name in dimensions.columns})

    # -- what a queue with limits holds of each group

    def held(self, queue: Queue) -> dict[str, Vector]:
        if queue.name not in self._held:
            self._held[queue.name] = {}
            for job in queue.jobs.values():
                for task in job.tasks.values():
                    if task.status & status.HELD:
                        self._count(queue, task)
        return self._held[queue.name]

    def on_allocate(self, task: Task) -> None:
        queue = task.job.queue if task.job else None
        if queue is not None and queue.name in self._held:
            self._count(queue, task)

    def on_deallocate(self, task: Task) -> None:
        group = self._placed.pop(task.uid, None)
        if group is not None:
            assert task.job is not None and task.job.queue is not None
            self._held[task.job.queue.name][group] -= task.template.request

    def _count(self, queue: Queue, task: Task) -> None:
        group = self.session.nodes.labels(task.node).get(NODE_GROUP) if task.node >= 0 else None
        if group:
            held = self._held[queue.name]
            held[group] = held.get(group, 0.0) + task.template.request
            self._placed[task.uid] = group


class _OfQueue:
    """A rule whose answer depends on the task's queue."""

    def __init__(self, plugin: NodeGroup) -> None:
        self.plugin = plugin

    def key(self, task: Task) -> Hashable:
        return task.job.queue.name if task.job and task.job.queue else None


class GroupFilter(_OfQueue, Filter):
    """Refuses nodes outside the queue's groups: all nodes if it has none, or all nodes with a group if the plugin is not strict."""

    name = "nodegroup"
    reach = Reach.STATIC

    def prepare(self, task: Task) -> Any:
        queue = task.job.queue if task.job else None
        if queue is None:
            return None
        if self.plugin.limits_of(queue) is None:
            return Rejected(UNREADABLE)
        return (self.plugin.groups_of(queue),)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        groups: AffinityGroups | None = state[0]
        without = not groups and not self.plugin.args.strict
        return [Refused(~_by_group(nodes, lambda name: bool(groups) and groups.admit(name), without), OUTSIDE)]  # type: ignore[union-attr]


class LimitFilter(_OfQueue, Filter):
    """Refuses nodes of groups of which the queue would hold more than its limit."""

    name = "nodegroup"
    reach = Reach.CLUSTER

    def prepare(self, task: Task) -> Any:
        queue = task.job.queue if task.job else None
        limits = self.plugin.limits_of(queue) if queue else None
        return (queue, limits, task.template.request) if limits else None

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        queue, limits, request = state
        held = self.plugin.held(queue)

        def exhausted(group: str) -> bool:
            after = held.get(group, 0.0) + request
            return any(after[column] >= limit + EPSILON for column, limit in limits.get(group, {}).items())

        return [Refused(_by_group(nodes, exhausted, False), EXHAUSTED)]


class GroupScorer(_OfQueue, Scorer):
    """The score of a node's group by the queue's affinity."""

    name = "nodegroup"
    reach = Reach.STATIC

    def prepare(self, task: Task) -> Any:
        queue = task.job.queue if task.job else None
        return self.plugin.groups_of(queue) if queue else None

    def score(self, groups: Any, nodes: View) -> Scores:
        codes, names = nodes.codes(NODE_GROUP)
        ordered = self.plugin.args.preferred_order
        return np.array([*(groups.score(name, ordered) if name else 0.0 for name in names), 0.0])[codes]


def _by_group(nodes: View, verdict: Any, without: bool) -> Mask:
    """The verdict on each node by its group. `without`: the verdict on nodes in no group."""
    codes, names = nodes.codes(NODE_GROUP)
    mask: Mask = np.array([*(verdict(name) if name else without for name in names), without], bool)[codes]
    return mask
