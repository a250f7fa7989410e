"""Counts per row of the pods that selectors mean, for the groups of pods that some rule asked about.

A group is counted once when it is first asked for, from the pods that carry a label it needs, and kept from then on.

`PodCounts` has how often something stands on each row, and summed over domains: rows that share a label's value. Most things stand on few
rows, so counts are a mapping; one of many rows keeps an array beside it once sums are asked for.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from pumice.api.selectors import Requirement, Selector, matches
from pumice.scheduler.engine.view import Scores
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.index import Index
from pumice.scheduler.model.nodes import ABSENT, Codes, Nodes
from pumice.scheduler.model.resources import Mask
from pumice.scheduler.model.task import Task

FEW = 64  #: up to so many rows a loop over them is faster than an array of all


class PodCounts:
    __slots__ = ("_array", "_sums", "by_row")

    def __init__(self) -> None:
        self.by_row: dict[int, int] = {}  #: counts, never 0
        self._array: Scores | None = None
        self._sums: dict[str, tuple[Codes, Scores]] = {}  #: by label: the codes of rows, and by code the sums, with 0 for rows without one

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PodCounts) and self.by_row == other.by_row

    def __bool__(self) -> bool:
        return bool(self.by_row)

    def add(self, row: int, sign: int) -> None:
        count = self.by_row.get(row, 0) + sign
        if count:
            self.by_row[row] = count
        else:
            del self.by_row[row]
        if self._array is not None:
            if row < len(self._array):
                self._array[row] = count
            else:
                self._array = None
        for codes, sums in self._sums.values():
            if row < len(codes) and codes[row] != ABSENT:
                sums[codes[row]] += sign

    def array(self, rows: int) -> Scores:
        """The counts of all rows. Not to be changed."""
        if self._array is None or len(self._array) != rows:
            self._array = np.zeros(rows)
            for row, count in self.by_row.items():
                self._array[row] = count
        return self._array

    def present(self, rows: int) -> Mask:
        """Rows where it stands at all."""
        if len(self.by_row) > FEW:
            return self.array(rows) > 0
        mask = np.zeros(rows, bool)
        mask[list(self.by_row)] = True
        return mask

    def near(self, key: str, table: Nodes) -> Scores:
        """For every row, how many stand on rows with the same value of a label. Summed once; then who comes and goes is added."""
        codes, values = table.codes(key)
        known = self._sums.get(key)
        if known is None or known[0] is not codes:  # nodes or their labels are others
            known = self._sums[key] = codes, np.append(self.per_domain(codes, len(values)), 0.0)
        shown: Scores = known[1].take(codes)
        return shown

    def per_domain(self, codes: Codes, domains: int) -> Scores:
        """Sums by code; rows without one (negative) are left out."""
        if len(self.by_row) > FEW:
            return np.bincount(codes + 1, weights=self.array(len(codes)), minlength=domains + 1)[1:].astype(np.float64, copy=False)
        sums = np.zeros(domains + 1)
        for row, count in self.by_row.items():
            sums[codes[row]] += count
        return sums[:domains]


def shown_per_node(sums: Scores, codes: Codes) -> Scores:
    """For every row the value of its domain, 0 for one without."""
    spread: Scores = np.append(sums, 0.0).take(codes)
    return spread


# Which pods are meant by a term or constraint, and a register that finds what means a given pod without asking everything.
#
# A thing is filed under a label that every pod it means must carry, if its selector names any; so a pod is held only against the things
# filed under its own labels, and those that no label tells.

NOTHING: Selector = (Requirement("", "In", ()),)  #: an absent selector: it matches nothing

Thing = TypeVar("Thing", bound=Hashable)
Label = tuple[str, str]


class PodScope(Struct, frozen=True):
    """Pods of some namespaces (None: of all) whose labels satisfy a selector."""

    selector: Selector
    spaces: frozenset[str] | None

    def has(self, task: Task) -> bool:
        return self.means(task.namespace, task.labels)

    def means(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.spaces is None or namespace in self.spaces) and matches(self.selector, labels)


def anchors(scopes: Sequence[PodScope]) -> Iterator[tuple[Label, ...]]:
    """For each requirement that names values: the labels of which a pod in all scopes must carry one."""
    for scope in scopes:
        for requirement in scope.selector:
            if requirement.operator == "In":
                yield tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))


class LabelIndex(Generic[Thing]):
    """Things by the pods that they mean: those in all of their scopes."""

    def __init__(self) -> None:
        self._filed: dict[Thing, tuple[Label, ...] | None] = {}
        self._by_label: dict[Label, dict[Thing, Sequence[PodScope]]] = {}
        self._rest: dict[Thing, Sequence[PodScope]] = {}

    def __contains__(self, thing: Thing) -> bool:
        return thing in self._filed

    def add(self, thing: Thing, scopes: Sequence[PodScope]) -> None:
        """File it where the fewest others are."""
        labels = min(anchors(scopes), key=self._crowd, default=None)
        self._filed[thing] = labels
        if labels is None:
            self._rest[thing] = scopes
        for label in labels or ():
            self._by_label.setdefault(label, {})[thing] = scopes

    def _crowd(self, labels: tuple[Label, ...]) -> int:
        return sum(len(self._by_label.get(label, ())) for label in labels)

    def remove(self, thing: Thing) -> None:
        labels = self._filed.pop(thing)
        if labels is None:
            del self._rest[thing]
        for label in labels or ():
            del self._by_label[label][thing]
            if not self._by_label[label]:
                del self._by_label[label]

    def meaning(self, task: Task) -> Iterator[Thing]:
        """The things that mean this pod, each once."""
        for label in task.labels.items():
            for thing, scopes in self._by_label.get(label, {}).items():
                if all(scope.has(task) for scope in scopes):
                    yield thing
        for thing, scopes in self._rest.items():
            if all(scope.has(task) for scope in scopes):
                yield thing


MOST = 1024  #: groups kept; the one that was not asked for the longest time goes first


class CountedPods(Struct, frozen=True):
    """Pods that are in all of some scopes. `living`: those on their way out do not count."""

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
        self._by_label: dict[str, dict[str, dict[str, Task]]] = {}  #: key to value to the pods that stand somewhere, by uid

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


# Whom a trial has put onto rows, and whom it has taken away, where that is not seen in the counts.
#
# An empty selector of a spread constraint counts no pod that stands, and no constraint counts one that is on its way out; but
# kube-scheduler counts both when it adds them and takes them away in thought.


class Imagined(Index):
    """To be asked for outside of trials first."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._counts: dict[str, PodCounts] = {}
        self._leaving: dict[str, tuple[int, Task, int]] = {}

    def counts(self, namespace: str) -> PodCounts:
        """Of a namespace."""
        return self._counts.get(namespace) or PodCounts()

    def leaving(self, group: CountedPods) -> Iterator[tuple[int, int]]:
        """Of a group those on their way out: where, and whether they have come (1) or been taken away (-1)."""
        return ((row, sign) for row, task, sign in self._leaving.values() if all(scope.has(task) for scope in group.scopes))

    def change(self, row: int, task: Task, sign: int) -> None:
        if not self.cluster.imagined:
            return
        self._counts.setdefault(task.namespace, PodCounts()).add(row, sign)
        if terminating(task) and self._leaving.pop(task.uid, None) is None:
            self._leaving[task.uid] = row, task, sign
