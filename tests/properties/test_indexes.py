"""What is kept of who stands where equals a recount, and a kept evaluation equals a fresh one, whatever came, went and was evicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings, strategies as st

from pumice.api.meta import LabelSelector
from pumice.api.structs import convert
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.engine.rules import Filter, Scorer
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.kube.indexes import pod_counts
from pumice.scheduler.plugins.kube.indexes.existing_pods import CountedPods, ExistingPods
from pumice.scheduler.plugins.kube.indexes.label_index import PodScope
from pumice.scheduler.plugins.kube.inter_pod_affinity import InterPodAffinityFilter, InterPodAffinityScorer
from pumice.scheduler.plugins.kube.node_ports import NodePorts
from pumice.scheduler.plugins.kube.pod_topology_spread import PodTopologySpreadFilter, PodTopologySpreadScorer
from pumice.scheduler.plugins.kube.spread_constraints import SpreadConstraints
from pumice.scheduler.plugins.kube.volume_restrictions import VolumeRestrictions
from pumice.testing import PodBuilder, cluster, node, pod
from tests.samples import times

ZONE, HOST = "zone", "kubernetes.io/hostname"
NODES = 6

labels = st.sampled_from("xyz")
selectors = st.one_of(
    labels.map(lambda value: {"matchLabels": {"app": value}}),
    labels.map(lambda value: {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": [value]}]}),
    st.just({"matchExpressions": [{"key": "app", "operator": "In", "values": ["x", "y"]}]}),
    st.just({}),
)
terms = st.builds(lambda selector, key: {"labelSelector": selector, "topologyKey": key}, selectors, st.sampled_from([ZONE, HOST]))
preferred = st.builds(lambda term, weight: {"podAffinityTerm": term, "weight": weight}, terms, st.integers(1, 100))
constraints = st.builds(
    lambda selector, key, skew, when: {"labelSelector": selector, "topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": when},
    selectors,
    st.sampled_from([ZONE, HOST]),
    st.integers(1, 2),
    st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
)


def few(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, max_size=2)


def sided(required: list[Any], soft: list[Any]) -> dict[str, Any]:
    return {
        "requiredDuringSchedulingIgnoredDuringExecution": required,
        "preferredDuringSchedulingIgnoredDuringExecution": soft,
    }


@st.composite
def pods(draw: st.DrawFn) -> PodBuilder:
    made = pod("p", draw(st.sampled_from(["default", "other"]))).label("app", draw(labels))
    if draw(st.booleans()):
        made = made.having("spec", "affinity", "podAffinity", value=sided(draw(few(terms)), draw(few(preferred))))
    if draw(st.booleans()):
        made = made.having("spec", "affinity", "podAntiAffinity", value=sided(draw(few(terms)), draw(few(preferred))))
    if draw(st.booleans()):
        made = made.having("spec", "topologySpreadConstraints", value=draw(few(constraints)))
    if draw(st.booleans()):
        made = made.having("spec", "containers", 0, "ports", value=[{"hostPort": draw(st.integers(80, 81))}])
    if draw(st.booleans()):
        disk = {"iqn": "q", "readOnly": draw(st.booleans())}
        made = made.having("spec", "volumes", value=[{"name": "v", "iscsi": disk}])
    return made


#: which pod, what becomes of it, and on which node
moves = st.lists(
    st.tuples(
        st.integers(0, 9), st.sampled_from(["place", "evict", "forget", "terminate", "leave", "relabel", "gone"]), st.integers(0, NODES - 1)
    ),
    max_size=12,
)


def world(wanted: Sequence[PodBuilder]) -> Cluster:
    nodes = [node(f"n{i}") if i == NODES - 1 else node(f"n{i}").label(ZONE, f"z{i % 3}") for i in range(NODES)]
    named = [each.having("metadata", "name", value=f"p{i}") for i, each in enumerate(wanted)]
    return cluster(*nodes, *named)


def rules(made: Cluster) -> tuple[list[Filter], list[Scorer]]:
    constraints = SpreadConstraints(made)
    filters = [InterPodAffinityFilter(made), PodTopologySpreadFilter(constraints), NodePorts(made), VolumeRestrictions(made)]
    return filters, [InterPodAffinityScorer(made), PodTopologySpreadScorer(constraints)]


def act(made: Cluster, wanted: Sequence[PodBuilder], number: int, what: str, row: int) -> None:
    key = f"{wanted[number].document['metadata']['namespace']}/p{number}"
    task = made.tasks.get(key)
    if task is None:
        return
    match what:
        case "place" if task.status == status.PENDING:
            made.move(task, status.ALLOCATED, row)
        case "evict" if task.node >= 0 and not task.evicted:
            made.move(task, status.RELEASING, task.node, evicted=True)
        case "forget":
            made.forget_eviction(task)
        case "terminate" if task.node >= 0 and not task.evicted:
            made.move(task, status.RELEASING, task.node)
        case "leave" if task.node >= 0:
            made.move(task, status.PENDING, -1)
        case "relabel" if task.node >= 0 and not task.evicted:
            changed = wanted[number].having("metadata", "name", value=f"p{number}").label("app", "xyz"[row % 3])
            made.put(*changed.on(f"n{task.node}").build())
        case "gone":
            made.remove("Pod", key)


@settings(max_examples=times(38), deadline=None)
@given(st.lists(pods(), min_size=2, max_size=10), moves)
def test_a_kept_evaluation_answers_as_a_fresh_one(wanted: list[PodBuilder], happenings: list[tuple[int, str, int]]) -> None:
    made = world(wanted)
    filters, scorers = rules(made)
    asker = next(iter(made.tasks.values()))
    kept = Evaluations(made, filters, scorers).of(asker)
    kept.refresh()
    for number, what, row in happenings:
        if number % len(wanted):
            act(made, wanted, number % len(wanted), what, row)
        kept.refresh()
        made.check()
    anew = Cluster()
    again = rules(_copy(made, anew))
    fresh = Evaluations(anew, *again).of(anew.tasks[asker.key])
    fresh.refresh()
    assert (kept.admitted == fresh.admitted).all()
    assert (kept.resolvable == fresh.resolvable).all()
    some = np.arange(NODES) != 1
    assert kept.totals(some).tolist() == fresh.totals(some).tolist()


def _copy(made: Cluster, into: Cluster) -> Cluster:
    """The same pods on the same nodes, in a cluster that has seen nothing else."""
    for wire in made.nodes.wire:
        into.put("Node", wire)
    for task in made.tasks.values():
        twin = pod(task.name, task.namespace).having("metadata", "labels", value=dict(task.labels)).build()[1]
        into.tasks[task.key] = copied = type(task)(task.key, twin, task.template, task.labels, task.annotations, task.number)
        if task.template.has_pod_terms:
            into.with_pod_affinity[task.template] = None
        if task.node >= 0:
            into.move(copied, task.status, task.node, evicted=task.evicted)
    return into


@settings(max_examples=times(25), deadline=None)
@given(
    st.lists(pods(), min_size=2, max_size=10), moves, st.lists(selectors, min_size=1, max_size=3), st.booleans(), st.sampled_from([0, 64])
)
def test_counts_of_groups_equal_a_recount(
    wanted: list[PodBuilder], happenings: list[tuple[int, str, int]], meant: list[Any], living: bool, few_rows: int
) -> None:
    made = world(wanted)
    scopes = tuple(PodScope(convert(each, LabelSelector).requirements, frozenset(["default"])) for each in meant)
    groups = [CountedPods((scope,), living) for scope in dict.fromkeys(scopes)] + [CountedPods(tuple(dict.fromkeys(scopes)), living)]
    kept = made.index(ExistingPods)
    codes, values = made.nodes.codes(ZONE)
    before, pod_counts.FEW = pod_counts.FEW, few_rows
    try:
        for number, what, row in happenings:
            kept.counts(groups[0]).near(ZONE, made.nodes)
            act(made, wanted, number % len(wanted), what, row)
        for group in groups:
            recount = np.zeros(NODES)
            for task in made.existing():
                recount[task.node] += group.has(task)
            assert kept.counts(group).array(NODES).tolist() == recount.tolist()
            expected = [recount[codes == code].sum() for code in range(len(values))]
            assert kept.counts(group).per_domain(codes, len(values)).tolist() == expected
            assert kept.counts(group).near(ZONE, made.nodes).tolist() == [[*expected, 0.0][code] for code in codes]
    finally:
        pod_counts.FEW = before
