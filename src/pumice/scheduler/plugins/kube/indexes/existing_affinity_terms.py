"""Inter-pod (anti-)affinity terms: read from pod specs; those of existing pods are counted per row and found by the pods that they select.

What an existing pod's term means for a new pod depends only on the new pod's labels and namespace, so terms are filed by the pods that they
select. `_possible` has the terms of all pods met so far, so that a rule can tell that no pod of this session will concern it. When most of
those pods are gone, everything is counted again from the pods that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import islice

from msgspec import Struct

from pumice.api.meta import LabelSelector
from pumice.api.pod import PodAffinity, PodAffinityTerm
from pumice.api.selectors import Requirement, Selector, matches
from pumice.scheduler.model import Cluster, Index, Task, Template
from pumice.scheduler.plugins.kube.indexes.label_index import NOTHING, LabelIndex, PodScope
from pumice.scheduler.plugins.kube.indexes.pod_counts import PodCounts

FEW = 256  #: up to this number of templates of deleted pods a recount is not worth its cost


class ExistingTerm(Struct, frozen=True):
    """The pods that a term selects, and its topology key."""

    scope: PodScope
    key: str


class PodTerms(Struct, frozen=True):
    """All terms of a pod. The weights of preferred anti-affinity are negative."""

    affinity: tuple[ExistingTerm, ...]
    anti: tuple[ExistingTerm, ...]
    preferred: tuple[tuple[ExistingTerm, int], ...]


class TermRole(Enum):
    """What the term of an existing pod means for a new pod."""

    REFUSES = "required anti-affinity"
    REQUIRES = "required affinity"
    PREFERS = "preferred, either way"


class TermEffect(Struct, frozen=True):
    """A term that existing pods have, with its role."""

    role: TermRole
    term: ExistingTerm
    weight: int = 0


def selector_of(selector: LabelSelector | None) -> Selector:
    return NOTHING if selector is None else selector.requirements


def merged(selector: Selector, keys: Iterable[str], labels: Mapping[str, str], operator: str = "In") -> Selector:
    """The selector with one more requirement for each of the keys that the pod has: the pod's own value (with NotIn: any other value)."""
    if selector == NOTHING:
        return selector
    return (*selector, *(Requirement(key, operator, (labels[key],)) for key in keys if key in labels))


class ExistingTerms(Index):
    kinds = ("Namespace",)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._bound = FEW  #: the number of templates at which templates of deleted pods are looked for

    def begin(self) -> None:
        self._known: dict[tuple[Template, tuple[str | None, ...]], PodTerms] = {}
        self.holders = PodCounts()  #: the pods that have terms
        self._counts: dict[TermEffect, PodCounts] = {}
        self._terms_by_role: dict[TermRole, LabelIndex[TermEffect]] = {role: LabelIndex() for role in TermRole}
        self._possible: dict[TermRole, LabelIndex[TermEffect]] = {role: LabelIndex() for role in TermRole}
        self._label_keys: dict[str, None] = {}
        self._met = 0
        self._selects_spaces = False
        self._spaces_version = self.cluster.versions.get("Namespace", 0)

    def refresh(self) -> None:
        if self._selects_spaces and self._spaces_version != self.cluster.versions.get("Namespace", 0):
            self.recount()
        if len(self.cluster.with_pod_affinity) > self._bound:
            self._forget_the_gone()
        for template in islice(self.cluster.with_pod_affinity, self._met, None):
            for held in _held(self._read(template, {})):
                if held not in self._possible[held.role]:
                    self._possible[held.role].add(held, (held.term.scope,))
                self._label_keys.update(dict.fromkeys(r.key for r in held.term.scope.selector))
            self._label_keys.update(dict.fromkeys(_match_keys(template)))
        self._met = len(self.cluster.with_pod_affinity)

    def _forget_the_gone(self) -> None:
        with_pod_affinity = self.cluster.with_pod_affinity
        there = {task.template for task in self.cluster.tasks.values()}
        for template in [template for template in with_pod_affinity if template not in there]:
            del with_pod_affinity[template]
        self._bound = FEW + 2 * len(with_pod_affinity)
        self.recount()

    # -- answers

    def of_pod(self, task: Task) -> PodTerms:
        template = task.template
        key = (template, tuple(task.labels.get(k) for k in _match_keys(template)))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(template, task.labels)
        return found

    def pod_key(self, task: Task) -> tuple[str | None, ...]:
        """The values of the pod's labels that any term uses."""
        return tuple([task.labels.get(key) for key in self._label_keys])

    def may_meet(self, role: TermRole, task: Task) -> bool:
        """Whether any pod met so far has a term of this role that selects this pod."""
        return next(self._possible[role].meaning(task), None) is not None

    def meeting(self, role: TermRole, task: Task) -> Iterable[tuple[TermEffect, PodCounts]]:
        """The terms of existing pods that select this pod, each with the counts of the pods that have it."""
        return ((held, self._counts[held]) for held in self._terms_by_role[role].meaning(task))

    # -- upkeep

    def change(self, row: int, task: Task, sign: int) -> None:
        if not task.template.has_pod_terms:
            return
        self.holders.add(row, sign)
        for held in _held(self.of_pod(task)):
            counts = self._counts.get(held)
            if counts is None:
                counts = self._counts[held] = PodCounts()
                self._terms_by_role[held.role].add(held, (held.term.scope,))
            counts.add(row, sign)
            if not counts:
                del self._counts[held]
                self._terms_by_role[held.role].remove(held)

    def agrees(self, recount: ExistingTerms) -> bool:
        return self.holders == recount.holders and self._counts == recount._counts

    def _read(self, template: Template, labels: Mapping[str, str]) -> PodTerms:
        affinity = template.spec.affinity
        near = (affinity.pod_affinity if affinity else None) or PodAffinity()
        far = (affinity.pod_anti_affinity if affinity else None) or PodAffinity()
        preferred = [(self._term(p.pod_affinity_term, template, labels), p.weight) for p in near.preferred or ()]
        preferred += [(self._term(p.pod_affinity_term, template, labels), -p.weight) for p in far.preferred or ()]
        return PodTerms(
            tuple(self._term(term, template, labels) for term in near.required or ()),
            tuple(self._term(term, template, labels) for term in far.required or ()),
            tuple((term, weight) for term, weight in preferred if weight),
        )

    def _term(self, term: PodAffinityTerm, template: Template, labels: Mapping[str, str]) -> ExistingTerm:
        selector = merged(selector_of(term.label_selector), term.match_label_keys or (), labels)
        selector = merged(selector, term.mismatch_label_keys or (), labels, "NotIn")
        return ExistingTerm(PodScope(selector, self._spaces(term, template.namespace)), term.topology_key)

    def _spaces(self, term: PodAffinityTerm, own: str) -> frozenset[str] | None:
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (own,))
        selector = term.namespace_selector.requirements
        if not selector:
            return None
        self._selects_spaces = True
        spaces = self.cluster.of("Namespace").values()
        return frozenset(s.metadata.name for s in spaces if matches(selector, s.metadata.labels or {})) | frozenset(term.namespaces or ())


def _held(terms: PodTerms) -> Iterable[TermEffect]:
    yield from (TermEffect(TermRole.REQUIRES, term) for term in terms.affinity)
    yield from (TermEffect(TermRole.REFUSES, term) for term in terms.anti)
    yield from (TermEffect(TermRole.PREFERS, term, weight) for term, weight in terms.preferred)


def _match_keys(template: Template) -> tuple[str, ...]:
    """The keys of the pod's own labels that its terms use (matchLabelKeys, mismatchLabelKeys)."""
    affinity = template.spec.affinity
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None] if affinity else []
    terms = [term for side in sides for term in (*(side.required or ()), *(p.pod_affinity_term for p in side.preferred or ()))]
    return tuple(key for term in terms for key in (*(term.match_label_keys or ()), *(term.mismatch_label_keys or ())))
