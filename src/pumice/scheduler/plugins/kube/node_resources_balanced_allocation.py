"""NodeResourcesBalancedAllocation: prefer nodes where the pod evens out how much of each resource is used.

75 is neutral: above it, up to 100, the pod improves the balance; below it, down to 50, the pod worsens it. A pod that requests none of the
resources scores 0. Real requests count, without floors. `compare=False` gives the older score: the balance with the pod alone.
"""

from collections.abc import Sequence
from math import floor, sqrt
from typing import Any

import numpy as np

from pumice.api.problems import Path, Problems
from pumice.api.strict_decoding import Args
from pumice.scheduler.engine import MAX_SCORE, Reach, Scorer, Scores, View
from pumice.scheduler.engine.best_by_bounds import SLACK
from pumice.scheduler.engine.rules import Bound, Bounds
from pumice.scheduler.engine.view import at_most
from pumice.scheduler.model import CPU, MEMORY, Nodes, Table, Task, Template
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.node_resources_fit import CPU_AND_MEMORY, ResourceWeight
from pumice.scheduler.plugins.kube.resource_allocation import STORAGE

DEFAULT_RESOURCES = ("cpu", "memory")
MOST_APART = MAX_SCORE / 2  #: by how much the score falls if one of two resources is used up and the other is not used at all


class Counted:
    """What counts for a pod: the columns of resources, and what it requests of them; both in pairs, none if it requests nothing of them.
    Found out when a node is first scored."""

    __slots__ = ("_template", "_width", "amounts", "columns", "needs")

    def __init__(self, template: Template) -> None:
        self._template, self._width = template, -1

    def read(self, table: Nodes, resources: Sequence[str]) -> tuple[Sequence[int], Sequence[float]]:
        names = table.dimensions.names
        if self._width != len(names):
            request, columns = self._template.request.tolist(), table.dimensions.columns
            named = [(name, columns.get(name)) for name in resources]
            self.columns = tuple([c for name, c in named if c is not None and (c <= MEMORY or name == STORAGE or request[c] > 0)])
            self.amounts = [request[column] for column in self.columns]
            self.needs = [*zip(self.columns, self.amounts, strict=True)] if any(self.amounts) else []
            self._width = len(names)
        return self.columns, self.amounts


class BalancedAllocation(Scorer):
    name = "NodeResourcesBalancedAllocation"
    reach = Reach.NODE
    plannable = True

    def __init__(self, resources: tuple[str, ...] = DEFAULT_RESOURCES, weight: float = 1, *, compare: bool = True) -> None:
        self.resources = resources
        self.weight = weight
        self.compare = compare

    def prepare(self, task: Task) -> Counted:
        return Counted(task.template)

    def score(self, state: Any, nodes: View) -> Scores:
        counted, more = state.read(nodes.table, self.resources)
        if not any(more):
            return np.zeros(len(nodes))
        with_pod = _balance(nodes, counted, more)
        if not self.compare:
            return with_pod
        with_pod += nodes.whatever_task((self, counted), lambda rows: 150.0 - _balance(rows, counted, [0.0] * len(counted)))
        with_pod *= 0.5
        return np.floor(with_pod, out=with_pod)

    def score_one(self, state: Any, table: Nodes, row: int) -> float:
        state.read(table, self.resources)
        if not state.needs:
            return 0.0
        allocatable, used_for_filters = table.allocatable_cells, table.used_for_filters_cells
        parts, before = [], []
        for column, amount in state.needs:
            has, used = allocatable[column][row], used_for_filters[column][row]
            if not has:
                return super().score_one(state, table, row)
            parts.append(part if (part := (used + amount) / has) < 1.0 else 1.0)
            before.append(part if (part := used / has) < 1.0 else 1.0)
        with_pod = _evenness_of(parts)
        return floor((with_pod + 150.0 - _evenness_of(before)) * 0.5) if self.compare else with_pod

    def bounds(self, table: Nodes) -> Bounds | None:
        others = [table.dimensions.columns.get(name) for name in self.resources if name not in DEFAULT_RESOURCES]
        is_plain = self.compare and {*DEFAULT_RESOURCES} <= {*self.resources} and STORAGE not in self.resources
        if not is_plain or not (table.least(CPU) > 0 and table.least(MEMORY) > 0):
            return None
        return BalanceBounds(table, [column for column in others if column is not None])


class BalanceBounds(Bounds):
    """The bounds of the score for pods that request cpu and memory only."""

    def __init__(self, table: Nodes, others: Sequence[int]) -> None:
        self._table = table
        self._others = others
        self._part = (MOST_APART / table.allocatable[: MEMORY + 1]).astype(np.float32)  #: what one more unit adds to the used part
        self._used = np.empty_like(self._part)  #: the used part of each resource, scaled to MOST_APART
        self._before = np.empty_like(self._part[0])  #: the term of the balance without the pod: larger where that is less even
        self.update()

    def update(self, rows: int | slice = slice(None)) -> None:
        used, capacity = self._table.used_for_filters, self._table.allocatable
        parts = [used[resource, rows] / capacity[resource, rows] for resource in (CPU, MEMORY)]  # for a single row these are numbers
        for resource, part in enumerate(parts):
            self._used[resource, rows] = MOST_APART * part
        self._before[rows] = 150.0 - _evenness(_deviation([at_most(part, 1.0) for part in parts]))

    def of(self, template: Template) -> Bound | None:
        cpu, memory = template.request[: MEMORY + 1].tolist()
        if not (cpu or memory) or any(template.request[column] > 0 for column in self._others):
            return None
        full = self._part * np.array([[cpu], [memory]], np.float32)
        full += self._used
        at_most(full.reshape(-1), MOST_APART)
        evenness = full[:1]
        evenness -= full[1:]
        np.abs(evenness, out=evenness)
        np.subtract(MAX_SCORE + SLACK, evenness, out=evenness)
        most = np.floor(evenness[0])
        most += self._before
        most *= 0.5
        return Bound(np.floor(most, out=most), evenness)


def _balance(nodes: View, columns: Sequence[int], more: Sequence[float]) -> Scores:
    """The balance of each node with `more` added: 100 where all resources are used to the same part."""
    everywhere = all(map(nodes.have_all, columns))
    fraction = _fraction if everywhere else _fraction_if_any
    used, allocatable = nodes.used_for_filters, nodes.allocatable
    parts = [fraction(used[column] + amount, allocatable[column]) for column, amount in zip(columns, more, strict=True)]
    return _evenness(_deviation(parts) if everywhere else _deviation_of_some(parts))


def _evenness(deviation: Scores) -> Scores:
    balance = 1.0 - deviation
    balance *= MAX_SCORE
    floored: Scores = np.floor(balance)
    return floored


def _evenness_of(parts: Sequence[float]) -> float:
    """The balance of one node, of whose resources these parts are used."""
    count = len(parts)
    if count == 2:
        deviation = abs(parts[0] - parts[1]) * 0.5
    else:
        mean = spread = 0.0
        for part in parts:
            mean += part
        mean /= count
        for part in parts:
            part -= mean
            spread += part * part
        deviation = sqrt(spread / count)
    return floor((1.0 - deviation) * MAX_SCORE)


def _fraction(used: Scores, has: Scores) -> Scores:
    """The used part of a resource, at most 1. Overwrites `used`."""
    used /= has
    return at_most(used, 1.0)


def _fraction_if_any(used: Scores, has: Scores) -> Scores:
    """The used part of a resource, at most 1; NaN on nodes that do not have the resource."""
    part: Scores = np.divide(used, has, out=np.full_like(has, np.nan), where=has > 0)
    return np.minimum(part, 1.0)


def _deviation(parts: Sequence[Scores] | Table) -> Scores:
    """The standard deviation of the used parts per node; of two parts that is half their difference."""
    if len(parts) == 2:
        half: Scores = abs(parts[0] - parts[1]) * 0.5
        return half
    apart = np.array(parts)
    apart -= np.add.reduce(apart) / len(parts)
    apart *= apart
    spread: Scores = np.add.reduce(apart)
    spread /= len(parts)
    deviation: Scores = np.sqrt(spread)
    return deviation


def _deviation_of_some(parts: list[Scores]) -> Scores:
    """The standard deviation of the parts that are not NaN, per node; 0 where fewer than two are."""
    fractions = np.array(parts)
    there = ~np.isnan(fractions)
    count = there.sum(axis=0)
    values = np.where(there, fractions, 0.0)
    mean = values.sum(axis=0) / np.maximum(count, 1)
    spread = np.where(there, (values - mean) ** 2, 0.0).sum(axis=0)
    deviation = np.sqrt(spread / np.maximum(count, 1))
    pair = np.abs(np.nanmax(np.where(there, fractions, -np.inf), axis=0) - np.nanmin(np.where(there, fractions, np.inf), axis=0)) / 2
    result: Scores = np.where(count < 2, 0.0, np.where(count == 2, pair, deviation))
    return result


class BalancedArgs(Args, frozen=True):
    resources: list[ResourceWeight] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(resource.name for resource in self.resources or CPU_AND_MEMORY)

    def check(self, path: Path, problems: Problems) -> None:
        seen: set[str] = set()
        for index, resource in enumerate(self.resources or ()):
            if resource.counted != 1:
                problems.invalid((*path, "resources", index, "weight"), resource.weight, "must be 1")
            if resource.name in seen:
                problems.duplicate((*path, "resources", index, "name"), resource.name)
            seen.add(resource.name)


PLUGIN = KubePlugin(
    "NodeResourcesBalancedAllocation",
    "preScore score",
    weight=1,
    args=BalancedArgs,
    scorer=lambda args, cluster: BalancedAllocation(args.names),
)
