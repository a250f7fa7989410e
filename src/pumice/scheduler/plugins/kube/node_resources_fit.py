"""NodeResourcesFit: does the request fit, and how well: LeastAllocated, MostAllocated, RequestedToCapacityRatio.

cpu and memory count in scores as `Template.scoring_cpu`, `newcomer_cpu` and their like: a container that names none counts a little.
A scalar resource that the pod does not ask for, or any that a node does not have, is left out for it.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache, reduce
from math import floor
from typing import Any

import numpy as np

from pumice.api.problems import Path, Problems, qualified_name_fault
from pumice.api.strict_decoding import Args, Conf
from pumice.scheduler.engine import MAX_SCORE, Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.engine.bounds import SLACK
from pumice.scheduler.engine.rules import Bound, Bounds, weighted
from pumice.scheduler.engine.view import at_least
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always, row_of
from pumice.scheduler.model import CPU, MEMORY, PODS, Cluster, Nodes, Task, Template
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.devices.claims import AFTER_CLASS, classes_by_resource

DEFAULT_RESOURCES = {"cpu": 1, "memory": 1}
STORAGE = "ephemeral-storage"  #: upstream does not treat it as a scalar resource


TOO_MANY_PODS = Reason("Too many pods")


@cache
def insufficient(name: str, *, final: bool = False) -> Reason:
    return Reason(f"Insufficient {name}", final=final)


class FitFilter(Filter):
    """Compares requests exactly with what is free. A request for more than the node's allocatable is refused for good."""

    name = "NodeResourcesFit"
    reach = Reach.NODE
    plannable = True
    reports_all = True

    def __init__(
        self, ignored: frozenset[str] = frozenset(), ignored_groups: frozenset[str] = frozenset(), served: Collection[str] = ()
    ) -> None:
        """`served`: extended resources that device classes serve on nodes that do not have them."""
        self.ignored, self.ignored_groups = ignored, ignored_groups
        self.served = served

    def prepare(self, task: Task) -> Any:
        return task.template

    def refuse(self, template: Any, nodes: View) -> Sequence[Refused]:
        table = nodes.table
        refusals = [Refused(nodes.idle[PODS] < 1, TOO_MANY_PODS)]
        for column, amount in template.needs:
            name = table.dimensions.names[column]
            if column == PODS or self.ignores(name):
                continue
            short = nodes.idle[column] < amount
            has = nodes.allocatable[column]
            if name in self.served:
                short &= has > 0
            if amount > table.least(column):
                never = short & (amount > has)
                refusals.append(Refused(never, insufficient(name, final=True)))
                short &= ~never
            refusals.append(Refused(short, insufficient(name)))
        return refusals

    def may_lack(self, name: str) -> bool:
        """Whether a node may take the pod although it has too little of this resource."""
        return self.ignores(name) or name in self.served

    def ignores(self, name: str) -> bool:
        group = name.partition("/")[0]
        extended = "/" in name and not group.endswith("kubernetes.io")
        return extended and (name in self.ignored or group in self.ignored_groups)


class ResourceScorer(Scorer):
    """The base of the strategies: a score of 0..100 per resource, combined by weight."""

    name = "NodeResourcesFit"
    reach = Reach.NODE
    plannable = True

    def __init__(self, resources: dict[str, int] | None = None, weight: float = 1) -> None:
        self.resources = resources or DEFAULT_RESOURCES
        self.weight = weight

    def prepare(self, task: Task) -> Any:
        return task.template

    def demands(self, template: Any, nodes: View) -> Iterator[tuple[int, int, Scores]]:
        """Column, weight and requested amounts of each resource that counts for this pod."""
        for name, weight in self.resources.items():
            column = nodes.column(name)
            if column == CPU:
                yield CPU, weight, nodes.nonzero_used[CPU] + template.newcomer_cpu
            elif column == MEMORY:
                yield MEMORY, weight, nodes.nonzero_used[MEMORY] + template.newcomer_memory
            elif column is not None and (template.request[column] > 0 or name == STORAGE):
                yield column, weight, nodes.used_for_filters[column] + template.request[column]

    def score(self, template: Any, nodes: View) -> Scores:
        rates: list[Scores] = []
        weights: Any = 0.0  #: one number for all nodes, or an array where some nodes lack a resource
        for column, weight, requested in self.demands(template, nodes):
            capacity = nodes.allocatable[column]
            if nodes.have_all(column):
                rates.append(weighted(self.rate(requested, capacity), weight))
                weights = weights + weight
            else:
                has = capacity > 0
                rates.append(np.where(has, self.rate(requested, np.where(has, capacity, 1.0)), 0.0) * weight)
                weights = weights + has * weight
        if isinstance(weights, np.ndarray):
            weights[weights == 0] = 1.0
        else:
            weights = weights or 1.0
        total = reduce(np.add, rates) if rates else np.zeros(len(nodes))
        total /= weights
        return np.floor(total, out=total)

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        """The scores of 0..100 for one resource. May overwrite `requested`."""
        raise NotImplementedError


class LeastAllocated(ResourceScorer):
    """Prefers emptier nodes."""

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        room = np.subtract(capacity, requested, out=requested)
        at_least(room, 0.0)
        room *= MAX_SCORE
        room /= capacity
        return np.floor(room, out=room)

    def score_one(self, template: Any, table: Nodes, row: int) -> float:
        if self.resources != DEFAULT_RESOURCES:
            return super().score_one(template, table, row)
        total = counted = 0
        for column, amount in ((CPU, template.newcomer_cpu), (MEMORY, template.newcomer_memory)):
            capacity = table.allocatable.item(column, row)
            if capacity > 0:
                room = capacity - (table.nonzero_used.item(column, row) + amount)
                total += floor(max(room, 0.0) * MAX_SCORE / capacity)
                counted += 1
        return float(total // max(counted, 1))

    def bounds(self, table: Nodes) -> Bounds | None:
        is_plain = self.resources == DEFAULT_RESOURCES and table.least(CPU) > 0 and table.least(MEMORY) > 0
        return LeastAllocatedBounds(table) if is_plain else None


class LeastAllocatedBounds(Bounds):
    """The bounds of LeastAllocated with cpu and memory at equal weight."""

    def __init__(self, table: Nodes) -> None:
        self._table = table
        self._part = (MAX_SCORE / table.allocatable[: MEMORY + 1]).astype(np.float32)  #: how much one more unit lowers the rate
        self._rates = np.empty_like(self._part)  #: the rates without the task
        self.update()

    def update(self, rows: int | slice = slice(None)) -> None:
        used, capacity = self._table.nonzero_used, self._table.allocatable
        for resource in (CPU, MEMORY):  # for a single row these are numbers
            self._rates[resource, rows] = MAX_SCORE + SLACK - MAX_SCORE * used[resource, rows] / capacity[resource, rows]

    def of(self, template: Template) -> Bound:
        rates = self._part * np.array([[template.newcomer_cpu], [template.newcomer_memory]], np.float32)
        np.subtract(self._rates, rates, out=rates)
        at_least(rates.reshape(-1), 0.0)
        most, memory = np.floor(rates)
        most += memory
        most *= 0.5
        return Bound(np.floor(most, out=most), rates)


class MostAllocated(ResourceScorer):
    """Prefers fuller nodes."""

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        return np.floor(np.minimum(requested, capacity) * MAX_SCORE / capacity)


class RequestedToCapacityRatio(ResourceScorer):
    """Scores by a curve over the utilization, given as points (utilization 0..100, score 0..100)."""

    def __init__(self, shape: Sequence[tuple[int, int]], resources: dict[str, int] | None = None, weight: float = 1) -> None:
        super().__init__(resources, weight)
        self.shape = tuple(shape)

    def score(self, template: Any, nodes: View) -> Scores:
        """The weighted mean of the resources' scores. A resource that scores 0 is left out of the mean, so it does not lower it."""
        total, weights = np.zeros(len(nodes)), np.zeros(len(nodes))
        for column, weight, requested in self.demands(template, nodes):
            capacity = nodes.allocatable[column]
            has = capacity > 0
            rating = self.rate(requested, np.where(has, capacity, 1.0))
            counts = has & (rating > 0)
            total += np.where(counts, rating, 0.0) * weight
            weights += counts * weight
        return np.floor(np.divide(total, weights, out=np.zeros(len(nodes)), where=weights > 0) + 0.5)

    def rate(self, requested: Scores, capacity: Scores) -> Scores:
        return self.curve(np.where(requested > capacity, MAX_SCORE, np.floor(requested * MAX_SCORE / capacity)))

    def curve(self, utilization: Scores) -> Scores:
        """The curve's value at each utilization: linear between the points, in integers truncated toward zero."""
        first_s = self.shape[0][1]
        result = np.full(len(utilization), float(first_s))
        for (u0, s0), (u1, s1) in zip(self.shape, self.shape[1:], strict=False):
            part = s0 + np.trunc((s1 - s0) * (utilization - u0) / (u1 - u0))
            result = np.where((utilization > u0) & (utilization <= u1), part, result)
        return np.where(utilization > self.shape[-1][0], float(self.shape[-1][1]), result)


IGNORES = "ignored resources"  #: key in the cluster's memory: by schedulerName, a function that says whether the profile ignores a resource


STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


class ResourceWeight(Conf, frozen=True):
    name: str = ""
    weight: int = 0

    @property
    def counted(self) -> int:
        """The weight that counts: 0 means that none was written, so 1."""
        return self.weight or 1


CPU_AND_MEMORY = [ResourceWeight(name="cpu", weight=1), ResourceWeight(name="memory", weight=1)]


class ShapePoint(Conf, frozen=True):
    utilization: int = 0
    score: int = 0


class RatioShape(Conf, frozen=True):
    shape: list[ShapePoint] | None = None


def check_shape(shape: Sequence[ShapePoint], path: Path, problems: Problems) -> None:
    if not shape:
        problems.required(path, "at least one point must be specified")
    unsorted = next((i for i in range(1, len(shape)) if shape[i].utilization <= shape[i - 1].utilization), None)
    if unsorted is not None:
        problems.invalid((*path, unsorted, "utilization"), shape[unsorted].utilization, "values must be sorted in increasing order")
    for index, point in enumerate(shape):
        problems.within((*path, index, "utilization"), point.utilization, 0, 100)
        problems.within((*path, index, "score"), point.score, 0, 10)


class ScoringStrategy(Conf, frozen=True):
    type: str = "LeastAllocated"
    resources: list[ResourceWeight] | None = None
    requested_to_capacity_ratio: RatioShape | None = None

    @property
    def weights(self) -> dict[str, int]:
        return {resource.name: resource.counted for resource in self.resources or CPU_AND_MEMORY}

    def check(self, path: Path, problems: Problems) -> None:
        ratio, at = self.requested_to_capacity_ratio, (*path, "requestedToCapacityRatio")
        if self.type not in STRATEGIES:
            problems.unsupported((*path, "type"), self.type, STRATEGIES)
            return
        for index, resource in enumerate(self.resources or ()):
            if not 0 < resource.counted <= 100:
                rule = f"resource weight of {resource.name} not in valid range (0, 100]"
                problems.invalid((*path, "resources", index, "weight"), resource.counted, rule)
        if self.type != "RequestedToCapacityRatio":
            if ratio is not None:
                problems.forbidden(at, "must be nil when type is not RequestedToCapacityRatio")
        elif ratio is None:
            problems.required(at, "must be specified when type is RequestedToCapacityRatio")
        else:
            check_shape(ratio.shape or [], (*at, "shape"), problems)


class FitArgs(Args, frozen=True):
    ignored_resources: list[str] | None = None
    ignored_resource_groups: list[str] | None = None
    scoring_strategy: ScoringStrategy = ScoringStrategy()

    def check(self, path: Path, problems: Problems) -> None:
        for index, name in enumerate(self.ignored_resources or ()):
            if fault := qualified_name_fault(name):
                problems.invalid((*path, "ignoredResources", index), name, fault)
        for index, group in enumerate(self.ignored_resource_groups or ()):
            fault = "resource group name can't contain '/'" if "/" in group else qualified_name_fault(group)
            if fault:
                problems.invalid((*path, "ignoredResourceGroups", index), group, fault)
        self.scoring_strategy.check((*path, "scoringStrategy"), problems)


def _filters(args: FitArgs, cluster: Cluster) -> list[Filter]:
    ignored = frozenset(args.ignored_resources or ()), frozenset(args.ignored_resource_groups or ())
    return [FitFilter(*ignored, classes_by_resource(cluster))]


def _scorer(args: FitArgs, cluster: Cluster) -> Scorer:
    strategy = args.scoring_strategy
    if strategy.requested_to_capacity_ratio is not None:
        points = [(point.utilization, point.score * 10) for point in strategy.requested_to_capacity_ratio.shape or ()]
        return RequestedToCapacityRatio(points, strategy.weights)
    return (MostAllocated if strategy.type == "MostAllocated" else LeastAllocated)(strategy.weights)


def _fits_empty(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the node could take the pod if it were empty. A node that grew must have grown in a resource that the pod requests."""
    row = row_of(cluster, event)
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


def _serves_resource(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a class of devices serves a resource that the pod requests, and did not before."""
    before, after = event.old and event.old.spec.extended_resource_name, event.new and event.new.spec.extended_resource_name
    served = {after} if before != after else set()
    if event.old is None:
        served.add(AFTER_CLASS + event.new.metadata.name)
    return any(cluster.dimensions.names[column] in served for column, _ in task.template.needs)


PLUGIN = KubePlugin(
    "NodeResourcesFit",
    "preFilter filter preScore score placementScore",
    weight=1,
    args=FitArgs,
    filters=_filters,
    scorer=_scorer,
    hints={
        EventKind.POD_GONE: always,
        EventKind.POD_SHRUNK: _shrank_in_common,
        EventKind.OWN_SHRUNK: always,
        EventKind.NODE_ADDED: _fits_empty,
        EventKind.NODE_ALLOCATABLE: _fits_empty,
        EventKind.DEVICE_CLASS: _serves_resource,
    },
)
