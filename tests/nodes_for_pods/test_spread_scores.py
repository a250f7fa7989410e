"""PodTopologySpread's scores: the worked examples of the specification. In `pods`, each letter of a node is a pod with that label."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.plugins.kube.pod_topology_spread import PodTopologySpreadScorer
from pumice.scheduler.plugins.kube.spread_constraints import SYSTEM_DEFAULTS, SpreadConstraints
from pumice.testing import cluster, manifest
from tests.nodes_for_pods.asking import HOST, ZONE, app, scores, zoned

BOTH = "zone zone=z1 b=z1 x=z2 y=z2"


def soft(key: str, skew: int = 1, app: str | None = "foo", **more: Any) -> dict[str, Any]:
    selector = {} if app is None else {"labelSelector": {"matchLabels": {app: ""}}}
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"} | selector | more


def score(nodes: dict[str, str], pods: dict[str, str], constraints: list[dict[str, Any]], among: str = "") -> list[int]:
    """`pods`: node to what stands there: f and g for the labels foo and bar, x for both, n for foo in another namespace, t terminating."""
    existing = []
    for name, letters in pods.items():
        for number, letter in enumerate(letters):
            made = app(f"{name}-{number}", "any", name, "other" if letter == "n" else "default")
            made = made.label("foo", "") if letter in "fxnt" else made
            made = made.label("bar", "") if letter in "gx" else made
            existing.append(made.leaving() if letter == "t" else made)
    asker = app("p", "any").label("foo", "").label("bar", "").having("spec", "topologySpreadConstraints", value=constraints)
    made = cluster(*zoned(**nodes), *existing, asker)
    return scores(made, "default/p", PodTopologySpreadScorer(SpreadConstraints(made)), among)


FOUR = dict.fromkeys("abxy", "")
TWO_ZONES = {"a": "z1", "b": "z1", "x": "z2", "y": "z2"}

ROWS: dict[str, tuple[dict[str, str], dict[str, str], list[dict[str, Any]], str, list[int]]] = {
    "nothing counted": ({"a": "", "b": ""}, {}, [soft(HOST)], "", [100, 100]),
    "one feasible node": ({"a": "", "b": ""}, {"a": "ff", "b": "f"}, [soft(HOST)], "a", [100]),
    "even": ({"a": "", "b": ""}, {"a": "f", "b": "f"}, [soft(HOST)], "", [100, 100]),
    "uneven": (FOUR, {"a": "ff", "b": "f", "y": "fff"}, [soft(HOST)], "", [20, 60, 100, 0]),
    "no selector": (FOUR, {"a": "ff", "b": "f", "y": "fff"}, [soft(HOST, app=None)], "", [100] * 4),
    "an empty selector counts nobody": (FOUR, {"a": "ff", "b": "f", "y": "fff"}, [soft(HOST, labelSelector={})], "", [100] * 4),
    "nor by zone": (TWO_ZONES, {"a": "ff", "b": "f", "y": "fff"}, [soft(ZONE, labelSelector={})], "", [100] * 4),
    "greater skew": (FOUR, {"a": "ff", "b": "f", "y": "fff"}, [soft(HOST, 2)], "", [33, 66, 100, 16]),
    "skew of three": (FOUR, {"a": "ffff", "b": "fff", "x": "ff", "y": "f"}, [soft(HOST, 3)], "", [44, 66, 77, 100]),
    "some feasible": (FOUR, {"a": "ffff", "b": "ff", "x": "f", "y": "fff"}, [soft(HOST)], "a b x", [33, 83, 100]),
    "zone": (TWO_ZONES, {"a": "ffff", "b": "ff", "x": "f", "y": "fff"}, [soft(ZONE)], "a b x", [75, 75, 100]),
    "zone and host": (TWO_ZONES, {"a": "ff", "b": "f", "x": "ff", "y": "ffff"}, [soft(ZONE), soft(HOST)], "a x", [100, 63]),
    "two zones": (TWO_ZONES, {"a": "xg", "b": "ff", "x": "fx", "y": "f"}, [soft(ZONE), soft(ZONE, app="bar")], "a x", [85, 100]),
    "zone, host of another label": (TWO_ZONES, {"a": "f", "b": "x", "y": "fg"}, [soft(ZONE), soft(HOST, app="bar")], "", [60, 20, 100, 60]),
    "the same, elsewhere": (TWO_ZONES, {"b": "g", "x": "f", "y": "x"}, [soft(ZONE), soft(HOST, app="bar")], "", [100, 60, 40, 0]),
    "the same, y not feasible": (TWO_ZONES, {"a": "f", "b": "x", "y": "fg"}, [soft(ZONE), soft(HOST, app="bar")], "a b x", [50, 25, 100]),
    "another namespace": ({"a": "", "b": ""}, {"a": "fn", "b": "ffn"}, [soft(HOST)], "", [100, 33]),
    "terminating": ({"a": "", "b": ""}, {"a": "t", "b": "f"}, [soft(HOST)], "", [100, 0]),
}


@pytest.mark.parametrize("name", ROWS)
def test_scores_are_those_of_the_worked_examples(name: str) -> None:
    nodes, pods, constraints, among, expected = ROWS[name]
    assert score(nodes, pods, constraints, among) == expected


def labelled_nodes(labels: dict[str, str]) -> list[Any]:
    return [
        each.label("node", value) if value else each
        for each, value in zip(zoned(**dict.fromkeys(labels, "")), labels.values(), strict=True)
    ]


def existing(counts: dict[str, int]) -> list[Any]:
    return [app(f"{name}-{number}", "s", name) for name, count in counts.items() for number in range(count)]


def constrained(*constraints: dict[str, Any]) -> Any:
    wanted = [
        {"labelSelector": {"matchLabels": {"app": "s"}}, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"} | c for c in constraints
    ]
    return app("p", "s").having("spec", "topologySpreadConstraints", value=wanted)


def test_a_node_without_the_label_gets_nothing() -> None:
    made = cluster(
        *labelled_nodes({"a": "a", "b": "", "c": "c", "d": "d"}),
        *existing({"a": 4, "b": 2, "c": 1, "d": 3}),
        constrained({"topologyKey": "node"}),
    )
    assert scores(made, "default/p", PodTopologySpreadScorer(SpreadConstraints(made)), "a b c") == [16, 0, 100]


def test_without_any_candidate_that_has_the_label_all_get_nothing() -> None:
    made = cluster(*zoned(a="", b=""), constrained({"topologyKey": "node"}))
    assert scores(made, "default/p", PodTopologySpreadScorer(SpreadConstraints(made))) == [0, 0]


def test_a_pod_without_constraints_is_not_scored() -> None:
    made = cluster(*zoned(a=""), app("p", "s"))
    assert scores(made, "default/p", PodTopologySpreadScorer(SpreadConstraints(made))) == []


@pytest.mark.parametrize(("policy", "expected"), [("Honor", [0, 33, 100]), ("Ignore", [66, 100, 100])])
@pytest.mark.parametrize("kind", ["nodeAffinityPolicy", "nodeTaintsPolicy"])
def test_a_policy_decides_whether_nodes_that_the_pod_cannot_use_count(kind: str, policy: str, expected: list[int]) -> None:
    a, b, c = labelled_nodes({"a": "a", "b": "b", "c": "c"})
    asker = constrained({"topologyKey": "node", kind: policy})
    if kind == "nodeAffinityPolicy":
        a, b, asker = a.label("use", "yes"), b.label("use", "yes"), asker.selector("use", "yes")
    else:
        c = c.taint("kept")
    made = cluster(a, b, c, *existing({"a": 2, "b": 1, "c": 1}), asker)
    assert scores(made, "default/p", PodTopologySpreadScorer(SpreadConstraints(made))) == expected


def test_a_least_number_of_domains_does_not_matter_to_scores() -> None:
    wanted = {"topologyKey": "node", "maxSkew": 2, "minDomains": 10}
    made = cluster(*labelled_nodes({"a": "a", "b": "b", "c": "c"}), *existing({"a": 2, "b": 2, "c": 1}), constrained(wanted))
    assert scores(made, "default/p", PodTopologySpreadScorer(SpreadConstraints(made))) == [75, 75, 100]


def test_defaults_apply_to_pods_that_a_service_selects_and_do_not_ask_for_every_label() -> None:
    service = manifest("Service", "s", spec={"selector": {"app": "s"}})
    made = cluster(service, *zoned(a="", b="", c="", d=""), *existing({"a": 4, "b": 3, "c": 2, "d": 1}), app("p", "s"), app("q", "other"))
    scorer = PodTopologySpreadScorer(SpreadConstraints(made, SYSTEM_DEFAULTS))
    assert scores(made, "default/p", scorer) == [44, 66, 77, 100]
    assert scores(made, "default/q", scorer) == []
    assert scorer.key(made.tasks["default/p"]) == scorer.key(made.tasks["default/a-0"])
    assert scorer.key(made.tasks["default/p"]) != scorer.key(made.tasks["default/q"])


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "ReplicationController"])
def test_defaults_apply_to_pods_that_a_controller_made(kind: str) -> None:
    selector: dict[str, Any] = {"app": "s"} if kind == "ReplicationController" else {"matchLabels": {"app": "s"}}
    owner = [{"kind": kind, "name": "s", "uid": "s", "apiVersion": "v1", "controller": True}]
    made = cluster(
        manifest(kind, "s", spec={"selector": selector}),
        manifest("Service", "none", spec={}),
        *zoned(a="z1", b="z2"),
        *existing({"a": 2}),
        app("p", "s").having("metadata", "ownerReferences", value=owner),
        app("orphan", "s").having("metadata", "ownerReferences", value=[owner[0] | {"name": "gone"}]),
    )
    scorer = PodTopologySpreadScorer(SpreadConstraints(made, [SYSTEM_DEFAULTS[1]], system=False))
    assert scores(made, "default/p", scorer)[1] == 100
    assert scores(made, "default/orphan", scorer) == []


def test_pods_with_equal_labels_where_constraints_look_share_an_evaluation() -> None:
    pods = [constrained({"topologyKey": HOST}).having("metadata", "name", value=f"p{i}").label("index", str(i)) for i in range(3)]
    made = cluster(*zoned(a=""), *pods)
    scorer = PodTopologySpreadScorer(SpreadConstraints(made))
    assert len({scorer.key(task) for task in made.tasks.values()}) == 1


def test_label_keys_complete_the_selector_with_the_pods_own_values() -> None:
    wanted = {"labelSelector": {}, "topologyKey": HOST, "matchLabelKeys": ["app", "absent"]}
    made = cluster(*zoned(a="", b=""), *existing({"a": 1}), app("other", "o", "b"), constrained(wanted))
    assert scores(made, "default/p", PodTopologySpreadScorer(SpreadConstraints(made))) == [0, 100]
