"""NodeAffinity: nodeSelector and node affinity, required and preferred."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.api.meta import LabelSelectorRequirement
from pumice.api.pod import NodeAffinity, NodeSelector, NodeSelectorTerm, PodSpec, PreferredSchedulingTerm
from pumice.api.problems import Path, Problems, qualified_name_fault
from pumice.api.selectors import OPERATORS, Requirement
from pumice.api.strict_decoding import Args
from pumice.scheduler.engine import Filter, Reach, Reason, Refused, Rejected, Scorer, Scores, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, allows
from pumice.scheduler.model import Cluster, Mask, Nodes, Task
from pumice.scheduler.plugins.kube import KubePlugin

REFUSAL = Reason("node(s) didn't match Pod's node affinity/selector", final=True)
LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9])?")
NO_LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
ENFORCED = Reason("node(s) didn't match scheduler-enforced node affinity", final=True)
CONFLICT = Reason("pod affinity terms conflict", final=True)
NARROWED = Reason("node(s) didn't satisfy plugin(s) [NodeAffinity]", final=True, from_prefilter=True)


def term_matches(term: NodeSelectorTerm, table: Nodes) -> Mask:
    """The rows that satisfy every requirement of a term. An empty or malformed term matches no row."""
    requirements = [e.requirement for e in term.match_expressions or ()]
    fields = [e.requirement for e in term.match_fields or ()]
    if not requirements and not fields:
        return np.zeros(len(table), bool)
    if not all(_well_formed(r) for r in requirements) or not all(_well_formed_field(r) for r in fields):
        return np.zeros(len(table), bool)
    return table.matching((*requirements, *fields))


def _well_formed(requirement: Requirement) -> bool:
    if not all(LABEL_VALUE.fullmatch(value) for value in requirement.values):
        return False  # such as "-2": a selector that cannot be read matches nothing
    match requirement.operator:
        case "In" | "NotIn":
            return bool(requirement.values)
        case "Exists" | "DoesNotExist":
            return not requirement.values
        case "Gt" | "Lt":
            return len(requirement.values) == 1
    return requirement.operator in OPERATORS


def _well_formed_field(requirement: Requirement) -> bool:
    return requirement.key == "metadata.name" and requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


def selector_matches(selector: NodeSelector, table: Nodes) -> Mask:
    """The rows that satisfy at least one term of the selector."""
    mask = np.zeros(len(table), bool)
    for term in selector.node_selector_terms or ():
        mask |= term_matches(term, table)
    return mask


def required_matches(spec: PodSpec, table: Nodes) -> Mask:
    """The rows that a pod's nodeSelector and required node affinity admit."""
    mask = table.matching(tuple(Requirement(key, "In", (value,)) for key, value in (spec.node_selector or {}).items()))
    required = required_of(spec)
    return mask & selector_matches(required, table) if required is not None else mask


def required_of(spec: PodSpec) -> NodeSelector | None:
    return spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None


def preferred_of(spec: PodSpec) -> list[PreferredSchedulingTerm]:
    return (spec.affinity.node_affinity.preferred if spec.affinity and spec.affinity.node_affinity else None) or []


class _Wanted(Struct, frozen=True):
    spec: PodSpec
    names: frozenset[str] | None  #: the only nodes that may take the pod, by metadata.name; None if any node may


class NodeAffinityFilter(Filter):
    """`added` is the node affinity that the scheduler's configuration requires of all pods."""

    name = "NodeAffinity"
    reach = Reach.STATIC
    reads_amounts = False

    def __init__(self, added: NodeSelector | None = None) -> None:
        self.added = added

    def prepare(self, task: Task) -> Any:
        spec = task.template.spec
        required = required_of(spec)
        if not spec.node_selector and required is None and self.added is None:
            return None
        names = _only_names(required)
        if names is not None and not names:
            return Rejected(CONFLICT)
        return _Wanted(spec, names)

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        table = nodes.table
        refusals = []
        if state.names is not None:
            outside = ~table.matching((Requirement("metadata.name", "In", tuple(sorted(state.names))),))
            refusals.append(Refused(nodes.of(outside), NARROWED))  # type: ignore[arg-type]
        if self.added is not None:
            refusals.append(Refused(nodes.of(~selector_matches(self.added, table)), ENFORCED))  # type: ignore[arg-type]
        refusals.append(Refused(nodes.of(~required_matches(state.spec, table)), REFUSAL))  # type: ignore[arg-type]
        return refusals


def _only_names(required: NodeSelector | None) -> frozenset[str] | None:
    """The node names that the terms allow; None unless every term names nodes."""
    terms = (required.node_selector_terms if required else None) or []
    union: set[str] = set()
    for term in terms:
        named = [set(f.values or ()) for f in term.match_fields or () if f.key == "metadata.name" and f.operator == "In"]
        if not named:
            return None
        union |= set.intersection(*named)
    return frozenset(union) if terms else None


class NodeAffinityScorer(Scorer):
    """Scores a node by the sum of the weights of the preferred terms that match it."""

    name = "NodeAffinity"
    reach = Reach.STATIC
    reads_amounts = False
    normalizes = True

    def __init__(self, added: Sequence[PreferredSchedulingTerm] = ()) -> None:
        self.added = tuple(added)

    def prepare(self, task: Task) -> Any:
        return (*preferred_of(task.template.spec), *self.added) or None

    def score(self, terms: Any, nodes: View) -> Scores:
        total = np.zeros(len(nodes.table))
        for term in terms:
            total += term_matches(term.preference, nodes.table) * term.weight
        return nodes.of(total)  # type: ignore[return-value]


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
    for index, value in enumerate(values):
        if expression.operator in ("Gt", "Lt") and not (re.fullmatch(r"[+-]?[0-9]{1,19}", value) and -(2**63) <= int(value) < 2**63):
            problems.invalid((*path, "values", index), value, "for 'Gt', 'Lt' operators, the value must be an integer")
        if not LABEL_VALUE.fullmatch(value):
            problems.invalid((*path, "values", index), value, NO_LABEL_VALUE)
    if fault := qualified_name_fault(expression.key):
        problems.invalid((*path, "key"), expression.key, fault)


def _filters(args: NodeAffinityArgs, cluster: Cluster) -> list[Filter]:
    added = args.added_affinity
    return [NodeAffinityFilter(added.required if added else None)]


def _scorer(args: NodeAffinityArgs, cluster: Cluster) -> Scorer:
    added = args.added_affinity
    return NodeAffinityScorer((added.preferred if added else None) or ())


def _selected(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return allows(cluster, event, NodeAffinityFilter(), task)


PLUGIN = KubePlugin(
    "NodeAffinity",
    "preFilter filter preScore score",
    weight=2,
    args=NodeAffinityArgs,
    filters=_filters,
    scorer=_scorer,
    hints={EventKind.NODE_ADDED: _selected, EventKind.NODE_LABELS: _selected},
)
