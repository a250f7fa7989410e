"""NodeResourcesFit: does the request fit, and how well, by one of three strategies.

The strategies have a file each: `least_allocated.py`, `most_allocated.py` and `requested_to_capacity_ratio.py`.
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from pumice.api.problems import Path, Problems, qualified_name_fault
from pumice.api.strict_decoding import Args, Conf
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Scorer, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always, row_of
from pumice.scheduler.model import PODS, Cluster, Task
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.devices.extended_resources import AFTER_CLASS, classes_by_resource
from pumice.scheduler.plugins.kube.least_allocated import LeastAllocated
from pumice.scheduler.plugins.kube.most_allocated import MostAllocated
from pumice.scheduler.plugins.kube.requested_to_capacity_ratio import RatioShape, RequestedToCapacityRatio, check_shape

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
