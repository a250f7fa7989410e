"""Arguments of kube-scheduler's plugins: their form, defaults and rules. `ARGS` maps a plugin to its arguments.

Each struct has `check(path, problems)`, which notes what kube-scheduler refuses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import field

from pumice.api.meta import LabelSelector, LabelSelectorRequirement
from pumice.api.pod import NodeAffinity, NodeSelectorTerm
from pumice.api.times import duration
from pumice.scheduler.config.problems import Conf, Path, Problems

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
PREFIX_RULE = "prefix part must be a lowercase DNS subdomain (e.g. 'example.com')"
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def qualified_name_fault(name: str) -> str:
    """Why it is no qualified name; empty if it is one."""
    prefix, slash, rest = name.rpartition("/")
    if slash and not (_DOMAIN.fullmatch(prefix) and len(prefix) <= 253):
        return PREFIX_RULE
    return "" if _NAME.fullmatch(rest) and len(rest) <= 63 else NAME_RULE


class Args(Conf, frozen=True):
    """Base: every kind of arguments may say its kind."""

    kind: str = ""
    api_version: str = ""

    def check(self, path: Path, problems: Problems) -> None:
        raise NotImplementedError


class PreemptionArgsText(Args, frozen=True):
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def check(self, path: Path, problems: Problems) -> None:
        percent, least = (*path, "minCandidateNodesPercentage"), (*path, "minCandidateNodesAbsolute")
        problems.within(percent, self.min_candidate_nodes_percentage, 0, 100)
        if self.min_candidate_nodes_absolute < 0:
            problems.invalid(least, self.min_candidate_nodes_absolute, "not in valid range [0, inf)")
        if self.min_candidate_nodes_percentage == self.min_candidate_nodes_absolute == 0:
            problems.invalid(percent, 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
            problems.invalid(least, 0, "cannot be zero at the same time as minCandidateNodesPercentage")


class InterPodAffinityArgs(Args, frozen=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def check(self, path: Path, problems: Problems) -> None:
        problems.within((*path, "hardPodAffinityWeight"), self.hard_pod_affinity_weight, 0, 100)


class NodeAffinityArgs(Args, frozen=True):
    added_affinity: NodeAffinity | None = None

    def check(self, path: Path, problems: Problems) -> None:
        added = self.added_affinity
        if added is None:
            return
        at = (*path, "addedAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
        if added.required is not None:
            if not added.required.node_selector_terms:
                problems.required(at, "must have at least one node selector term")
            for index, term in enumerate(added.required.node_selector_terms or ()):
                _check_term(term, (*at, index), problems)
        for index, preferred in enumerate(added.preferred or ()):
            here = (*path, "addedAffinity", "preferredDuringSchedulingIgnoredDuringExecution", index)
            if not 1 <= preferred.weight <= 100:
                problems.invalid((*here, "weight"), preferred.weight, "must be in the range 1-100")
            _check_term(preferred.preference, (*here, "preference"), problems)


def _check_term(term: NodeSelectorTerm, path: Path, problems: Problems) -> None:
    for index, expression in enumerate(term.match_expressions or ()):
        _check_expression(expression, (*path, "matchExpressions", index), problems)
    for index, expression in enumerate(term.match_fields or ()):
        here = (*path, "matchFields", index)
        if expression.operator not in ("In", "NotIn"):
            problems.invalid((*here, "operator"), expression.operator, "not a valid selector operator")
        elif len(expression.values or ()) != 1:
            problems.required((*here, "values"), "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
        if expression.key != "metadata.name":
            problems.invalid((*here, "key"), expression.key, "not a valid field selector key")


def _check_expression(expression: LabelSelectorRequirement, path: Path, problems: Problems) -> None:
    values = expression.values or []
    match expression.operator:
        case "In" | "NotIn" if not values:
            problems.required((*path, "values"), "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist" if values:
            problems.forbidden((*path, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt" if len(values) != 1:
            problems.required((*path, "values"), "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case operator if operator not in OPERATORS:
            problems.unsupported((*path, "operator"), operator, OPERATORS)
    if fault := qualified_name_fault(expression.key):
        problems.invalid((*path, "key"), expression.key, fault)


class ResourceWeight(Conf, frozen=True):
    name: str = ""
    weight: int = 0

    @property
    def counted(self) -> int:
        """0 is read as not written."""
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


class DefaultConstraint(Conf, frozen=True):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] | None = None


class SpreadArgs(Args, frozen=True):
    defaulting_type: str = ""
    default_constraints: list[DefaultConstraint] | None = None

    @property
    def system(self) -> bool:
        return (self.defaulting_type or "System") == "System"

    def check(self, path: Path, problems: Problems) -> None:
        if self.defaulting_type not in ("", "System", "List"):
            problems.unsupported((*path, "defaultingType"), self.defaulting_type, ("System", "List"))
        elif self.system and self.default_constraints:
            problems.invalid((*path, "defaultingType"), "System", "when .defaultConstraints are not empty")
        seen: set[tuple[str, str]] = set()
        for index, constraint in enumerate(self.default_constraints or ()):
            self._check_constraint(constraint, (*path, "defaultConstraints", index), problems)
            pair = (constraint.topology_key, constraint.when_unsatisfiable)
            if pair in seen:
                problems.duplicate((*path, "defaultConstraints", index), f"{{{pair[0]}, {pair[1]}}}")
            seen.add(pair)

    def _check_constraint(self, constraint: DefaultConstraint, path: Path, problems: Problems) -> None:
        if constraint.max_skew <= 0:
            problems.invalid((*path, "maxSkew"), constraint.max_skew, "not in valid range (0, inf)")
        if not constraint.topology_key:
            problems.required((*path, "topologyKey"), "can not be empty")
        elif fault := qualified_name_fault(constraint.topology_key):
            problems.invalid((*path, "topologyKey"), constraint.topology_key, fault)
        if not constraint.when_unsatisfiable:
            problems.required((*path, "whenUnsatisfiable"), "can not be empty")
        elif constraint.when_unsatisfiable not in ACTIONS:
            problems.unsupported((*path, "whenUnsatisfiable"), constraint.when_unsatisfiable, ACTIONS)
        if constraint.label_selector is not None:
            problems.forbidden((*path, "labelSelector"), "constraint must not define a selector, as they deduced for each pod")


class VolumeBindingArgs(Args, frozen=True):
    bind_timeout_seconds: int = 600
    shape: list[ShapePoint] | None = None

    def check(self, path: Path, problems: Problems) -> None:
        if self.bind_timeout_seconds < 0:
            rule = "invalid BindTimeoutSeconds, should not be a negative value"
            problems.invalid((*path, "bindTimeoutSeconds"), self.bind_timeout_seconds, rule)
        if self.shape is not None:
            problems.forbidden((*path, "shape"), "unexpected field `shape`, feature gate StorageCapacityScoring is off")


class DynamicResourcesArgs(Args, frozen=True):
    filter_timeout: str | None = field(name="filterTimeout", default=None)
    binding_timeout: str | None = field(name="bindingTimeout", default=None)

    def check(self, path: Path, problems: Problems) -> None:
        check_duration(self.filter_timeout, 0.0, (*path, "filterTimeout"), "must be non-negative", problems)
        check_duration(self.binding_timeout, 1.0, (*path, "bindingTimeout"), "must be at least 1 second", problems)


def check_duration(text: str | None, least_s: float, path: Path, rule: str, problems: Problems) -> None:
    if text is None:
        return
    try:
        if duration(text) < least_s:
            problems.invalid(path, text, rule)
    except ValueError as error:
        problems.add(path, str(error))


ARGS: dict[str, type[Args]] = {
    "DefaultPreemption": PreemptionArgsText,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesFit": FitArgs,
    "NodeResourcesBalancedAllocation": BalancedArgs,
    "PodTopologySpread": SpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
    "DynamicResources": DynamicResourcesArgs,
}


def args_of(configured: dict[str, Any], plugin: str) -> Any:
    """The arguments of a plugin, by default its defaults."""
    return configured.get(plugin) or ARGS[plugin]()
