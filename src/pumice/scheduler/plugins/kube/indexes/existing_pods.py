"""Counts per row of the pods that selectors select, for each group of pods that a rule needs.

A group is counted once, when it is first needed, from the pods with a label that it requires; from then on it is kept up to date.

`PodCounts` are counts per row, and their sums per domain (the rows that share a label's value). Most counts concern few rows, so they are a
mapping; counts over many rows keep an array beside it once sums are needed.

Which pods a term or constraint selects, and an index that finds what selects a given pod without a look at everything.

A thing is filed under a label that each pod it selects must have, if its selector names one. So a pod is compared only with the things
that are filed under its own labels, and with those that are filed under none.

The pods that a dry run has put onto rows or removed, where the counts do not show it.

A spread constraint with an empty selector counts no existing pod, and no constraint counts a terminating pod; but kube-scheduler counts
both when a dry run adds or removes them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np
from msgspec import Struct

from pumice.api.selectors import Requirement, Selector, matches
from pumice.scheduler.engine import Scores
from pumice.scheduler.model import ABSENT, Cluster, Codes, Index, Mask, Nodes, Task, status

FEW = 64  #: up to this number of rows a loop is faster than an array of all rows


class PodCounts:
    __slots__ = ("_array", "_sums", "by_row")

    def __init__(self) -> None:
        self.by_row: dict[int, int] = {}  #: counts, never 0
        self._array: Scores | None = None
        self._sums: dict[str, tuple[Codes, Scores]] = {}  #: by label key: codes of rows, sums by code; the last is 0, for rows without it

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
        """The counts of all rows. The caller must not change the array."""
        if self._array is None or len(self._array) != rows:
            self._array = np.zeros(rows)
            for row, count in self.by_row.items():
                self._array[row] = count
        return self._array

    def present(self, rows: int) -> Mask:
        """The rows whose count is not 0."""
        if len(self.by_row) > FEW:
            return self.array(rows) > 0
        mask = np.zeros(rows, bool)
        mask[list(self.by_row)] = True
        return mask

    def near(self, key: str, table: Nodes) -> Scores:
        """For every row, the sum of the counts on rows with the same value of a label. It is summed once; later changes are added."""
        codes, values = table.codes(key)
        known = self._sums.get(key)
        if known is None or known[0] is not codes:  # nodes or their labels have changed
            known = self._sums[key] = codes, np.append(self.per_domain(codes, len(values)), 0.0)
        shown: Scores = known[1].take(codes)
        return shown

    def per_domain(self, codes: Codes, domains: int) -> Scores:
        """The sums of the counts by code. Rows without a code (a negative one) are left out."""
        if len(self.by_row) > FEW:
            return np.bincount(codes + 1, weights=self.array(len(codes)), minlength=domains + 1)[1:].astype(np.float64, copy=False)
        sums = np.zeros(domains + 1)
        for row, count in self.by_row.items():
            sums[codes[row]] += count
        return sums[:domains]


def shown_per_node(sums: Scores, codes: Codes) -> Scores:
    """For every row the value of its domain; 0 for a row without a domain."""
    spread: Scores = np.append(sums, 0.0).take(codes)
    return spread


NOTHING: Selector = (Requirement("", "In", ()),)  #: an absent selector, which matches no pod

Thing = TypeVar("Thing", bound=Hashable)
Label = tuple[str, str]


class PodScope(Struct, frozen=True):
    """The pods of some namespaces (None: of all namespaces) whose labels satisfy a selector."""

    selector: Selector
    spaces: frozenset[str] | None

    def has(self, task: Task) -> bool:
        return self.means(task.namespace, task.labels)

    def means(self, namespace: str, labels: Mapping[str, str]) -> bool:
        return (self.spaces is None or namespace in self.spaces) and matches(self.selector, labels)


def anchors(scopes: Sequence[PodScope]) -> Iterator[tuple[Label, ...]]:
    """For each requirement that names values: its labels, of which a pod in all scopes must have one."""
    for scope in scopes:
        for requirement in scope.selector:
            if requirement.operator == "In":
                yield tuple((requirement.key, value) for value in dict.fromkeys(requirement.values))


class LabelIndex(Generic[Thing]):
    """Things by the pods that they select: the pods in all of their scopes."""

    def __init__(self) -> None:
        self._filed: dict[Thing, tuple[Label, ...] | None] = {}
        self._by_label: dict[Label, dict[Thing, Sequence[PodScope]]] = {}
        self._rest: dict[Thing, Sequence[PodScope]] = {}

    def __contains__(self, thing: Thing) -> bool:
        return thing in self._filed

    def add(self, thing: Thing, scopes: Sequence[PodScope]) -> None:
        """File a thing under the labels that have the fewest things."""
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
        """The things that select this pod, each once."""
        for label in task.labels.items():
            for thing, scopes in self._by_label.get(label, {}).items():
                if all(scope.has(task) for scope in scopes):
                    yield thing
        for thing, scopes in self._rest.items():
            if all(scope.has(task) for scope in scopes):
                yield thing


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


class Imagined(Index):
    """Must be asked for once outside a dry run before it is used in one."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._counts: dict[str, PodCounts] = {}
        self._leaving: dict[str, tuple[int, Task, int]] = {}

    def counts(self, namespace: str) -> PodCounts:
        return self._counts.get(namespace) or PodCounts()

    def leaving(self, group: CountedPods) -> Iterator[tuple[int, int]]:
        """The terminating pods of a group: the row of each, and 1 if the dry run has added it, -1 if it has removed it."""
        return ((row, sign) for row, task, sign in self._leaving.values() if all(scope.has(task) for scope in group.scopes))

    def change(self, row: int, task: Task, sign: int) -> None:
        if not self.cluster.imagined:
            return
        self._counts.setdefault(task.namespace, PodCounts()).add(row, sign)
        if terminating(task) and self._leaving.pop(task.uid, None) is None:
            self._leaving[task.uid] = row, task, sign
