"""PodTopologySpread's filter: how uneven domains may become."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api.pod import TopologySpreadConstraint
from pumice.api.structs import convert
from pumice.scheduler.model import status
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.plugins.kube.pod_topology_spread import PLUGIN, PodTopologySpreadFilter, SpreadArgs
from pumice.scheduler.plugins.kube.spread_constraints import SpreadConstraints
from pumice.testing import cluster, manifest
from tests.nodes_for_pods.asking import HOST, ZONE, admitted, app, refusals, zoned

SKEWED = "node(s) didn't match pod topology spread constraints"
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)!"


def hard(key: str = ZONE, **more: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "s"}}} | more


def asker(*constraints: dict[str, Any], label: str = "s") -> Any:
    return app("p", label).having("spec", "topologySpreadConstraints", value=list(constraints))


def existing(**counts: int) -> list[Any]:
    return [app(f"{name}{number}", "s", name) for name, count in counts.items() for number in range(count)]


def rule(made: Cluster) -> PodTopologySpreadFilter:
    return PodTopologySpreadFilter(SpreadConstraints(made))


def where(*things: Any) -> str:
    made = cluster(*things)
    return admitted(made, "default/p", rule(made))


def test_a_domain_may_not_be_above_the_least_by_more_than_the_skew() -> None:
    nodes = zoned(a="z1", b="z1", c="z2", d="z3")
    assert where(*nodes, *existing(a=1, b=1, c=1, d=1), asker(hard())) == "c d"
    assert where(*nodes, *existing(a=1, b=1, c=1, d=1), asker(hard(maxSkew=2))) == "a b c d"


def test_a_pod_that_the_selector_does_not_mean_adds_nothing() -> None:
    assert where(*zoned(a="z1", b="z2"), *existing(a=1), asker(hard(), label="other")) == "a b"


def test_a_node_without_the_label_of_any_constraint_is_refused_for_good_and_does_not_count() -> None:
    made = cluster(*zoned(a="z1", b="z2", c="", d="z2"), *existing(b=2, c=1), asker(hard(), hard(HOST)))
    assert refusals(made, "default/p", rule(made)) == {"b": SKEWED, "c": MISSING, "d": SKEWED}
    made = cluster(*zoned(a="z1", b="z2", c=""), *existing(b=2, c=1), asker(hard(HOST), hard()))
    assert refusals(made, "default/p", rule(made)) == {"b": SKEWED, "c": MISSING}


def test_with_fewer_domains_than_asked_for_the_least_is_nothing() -> None:
    nodes, pods = zoned(a="z1", b="z2"), existing(a=1, b=1)
    assert where(*nodes, *pods, asker(hard(minDomains=2))) == "a b"
    assert where(*nodes, *pods, asker(hard(minDomains=3))) == ""


def test_an_empty_selector_counts_nobody_and_an_absent_one_means_nobody() -> None:
    assert where(*zoned(a="z1", b="z2"), *existing(a=3), asker(hard(labelSelector={}))) == "a b"
    bare = {key: value for key, value in hard().items() if key != "labelSelector"}
    assert where(*zoned(a="z1", b="z2"), *existing(a=3), asker(bare)) == "a b"


def test_terminating_pods_and_other_namespaces_do_not_count() -> None:
    pods = (app("x", "s", "a").leaving(), app("y", "s", "a", "other"))
    assert where(*zoned(a="z1", b="z2"), *pods, asker(hard())) == "a b"


def test_a_pod_that_begins_to_leave_no_longer_counts() -> None:
    made = cluster(*zoned(a="z1", b="z2"), *existing(a=1), asker(hard()))
    assert admitted(made, "default/p", rule(made)) == "b"
    made.move(made.tasks["default/a0"], status.RELEASING, made.nodes.rows["a"])
    assert admitted(made, "default/p", rule(made)) == "a b"


@pytest.mark.parametrize(("policy", "expected"), [(None, "b"), ("Honor", "b"), ("Ignore", "")])
def test_by_default_nodes_that_the_pod_does_not_select_make_no_domain(policy: str | None, expected: str) -> None:
    a, b, c = zoned(a="z1", b="z2", c="z3")
    wanted = hard() if policy is None else hard(nodeAffinityPolicy=policy)
    pod = asker(wanted).selector("use", "yes")
    made = cluster(a.label("use", "yes"), b.label("use", "yes"), c, *existing(a=2, b=1), pod)
    refused = refusals(made, "default/p", rule(made))
    assert " ".join(name for name in "ab" if name not in refused) == expected


@pytest.mark.parametrize(("policy", "expected"), [(None, ""), ("Honor", "b"), ("Ignore", "")])
def test_on_request_tainted_nodes_make_no_domain(policy: str | None, expected: str) -> None:
    a, b, c = zoned(a="z1", b="z2", c="z3")
    wanted = hard() if policy is None else hard(nodeTaintsPolicy=policy)
    made = cluster(a, b, c.taint("kept"), *existing(a=2, b=1), asker(wanted))
    refused = refusals(made, "default/p", rule(made))
    assert " ".join(name for name in "ab" if name not in refused) == expected


def test_default_constraints_may_be_hard() -> None:
    service = manifest("Service", "s", spec={"selector": {"app": "s"}})
    made = cluster(service, *zoned(a="z1", b="z2"), *existing(a=1), app("p", "s"), app("q", "other"))
    constraints = SpreadConstraints(made, [TopologySpreadConstraint(1, ZONE, "DoNotSchedule")], system=False)
    assert admitted(made, "default/p", PodTopologySpreadFilter(constraints)) == "b"
    assert admitted(made, "default/q", PodTopologySpreadFilter(constraints)) == "a b"


def test_default_constraints_have_no_label_keys_of_their_own() -> None:
    service = manifest("Service", "s", spec={"selector": {"app": "s"}})
    made = cluster(service, *zoned(a="z1", b="z2"), app("x", "s", "a").label("version", "1"), app("p", "s").label("version", "2"))
    default = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["version"]}
    args = convert({"defaultingType": "List", "defaultConstraints": [default]}, SpreadArgs)
    (filter_,) = PLUGIN.filters(args, made) if PLUGIN.filters else ()
    assert admitted(made, "default/p", filter_) == "b"
