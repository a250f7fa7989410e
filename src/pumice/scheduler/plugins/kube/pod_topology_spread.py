"""PodTopologySpread: keep the pods that a constraint counts even over domains: nodes with the same value of a label.

The filter bounds by how many pods a domain may exceed the domain with the fewest. The scorer prefers domains with fewer pods, and weighs
this more where there are more domains. `indexes` keeps the counts, so that a rule costs a sum over the nodes.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.api.annotations import HOSTNAME
from pumice.api.meta import LabelSelector
from pumice.api.pod import TopologySpreadConstraint
from pumice.api.problems import Path, Problems, qualified_name_fault
from pumice.api.selectors import matches
from pumice.api.strict_decoding import Args, Conf
from pumice.scheduler.engine import MAX_SCORE, Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always
from pumice.scheduler.model import ABSENT, Cluster, Codes, Mask, Nodes, Task, Template
from pumice.scheduler.model.shared_templates import NO_PAIRS
from pumice.scheduler.plugins.kube import KubePlugin
from pumice.scheduler.plugins.kube.indexes.existing_affinity_terms import selector_of
from pumice.scheduler.plugins.kube.indexes.existing_pods import ExistingPods
from pumice.scheduler.plugins.kube.indexes.imagined_pods import Imagined
from pumice.scheduler.plugins.kube.indexes.pod_counts import shown_per_node
from pumice.scheduler.plugins.kube.node_affinity import required_matches
from pumice.scheduler.plugins.kube.spread_constraints import SYSTEM_DEFAULTS, Spread, SpreadConstraints
from pumice.scheduler.plugins.kube.taint_toleration import TaintFilter

MISSING = Reason("node(s) didn't match pod topology spread constraints (missing required label)", final=True)
SKEWED = Reason("node(s) didn't match pod topology spread constraints")


class _Domains(Struct, frozen=True):
    """A constraint, and the domain in which each row counts."""

    spread: Spread
    namespace: str
    codes: Codes  #: the domain of each row by its label
    counted: Codes  #: the same domains, but ABSENT for rows whose pods do not count
    number: int


def _domains(spread: Spread, task: Task, table: Nodes, among: Mask) -> _Domains:
    codes, values = table.codes(spread.key)
    counted = np.where(among & _included(spread.constraint, task, table), codes, np.int32(ABSENT))
    return _Domains(spread, task.namespace, codes, counted, len(values))


def _included(constraint: TopologySpreadConstraint, task: Task, table: Nodes) -> Mask:
    """The rows that the constraint's node inclusion policies admit."""
    mask = table.alive.copy()
    if constraint.node_affinity_policy != "Ignore":
        mask &= required_matches(task.template.spec, table)
    if constraint.node_taints_policy == "Honor":
        taints = TaintFilter()
        for refused in taints.refuse(taints.prepare(task), View(table)):
            mask &= ~refused.where
    return mask


def _labelled(spreads: Sequence[Spread], table: Nodes) -> Mask:
    """The rows that have the labels of all constraints."""
    mask = table.alive.copy()
    for spread in spreads:
        mask &= table.codes(spread.key)[0] != ABSENT
    return mask


class PodTopologySpreadFilter(Filter):
    name = "PodTopologySpread"
    reach = Reach.CLUSTER
    reads_amounts = False

    def __init__(self, constraints: SpreadConstraints) -> None:
        self.constraints = constraints

    def key(self, task: Task) -> Hashable:
        return self.constraints.key(task)

    def tells_apart(self, template: Template) -> bool:
        return self.constraints.tells_apart(template)

    def prepare(self, task: Task) -> Any:
        spreads = self.constraints.of_pod(task, hard=True)
        if not spreads:
            return None
        table = self.constraints.cluster.nodes
        self.constraints.cluster.index(Imagined)
        labelled = _labelled(spreads, table)
        return [_domains(spread, task, table, labelled) for spread in spreads]

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        missing, skewed = np.zeros(len(nodes.table), bool), np.zeros(len(nodes.table), bool)
        for domains in state:
            lacking = domains.codes == ABSENT
            too_many = ~lacking & (self._skew(domains) > domains.spread.constraint.max_skew)
            skewed |= too_many & ~missing  # the first constraint that fails gives the reason
            missing |= lacking & ~skewed
        return [Refused(nodes.of(missing), MISSING), Refused(nodes.of(skewed), SKEWED)]  # type: ignore[arg-type]

    def _skew(self, domains: _Domains) -> Scores:
        """For each row, by how many pods its domain would exceed the smallest domain if the pod were placed there."""
        counted, number, spread = domains.counted, domains.number, domains.spread
        there = np.bincount(counted + 1, minlength=number + 1)[1:] > 0
        sums = self._sums(domains)
        enough = there.sum() >= (spread.constraint.min_domains or 1)
        least = sums[there].min() if enough else 0.0
        return shown_per_node(sums, domains.codes) + spread.counts_itself - least

    def _sums(self, domains: _Domains) -> Scores:
        """The pods per domain, with what a dry run adds and removes. With an empty selector only the pods of the dry run count."""
        cluster, spread, counted = self.constraints.cluster, domains.spread, domains.counted
        imagined = cluster.index(Imagined)
        if spread.group is None:
            return imagined.counts(domains.namespace).per_domain(counted, domains.number)
        sums = np.append(_sums(cluster.index(ExistingPods), spread, counted, domains.number), 0.0)  # the last: rows that do not count
        for row, sign in imagined.leaving(spread.group):
            sums[counted[row]] += sign
        return sums[:-1]


def _sums(groups: ExistingPods, spread: Spread, codes: Codes, number: int) -> Scores:
    return groups.counts(spread.group).per_domain(codes, number) if spread.group is not None else np.zeros(number)


class PodTopologySpreadScorer(Scorer):
    """Scores the candidate nodes. A node that lacks a needed label scores 0 (it is NaN until scores are normalized)."""

    name = "PodTopologySpread"
    reach = Reach.CLUSTER
    reads_amounts = False
    normalizes = True
    relative = True

    def __init__(self, constraints: SpreadConstraints, weight: float = 2) -> None:
        self.constraints = constraints
        self.weight = weight

    def key(self, task: Task) -> Hashable:
        return self.constraints.key(task)

    def tells_apart(self, template: Template) -> bool:
        return self.constraints.tells_apart(template)

    def prepare(self, task: Task) -> Any:
        spreads = self.constraints.of_pod(task, hard=False)
        if not spreads:
            return None
        table = self.constraints.cluster.nodes
        strict = self.constraints.needs_all_labels(task)
        among = _labelled(spreads, table) if strict else table.alive
        return among, [_domains(spread, task, table, among) for spread in spreads]

    def score(self, state: Any, nodes: View) -> Scores:
        among, constraints = state
        taking_part: Mask = nodes.of(among)  # type: ignore[assignment]
        total = np.zeros(len(nodes))
        for domains in constraints:
            constraint = domains.spread.constraint
            codes: Codes = nodes.of(domains.codes)  # type: ignore[assignment]
            size = taking_part.sum() if domains.spread.key == HOSTNAME else len(np.unique(codes[taking_part]))
            rating = self._counts(domains, nodes) * np.log(size + 2.0) + (constraint.max_skew - 1)
            total += np.where(codes == ABSENT, 0.0, rating)
        return np.where(taking_part, np.floor(total + 0.5), np.nan)

    def _counts(self, domains: _Domains, nodes: View) -> Scores:
        groups = self.constraints.cluster.index(ExistingPods)
        if domains.spread.key != HOSTNAME:
            sums = _sums(groups, domains.spread, domains.counted, domains.number)
            return nodes.of(shown_per_node(sums, domains.codes))  # type: ignore[return-value]
        if domains.spread.group is None:
            return np.zeros(len(nodes))
        return nodes.of(groups.counts(domains.spread.group).array(len(nodes.table)))  # type: ignore[return-value]

    def normalize(self, scores: Scores) -> Scores:
        taking_part = ~np.isnan(scores)
        if not taking_part.any():
            return np.zeros_like(scores)
        known = scores[taking_part]
        most, least = max(known.max(), 0.0), known.min()
        result = np.zeros_like(scores)
        result[taking_part] = MAX_SCORE if most == 0 else np.floor(MAX_SCORE * (most + least - known) / most)
        return result


ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


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


def _constraints(args: SpreadArgs, cluster: Cluster) -> SpreadConstraints:
    if args.system:
        return SpreadConstraints(cluster, SYSTEM_DEFAULTS, system=True)
    return SpreadConstraints(cluster, [_constraint(each) for each in args.default_constraints or ()], system=False)


def _constraint(text: Any) -> TopologySpreadConstraint:
    """A default constraint. Its selector comes from other objects, so kube-scheduler ignores its matchLabelKeys."""
    return TopologySpreadConstraint(
        max_skew=text.max_skew,
        topology_key=text.topology_key,
        when_unsatisfiable=text.when_unsatisfiable,
        min_domains=text.min_domains,
        node_affinity_policy=text.node_affinity_policy,
        node_taints_policy=text.node_taints_policy,
    )


def _same_namespace(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    return event.pod is None or event.pod.namespace == task.namespace


def _counts_otherwise(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a constraint counts the pod by its new labels and did not by its old ones, or the other way round; or reads one of them."""
    own, before = task.template.spec.topology_spread_constraints, event.labels or NO_PAIRS
    if not own or any(task.labels.get(key) != before.get(key) for each in own for key in each.match_label_keys or ()):
        return True
    selectors = [selector_of(each.label_selector) for each in own]
    return any(matches(selector, task.labels) != matches(selector, before) for selector in selectors)


def _honors_taints(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    own = task.template.spec.topology_spread_constraints
    return not own or any(each.node_taints_policy == "Honor" for each in own)


def _has_defaults(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether the pod was refused by the profile's default constraints, whose selectors come from other objects."""
    return not task.template.spec.topology_spread_constraints


PLUGIN = KubePlugin(
    "PodTopologySpread",
    "preFilter filter preScore score",
    weight=2,
    args=SpreadArgs,
    filters=lambda args, cluster: [PodTopologySpreadFilter(_constraints(args, cluster))],
    scorer=lambda args, cluster: PodTopologySpreadScorer(_constraints(args, cluster)),
    hints={
        EventKind.POD_PLACED: _same_namespace,
        EventKind.POD_LEAVING: _same_namespace,
        EventKind.POD_GONE: _same_namespace,
        EventKind.POD_LABELS: _same_namespace,
        EventKind.OWN_LABELS: _counts_otherwise,
        EventKind.OWN_TOLERATIONS: _honors_taints,
        EventKind.SELECTORS: _has_defaults,
        EventKind.NODE_ADDED: always,
        EventKind.NODE_REMOVED: always,
        EventKind.NODE_LABELS: always,
        EventKind.NODE_TAINTS: always,
    },
)
