"""NodeResourcesFit's filter, and what Volcano's predicates and nodeorder make of all these rules."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.framework.policy import PluginOption
from pumice.scheduler.plugins.kube.node_resources_fit import FitFilter
from pumice.scheduler.plugins.volcano.nodeorder import NodeOrder, NodeOrderArgs
from pumice.scheduler.plugins.volcano.predicates import Predicates, PredicatesArgs
from pumice.testing import cluster, node, pod, podgroup, schedule, session
from tests.nodes_for_pods.asking import admitted, app, refusals, zoned


def test_what_does_not_fit_is_told_and_what_never_would_is_final() -> None:
    nodes = [node("a").cpu(4).memory("4Gi"), node("b").cpu(1).memory("4Gi"), node("c").cpu(4).memory("4Gi").pods(1), node("d").cpu(2)]
    made = cluster(*nodes, pod("x").cpu(3).on("a"), pod("y").on("c"), pod("p").cpu(2).memory("1Gi"), pod("q"))
    refused = refusals(made, "default/p", FitFilter())
    assert refused == {"a": "Insufficient cpu", "b": "Insufficient cpu!", "c": "Too many pods", "d": "Insufficient memory!"}
    assert admitted(made, "default/q", FitFilter()) == "a b d"


@pytest.mark.parametrize(
    ("ignored", "groups", "expected"),
    [((), (), ""), (("test/foo",), (), "a"), ((), ("test",), "a"), (("cpu",), ("kubernetes.io",), "")],
)
def test_only_extended_resources_can_be_ignored(ignored: tuple[str, ...], groups: tuple[str, ...], expected: str) -> None:
    made = cluster(node("a").cpu(4), pod("p").cpu(1).request("test/foo", 1))
    assert admitted(made, "default/p", FitFilter(frozenset(ignored), frozenset(groups))) == expected


def test_an_exact_fit_fits() -> None:
    made = cluster(node("a").cpu(4).pods(2), pod("x").cpu(3).on("a"), pod("p").cpu(1))
    assert admitted(made, "default/p", FitFilter()) == "a"


ALL_OFF = {name: False for name in PredicatesArgs.__struct_fields__ if isinstance(getattr(PredicatesArgs(), name), bool)}


def named(rules: list[Any]) -> list[str]:
    return list(dict.fromkeys(rule.name for rule in rules))


def test_predicates_can_be_switched_off_but_for_cordons_and_the_number_of_pods() -> None:
    made = cluster(node("a"))
    with session(made, PluginOption(Predicates, PredicatesArgs(**ALL_OFF))) as opened:
        assert named(opened.plugins.rules[0]) == ["PodLimit", "NodeUnschedulable"]
    with session(made, "predicates") as opened:
        volumes = ["NodeVolumeLimits", "VolumeZone", "PodTopologySpread", "VolumeBinding", "DynamicResources"]
        expected = ["PodLimit", "NodeUnschedulable", "NodeAffinity", "TaintToleration", "NodePorts", "InterPodAffinity", *volumes]
        assert named(opened.plugins.rules[0]) == expected


def test_nodeorder_takes_the_scorers_that_have_a_weight() -> None:
    made = cluster(node("a"))
    with session(made, "nodeorder") as opened:
        weights = {rule.name: rule.weight for rule in opened.plugins.rules[1]}
    assert weights == {
        "NodeResourcesFit": 1,
        "NodeResourcesBalancedAllocation": 1,
        "NodeAffinity": 2,
        "TaintToleration": 3,
        "InterPodAffinity": 2,
        "ImageLocality": 1,
        "PodTopologySpread": 2,
    }
    none = dict.fromkeys(NodeOrderArgs.__struct_fields__, 0)
    with session(made, PluginOption(NodeOrder, NodeOrderArgs(**none))) as opened:
        assert opened.plugins.rules[1] == []


def test_nodeorder_hears_wishes_only_where_somebody_had_any_when_the_session_opened() -> None:
    near = {"labelSelector": {"matchLabels": {"app": "q"}}, "topologyKey": "kubernetes.io/hostname"}
    wish = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": near}]}
    host = app("p", "p").cpu(1).gang("p").having("spec", "affinity", "podAffinity", value=wish)
    joins = app("q", "q").cpu(1).gang("q")
    groups = (
        podgroup("p").phase("Inqueue").created("2026-01-01T00:00:00Z"),
        podgroup("q").phase("Inqueue").created("2026-01-01T00:01:00Z"),
    )
    outcome = schedule(cluster(*zoned(a="", b=""), *groups, host, joins), "allocate", "gang", "nodeorder")
    assert outcome.binds == {"default/p": "a", "default/q": "b"}
    first = host.having("metadata", "name", value="before").on("a")
    outcome = schedule(cluster(*zoned(a="", b=""), *groups, first, joins), "allocate", "gang", "nodeorder")
    assert outcome.binds == {"default/q": "a"}
