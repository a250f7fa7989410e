"""NodeAffinity and TaintToleration: which nodes a pod selects, and which do not want it."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api.pod import NodeSelector, PreferredSchedulingTerm
from pumice.api.structs import convert
from pumice.scheduler.plugins.kube.node_affinity import NodeAffinityFilter, NodeAffinityScorer
from pumice.scheduler.plugins.kube.taint_toleration import TaintFilter, TaintScorer
from pumice.testing import PodBuilder, cluster, node, pod
from tests.nodes_for_pods.asking import admitted, refusals, scores

MISMATCH = "node(s) didn't match Pod's node affinity/selector!"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
NODES = [node("a").label("gen", "3").label("x", "a"), node("b").label("gen", "4"), node("c").label("gen", "many"), node("d")]


def expression(text: str) -> dict[str, Any]:
    key, operator, *values = text.split()
    return {"key": key, "operator": operator, "values": values}


def wants(*terms: list[str], fields: str = "") -> PodBuilder:
    made: list[dict[str, Any]] = [{"matchExpressions": [expression(text) for text in term]} for term in terms]
    if fields:
        made.append({"matchFields": [expression(fields)]})
    return pod("p").having("spec", "affinity", "nodeAffinity", REQUIRED, value={"nodeSelectorTerms": made})


@pytest.mark.parametrize(
    ("terms", "expected"),
    [
        ([["gen In 3 4"]], "a b"),
        ([["gen NotIn 3 4"]], "c d"),
        ([["gen Exists"]], "a b c"),
        ([["gen DoesNotExist"]], "d"),
        ([["gen Gt 3"]], "b"),
        ([["gen Lt 4"]], "a"),
        ([["gen Exists", "x Exists"]], "a"),
        ([["x Exists"], ["gen Gt 3"]], "a b"),
        ([[]], ""),
        ([], ""),
        ([["gen In"], ["x Exists"]], "a"),
        ([["gen Exists 3"]], ""),
        ([["gen Gt 3 4"]], ""),
        ([["gen Gt many"]], ""),
        ([["gen Near 3"]], ""),
        ([["gen In -3"]], ""),
    ],
)
def test_a_node_does_if_any_term_holds_as_a_whole(terms: list[list[str]], expected: str) -> None:
    made = cluster(*NODES, wants(*terms))
    assert admitted(made, "default/p", NodeAffinityFilter()) == expected
    assert set(refusals(made, "default/p", NodeAffinityFilter()).values()) <= {MISMATCH}


def test_the_selector_must_hold_as_well() -> None:
    made = cluster(*NODES, wants(["gen Exists"]).selector("x", "a"), pod("q").selector("gen", "4"), pod("r"))
    assert admitted(made, "default/p", NodeAffinityFilter()) == "a"
    assert admitted(made, "default/q", NodeAffinityFilter()) == "b"
    assert NodeAffinityFilter().prepare(made.tasks["default/r"]) is None


def test_a_node_may_be_named() -> None:
    narrowed = "node(s) didn't satisfy plugin(s) [NodeAffinity]!"
    made = cluster(*NODES, wants(fields="metadata.name In b"))
    assert refusals(made, "default/p", NodeAffinityFilter()) == dict.fromkeys("acd", narrowed)
    assert admitted(cluster(*NODES, wants(fields="metadata.name NotIn b")), "default/p", NodeAffinityFilter()) == "a c d"
    assert admitted(cluster(*NODES, wants(["gen Gt 3"], fields="metadata.name In a")), "default/p", NodeAffinityFilter()) == "a b"
    assert admitted(cluster(*NODES, wants(fields="metadata.uid In b")), "default/p", NodeAffinityFilter()) == ""


def test_names_that_exclude_one_another_are_told() -> None:
    both = [{"matchFields": [expression("metadata.name In a"), expression("metadata.name In b")]}]
    asker = pod("p").having("spec", "affinity", "nodeAffinity", REQUIRED, value={"nodeSelectorTerms": both})
    assert refusals(cluster(*NODES, asker), "default/p", NodeAffinityFilter()) == dict.fromkeys("abcd", "pod affinity terms conflict!")


def test_what_the_scheduler_adds_comes_first_and_has_words_of_its_own() -> None:
    added = convert({"nodeSelectorTerms": [{"matchExpressions": [expression("gen Exists")]}]}, NodeSelector)
    made = cluster(*NODES, pod("p").selector("gen", "3"))
    refused = refusals(made, "default/p", NodeAffinityFilter(added))
    assert refused == {"b": MISMATCH, "c": MISMATCH, "d": "node(s) didn't match scheduler-enforced node affinity!"}


def test_preferred_terms_add_their_weights_and_the_greatest_sum_is_a_hundred() -> None:
    terms = [
        {"weight": 8, "preference": {"matchExpressions": [expression("gen Exists")]}},
        {"weight": 2, "preference": {"matchExpressions": [expression("x Exists")]}},
    ]
    made = cluster(*NODES, pod("p").having("spec", "affinity", "nodeAffinity", PREFERRED, value=terms), pod("q"))
    assert scores(made, "default/p", NodeAffinityScorer()) == [100, 80, 80, 0]
    assert scores(made, "default/q", NodeAffinityScorer()) == []
    assert scores(made, "default/q", NodeAffinityScorer([convert(terms[1], PreferredSchedulingTerm)])) == [100, 0, 0, 0]


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"key": "k", "operator": "Equal", "value": "5"}, True),
        ({"key": "k", "value": "5", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "5", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "6"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Gt", "value": "4"}, True),
        ({"key": "k", "operator": "Gt", "value": "5"}, False),
        ({"key": "k", "operator": "Lt", "value": "6"}, True),
        ({"key": "k", "operator": "Lt", "value": "many"}, False),
        ({"key": "k", "operator": "Near", "value": "5"}, False),
    ],
)
def test_a_taint_is_tolerated_by_key_effect_and_value(toleration: dict[str, Any], expected: bool) -> None:
    asker = pod("p").having("spec", "tolerations", value=[toleration])
    made = cluster(node("a").taint("k", "5"), node("b").taint("soft", "", "PreferNoSchedule"), asker)
    untolerated = {"a": "node(s) had untolerated taint(s)!"}
    by_default = {} if expected and toleration.get("operator") not in ("Gt", "Lt") else untolerated
    assert refusals(made, "default/p", TaintFilter()) == by_default
    made.nodes.numeric_taints = True
    assert refusals(made, "default/p", TaintFilter()) == ({} if expected else untolerated)


def test_fewer_taints_that_only_prefer_are_better() -> None:
    nodes = [
        node("a").taint("x", "", "PreferNoSchedule").taint("y", "", "PreferNoSchedule"),
        node("b").taint("x", "", "PreferNoSchedule"),
        node("c"),
    ]
    made = cluster(*nodes, pod("p"), pod("q").tolerates("x"), pod("r").tolerates("x", "NoSchedule"))
    assert scores(made, "default/p", TaintScorer()) == [0, 50, 100]
    assert scores(made, "default/q", TaintScorer()) == [0, 100, 100]
    assert scores(made, "default/r", TaintScorer()) == [0, 50, 100]
