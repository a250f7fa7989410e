"""Counts per row of the pods that selectors select, for each group of pods that a rule needs.

A group is counted once, when it is first needed, from the pods with a label that it requires; from then on it is kept up to date.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from pumice.scheduler.model import Cluster, Index, Task, status
from pumice.scheduler.plugins.kube.indexes.label_index import LabelIndex, PodScope, anchors
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts

MOST = 1024  #: the most groups that are kept; the least recently used group goes first


class CountedPods(Struct, frozen=True):
    """The pods that are in all of these scopes. `living`: terminating pods do not count."""

    scopes: tuple[PodScope, ...]
    living: bool = False

    def has(self, task: Task) -> bool:
        if self.living and terminating(task):
            return False
        return all(scope.has(task) for scope in self.scopes)


def terminating(task: Task) -> bool:
    return task.deleting or task.status == status.RELEASING


class ExistingPods(Index):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._register: LabelIndex[CountedPods] = LabelIndex()
        self._counts: dict[CountedPods, PodCounts] = {}
        self._by_label: dict[str, dict[str, dict[str, Task]]] = {}  #: from label key and value to the pods on nodes, by uid

    def counts(self, group: CountedPods) -> PodCounts:
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
                if not by_value[value]:
                    del by_value[value]
        leaving = terminating(task)
        for group in self._register.meaning(task):
            if not (group.living and leaving):
                self._counts[group].add(row, sign)

    def agrees(self, recount: ExistingPods) -> bool:
        return all(counts == recount.counts(group) for group, counts in self._counts.items())

    def _count(self, group: CountedPods) -> PodCounts:
        if len(self._counts) >= MOST:
            oldest = next(iter(self._counts))
            self._register.remove(oldest)
            del self._counts[oldest]
        counts = PodCounts()
        for task in self._candidates(group):
            if group.has(task):
                counts.add(task.node, 1)
        self._register.add(group, group.scopes)
        return counts

    def _candidates(self, group: CountedPods) -> Iterable[Task]:
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
