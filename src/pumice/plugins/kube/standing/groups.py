"""Counts per row of the pods that selectors mean, for the groups of pods that some rule asked about.

A group is counted once when it is first asked for, from the pods that carry a label it needs, and kept from then on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pumice.model import status
from pumice.model.cluster import Cluster
from pumice.model.index import Index
from pumice.model.task import Task
from pumice.plugins.kube.standing.row_counts import RowCounts
from pumice.plugins.kube.standing.scope import Register, Scope, anchors

MOST = 1024  #: groups kept; the one that was not asked for the longest time goes first


class Group(NamedTuple):
    """Pods that are in all of some scopes. `living`: those on their way out do not count."""

    scopes: tuple[Scope, ...]
    living: bool = False

    def has(self, task: Task) -> bool:
        if self.living and terminating(task):
            return False
        return all(scope.has(task) for scope in self.scopes)


def terminating(task: Task) -> bool:
    return task.deleting or task.status == status.RELEASING


class Groups(Index):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._register: Register[Group] = Register()
        self._counts: dict[Group, RowCounts] = {}
        self._by_label: dict[str, dict[str, dict[str, Task]]] = {}  #: key to value to the pods that stand somewhere, by uid

    def counts(self, group: Group) -> RowCounts:
        counts = self._counts.pop(group, None)
        if counts is None:
            counts = self._count(group)
        self._counts[group] = counts
        return counts

    def change(self, row: int, task: Task, sign: int) -> None:
        for key, by_value in self._by_label.items():
            value = task.labels.get(key)
            if value is None:
                continue
            if sign > 0:
                by_value.setdefault(value, {})[task.uid] = task
            else:
                del by_value[value][task.uid]
        leaving = terminating(task)
        for group in self._register.meaning(task):
            if not (group.living and leaving):
                self._counts[group].add(row, sign)

    def agrees(self, recount: Groups) -> bool:
        return all(counts == recount.counts(group) for group, counts in self._counts.items())

    def _count(self, group: Group) -> RowCounts:
        if len(self._counts) >= MOST:
            oldest = next(iter(self._counts))
            self._register.remove(oldest)
            del self._counts[oldest]
        counts = RowCounts()
        for task in self._candidates(group):
            if group.has(task):
                counts.add(task.node, 1)
        self._register.add(group, group.scopes)
        return counts

    def _candidates(self, group: Group) -> Iterable[Task]:
        """The pods among which the group's must be."""
        labels = next(anchors(group.scopes), None)
        if labels is None:
            return self.cluster.existing()
        if not labels:
            return ()
        by_value = self._labelled(labels[0][0])
        return (task for _, value in labels for task in by_value.get(value, {}).values())

    def _labelled(self, key: str) -> dict[str, dict[str, Task]]:
        known = self._by_label.get(key)
        if known is None:
            known = self._by_label[key] = {}
            for task in self.cluster.existing():
                value = task.labels.get(key)
                if value is not None:
                    known.setdefault(value, {})[task.uid] = task
        return known
