"""InterPodAffinity: affinity and anti-affinity between pods, required and preferred; both the new pod's terms and those of existing pods.

Near means on nodes with the same value of a label: in the same domain. `indexes` keeps counts of pods per row, so that a term costs a sum
over its domains. A term of an existing pod concerns each new pod that it selects, so a pod without terms of its own may be refused, too.
"""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from pumice.api.problems import Path, Problems
from pumice.api.strict_decoding import Args
from pumice.scheduler.engine import MAX_SCORE, Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.cluster_events import ClusterEvent, EventKind, always
from pumice.scheduler.model import ABSENT, Cluster, Mask, Nodes, Task, Template
from pumice.scheduler.plugins.kube import ClusterRule, KubePlugin
from pumice.scheduler.plugins.kube.indexes.existing_affinity_terms import ExistingTerms, PodTerms, TermRole
from pumice.scheduler.plugins.kube.indexes.existing_pods import CountedPods, ExistingPods
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts, shown_per_node

AFFINITY = Reason("node(s) didn't match pod affinity rules", final=True)
ANTI_AFFINITY = Reason("node(s) didn't match pod anti-affinity rules")
EXISTING = Reason("node(s) didn't satisfy existing pods anti-affinity rules")


class _Asked(Struct, frozen=True):
    task: Task  #: represents all pods with the same values of the labels that terms select by
    terms: PodTerms


def _near(counts: PodCounts, key: str, table: Nodes, counted_rows: Mask | None = None) -> Scores:
    """For every row, how many of the counted pods are in its domain, on rows of the mask `counted_rows` if it is given."""
    if counted_rows is None:
        return counts.near(key, table)
    codes, values = table.codes(key)
    return shown_per_node(counts.per_domain(np.where(counted_rows, codes, np.int32(ABSENT)), len(values)), codes)


class _OfTerms(ClusterRule):
    """What the filter and the scorer have in common: both read the terms of the pod and those of existing pods."""

    name = "InterPodAffinity"
    reach = Reach.CLUSTER
    reads_amounts = False

    def key(self, task: Task) -> Hashable:
        return self.cluster.index(ExistingTerms).pod_key(task) if self.cluster.with_pod_affinity else None

    def tells_apart(self, template: Template) -> bool:
        return bool(self.cluster.with_pod_affinity)


class InterPodAffinityFilter(_OfTerms, Filter):
    def prepare(self, task: Task) -> Any:
        if not self.cluster.with_pod_affinity:
            return None
        terms = self.cluster.index(ExistingTerms)
        own = terms.of_pod(task)
        return _Asked(task, own) if own.affinity or own.anti or terms.may_meet(TermRole.REFUSES, task) else None

    def is_silent(self, asked: Any) -> bool:
        """Whether the filter refuses no node: the pod has no required terms, and no existing pod's anti-affinity selects it."""
        if asked.terms.affinity or asked.terms.anti:
            return False
        table = self.cluster.nodes
        meeting = self.cluster.index(ExistingTerms).meeting(TermRole.REFUSES, asked.task)
        return not any((_near(counts, held.term.key, table) > 0).any() for held, counts in meeting)

    def refuse(self, asked: Any, nodes: View) -> Sequence[Refused]:
        table = nodes.table
        lonely = ~self._accompanied(asked, table) if asked.terms.affinity else np.zeros(len(table), bool)
        crowded = np.zeros(len(table), bool)
        for term in asked.terms.anti:
            crowded |= _near(self.cluster.index(ExistingPods).counts(CountedPods((term.scope,))), term.key, table) > 0
        unwelcome = np.zeros(len(table), bool)
        for held, counts in self.cluster.index(ExistingTerms).meeting(TermRole.REFUSES, asked.task):
            unwelcome |= _near(counts, held.term.key, table) > 0
        return [
            Refused(nodes.of(mask), reason)  # type: ignore[arg-type]
            for mask, reason in ((lonely, AFFINITY), (crowded & ~lonely, ANTI_AFFINITY), (unwelcome & ~crowded & ~lonely, EXISTING))
        ]

    def _accompanied(self, asked: _Asked, table: Nodes) -> Mask:
        """The rows near pods that all required affinity terms select. If there are none, and the pod itself is selected by all terms, the
        rows that have the terms' labels: it is the first of its group."""
        terms = asked.terms.affinity
        meant = self.cluster.index(ExistingPods).counts(CountedPods(tuple(dict.fromkeys(term.scope for term in terms))))
        keys = dict.fromkeys(term.key for term in terms)
        near = np.array([_near(meant, key, table) > 0 for key in keys])
        if not near.any() and all(term.scope.has(asked.task) for term in terms):
            near = np.array([table.codes(key)[0] != ABSENT for key in keys])
        return np.asarray(near.all(axis=0))


class InterPodAffinityScorer(_OfTerms, Scorer):
    """Adds the weight of each preferred term for every pod in the domain that it selects: the new pod's terms, and those of existing pods.

    `hard_weight` is the weight of an existing pod's required affinity. `ignore_existing`: for a new pod without preferred terms the terms
    of existing pods do not count. `counted_rows`: for such a pod only the terms of existing pods on these rows count.
    """

    normalizes = True

    def __init__(self, cluster: Cluster, *, hard_weight: int = 1, ignore_existing: bool = False, counted_rows: Mask | None = None) -> None:
        super().__init__(cluster)
        self.counted_rows = counted_rows
        self.hard_weight = hard_weight
        self.ignore_existing = ignore_existing

    def prepare(self, task: Task) -> Any:
        if not self.cluster.with_pod_affinity:
            return None
        terms = self.cluster.index(ExistingTerms)
        own = terms.of_pod(task)
        if own.preferred:
            return _Asked(task, own)
        met = terms.may_meet(TermRole.PREFERS, task) or (self.hard_weight > 0 and terms.may_meet(TermRole.REQUIRES, task))
        return _Asked(task, own) if met and not self.ignore_existing else None

    def score(self, asked: Any, nodes: View) -> Scores:
        table = nodes.table
        total = np.zeros(len(table))
        for term, weight in asked.terms.preferred:
            total += _near(self.cluster.index(ExistingPods).counts(CountedPods((term.scope,))), term.key, table) * weight
        counted_rows = None if asked.terms.preferred else self.counted_rows
        terms = self.cluster.index(ExistingTerms)
        for held, counts in terms.meeting(TermRole.PREFERS, asked.task):
            total += _near(counts, held.term.key, table, counted_rows) * held.weight
        if self.hard_weight:
            for held, counts in terms.meeting(TermRole.REQUIRES, asked.task):
                total += _near(counts, held.term.key, table, counted_rows) * self.hard_weight
        return nodes.of(total)  # type: ignore[return-value]

    def normalize(self, scores: Scores) -> Scores:
        least = scores.min(initial=np.inf)
        spread = scores.max(initial=-np.inf) - least
        if not spread > 0:
            return np.zeros_like(scores)
        scaled: Scores = np.trunc(MAX_SCORE * ((scores - least) / spread))
        return scaled


class InterPodAffinityArgs(Args, frozen=True):
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False

    def check(self, path: Path, problems: Problems) -> None:
        problems.within((*path, "hardPodAffinityWeight"), self.hard_pod_affinity_weight, 0, 100)


def _scorer(args: InterPodAffinityArgs, cluster: Cluster) -> Scorer:
    hard, passed_over = args.hard_pod_affinity_weight, args.ignore_preferred_terms_of_existing_pods
    return InterPodAffinityScorer(cluster, hard_weight=hard, ignore_existing=passed_over)


def _near_terms(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a required term of this pod selects the other pod, or the other pod's anti-affinity selects this one."""
    other = event.pod
    if other is None:
        return True
    terms = cluster.index(ExistingTerms)
    own, theirs = terms.of_pod(task), terms.of_pod(other)
    return any(term.scope.has(other) for term in (*own.affinity, *own.anti)) or any(term.scope.has(task) for term in theirs.anti)


def _was_or_is_near(cluster: Cluster, task: Task, event: ClusterEvent) -> bool:
    """Whether a required term of this pod selects the other pod by its new or its old labels. What the other pod's own anti-affinity
    selects may depend on its labels, too."""
    other = event.pod
    if other is None or event.labels is None:
        return True
    terms = cluster.index(ExistingTerms)
    own, forms = terms.of_pod(task), (other.labels, event.labels)
    meant = any(term.scope.means(other.namespace, labels) for term in (*own.affinity, *own.anti) for labels in forms)
    return meant or bool(terms.of_pod(other).anti)


PLUGIN = KubePlugin(
    "InterPodAffinity",
    "preFilter filter preScore score",
    weight=2,
    args=InterPodAffinityArgs,
    filters=lambda args, cluster: [InterPodAffinityFilter(cluster)],
    scorer=_scorer,
    hints={
        EventKind.POD_PLACED: _near_terms,
        EventKind.POD_GONE: _near_terms,
        EventKind.POD_LABELS: _was_or_is_near,
        EventKind.OWN_LABELS: always,
        EventKind.NODE_ADDED: always,
        EventKind.NODE_REMOVED: always,
        EventKind.NODE_LABELS: always,
        EventKind.NAMESPACE: always,
    },
)
