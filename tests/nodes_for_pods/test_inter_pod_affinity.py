"""InterPodAffinity: who must, must not, or would rather stand near whom."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.scheduler.model import status
from pumice.scheduler.plugins.kube.indexes.existing_affinity_terms import FEW
from pumice.scheduler.plugins.kube.inter_pod_affinity import InterPodAffinityFilter, InterPodAffinityScorer
from pumice.testing import PodBuilder, cluster, manifest, node
from tests.nodes_for_pods.asking import HOST, ZONE, admitted, app, refusals, scores, zoned

LONELY = "node(s) didn't match pod affinity rules!"
CROWDED = "node(s) didn't match pod anti-affinity rules"
UNWELCOME = "node(s) didn't satisfy existing pods anti-affinity rules"
REQUIRED, PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
ZONES = zoned(a="z1", b="z1", c="z2", d="")


def term(label: str | None, key: str = ZONE, **more: Any) -> dict[str, Any]:
    selector = {} if label is None else {"labelSelector": {"matchLabels": {"app": label}} if label else {}}
    return {"topologyKey": key} | selector | more


def near(pod: PodBuilder, *terms: dict[str, Any], side: str = "podAffinity") -> PodBuilder:
    return pod.having("spec", "affinity", side, REQUIRED, value=list(terms))


def far(pod: PodBuilder, *terms: dict[str, Any]) -> PodBuilder:
    return near(pod, *terms, side="podAntiAffinity")


def likes(pod: PodBuilder, weight: int, wanted: dict[str, Any], side: str = "podAffinity") -> PodBuilder:
    return pod.having("spec", "affinity", side, PREFERRED, value=[{"weight": weight, "podAffinityTerm": wanted}])


def where(*things: Any) -> str:
    made = cluster(*ZONES, *things)
    return admitted(made, "default/p", InterPodAffinityFilter(made))


def test_required_affinity_admits_the_domains_of_the_pods_it_means() -> None:
    assert where(app("web", "web", "a"), near(app("p", "p"), term("web"))) == "a b"


def test_a_pod_counts_for_affinity_only_if_all_terms_mean_it() -> None:
    asker = near(app("p", "p"), term("web"), term("db", HOST))
    assert where(app("web", "web", "a"), app("db", "db", "a"), asker) == ""
    both = near(app("p", "p"), term("web"), {"topologyKey": HOST, "labelSelector": {"matchLabels": {"tier": "back"}}})
    assert where(app("web", "web", "a").label("tier", "back"), both) == "a"


def test_the_first_of_its_kind_goes_anywhere_that_has_the_label() -> None:
    assert where(near(app("p", "p"), term("p"))) == "a b c"
    assert where(near(app("p", "p"), term("web"))) == ""
    assert where(near(app("p", "p"), term("p"), term("p", HOST))) == "a b c"


def test_a_pod_of_its_kind_on_a_node_without_the_label_does_not_hold_it_back() -> None:
    assert where(app("other", "p", "d"), near(app("p", "p"), term("p"))) == "a b c"
    assert where(app("other", "p", "c"), near(app("p", "p"), term("p"))) == "c"


def test_required_anti_affinity_refuses_the_domains_of_each_term() -> None:
    made = cluster(*ZONES, app("web", "web", "a"), app("db", "db", "c"), far(app("p", "p"), term("web"), term("db", HOST)))
    assert refusals(made, "default/p", InterPodAffinityFilter(made)) == dict.fromkeys("abc", CROWDED)


def test_standing_pods_refuse_whom_their_anti_affinity_means() -> None:
    made = cluster(*ZONES, far(app("web", "web", "a"), term("p")), app("p", "p"), app("q", "q"))
    rule = InterPodAffinityFilter(made)
    assert refusals(made, "default/p", rule) == dict.fromkeys("ab", UNWELCOME)
    assert rule.prepare(made.tasks["default/q"]) is None
    assert rule.key(made.tasks["default/p"]) != rule.key(made.tasks["default/q"])


def test_of_several_refusals_affinity_has_the_first_word_and_standing_pods_the_last() -> None:
    asker = far(near(app("p", "p"), term("web")), term("db", HOST))
    made = cluster(*ZONES, app("web", "web", "a"), app("db", "db", "b"), far(app("x", "x", "a"), term("p")), asker)
    refused = refusals(made, "default/p", InterPodAffinityFilter(made))
    assert refused == {"a": UNWELCOME, "b": CROWDED, "c": LONELY, "d": LONELY}


def test_without_any_terms_in_the_cluster_the_rules_stay_out() -> None:
    made = cluster(*ZONES, app("web", "web", "a"), app("p", "p"))
    task = made.tasks["default/p"]
    for rule in (InterPodAffinityFilter(made), InterPodAffinityScorer(made)):
        assert rule.prepare(task) is None and rule.key(task) is None
    assert "terms" not in made.memory


def test_terms_of_pods_that_have_gone_are_forgotten_and_those_of_the_others_still_hold() -> None:
    made = cluster(*ZONES, far(app("stays", "web", "a"), term("p")), app("p", "p"))
    for number in range(2 * FEW):
        made.put(*far(app("passing", "web", "c"), term(f"p{number}")).build())
        assert admitted(made, "default/p", InterPodAffinityFilter(made)) == "c d"
        made.remove("Pod", "default/passing")
        assert len(made.with_pod_affinity) <= 2 * FEW
    made.put(*far(app("again", "web", "c"), term("p0")).build())
    made.put(*app("p", "p0").build())
    assert admitted(made, "default/p", InterPodAffinityFilter(made)) == "a b d"


def test_terminating_pods_still_count() -> None:
    assert where(app("web", "web", "a").leaving(), near(app("p", "p"), term("web"))) == "a b"


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ({}, "c"),
        ({"namespaces": ["east"]}, "a b"),
        ({"namespaces": ["east", "default"]}, "a b c"),
        ({"namespaceSelector": {"matchLabels": {"team": "ml"}}}, "a b"),
        ({"namespaceSelector": {"matchLabels": {"team": "none"}}, "namespaces": ["default"]}, "c"),
        ({"namespaceSelector": {}}, "a b c"),
    ],
)
def test_a_term_means_pods_of_its_own_namespace_unless_it_names_others(scope: dict[str, Any], expected: str) -> None:
    east = manifest("Namespace", "east").label("team", "ml")
    pods = (app("web", "web", "a", "east"), app("web", "web", "c"))
    assert where(east, *pods, near(app("p", "p"), term("web", **scope))) == expected


def test_a_namespace_that_gets_the_label_is_meant_from_then_on() -> None:
    asker = far(app("p", "p"), term("web", namespaceSelector={"matchLabels": {"team": "ml"}}))
    made = cluster(manifest("Namespace", "east"), *ZONES, app("web", "web", "a", "east"), asker)
    assert admitted(made, "default/p", InterPodAffinityFilter(made)) == "a b c d"
    made.put(*manifest("Namespace", "east").label("team", "ml").build())
    assert admitted(made, "default/p", InterPodAffinityFilter(made)) == "c d"


def test_label_keys_take_over_the_pods_own_values() -> None:
    same = {"matchLabelKeys": ["version", "absent"]}
    pods = (app("old", "web", "a").label("version", "1"), app("new", "web", "c").label("version", "2"))
    assert where(*pods, near(app("p", "p").label("version", "2"), term("web", **same))) == "c"
    other = {"mismatchLabelKeys": ["version"]}
    assert where(*pods, near(app("p", "p").label("version", "2"), term("web", **other))) == "a b"
    existing = far(app("old", "web", "a").label("version", "1"), term("p", **same))
    assert where(existing, app("p", "p").label("version", "1")) == "c d"
    assert where(existing, app("p", "p").label("version", "2")) == "a b c d"


def test_an_absent_selector_means_nobody_and_an_empty_one_everybody() -> None:
    assert where(app("web", "web", "a"), near(app("p", "p"), term(None, matchLabelKeys=["app"]))) == ""
    assert where(app("web", "web", "a"), near(app("p", "p"), term(""))) == "a b"


def test_answers_follow_pods_that_come_and_go() -> None:
    made = cluster(*ZONES, far(app("web", "web", "a"), term("p")), far(app("p", "p"), term("p", HOST)), far(app("q", "p"), term("p", HOST)))
    rule = InterPodAffinityFilter(made)
    assert admitted(made, "default/p", rule) == "c d"
    made.move(made.tasks["default/q"], status.ALLOCATED, made.nodes.rows["c"])
    made.move(made.tasks["default/web"], status.RELEASING, made.nodes.rows["a"], evicted=True)
    assert admitted(made, "default/p", rule) == "a b d"
    made.forget_eviction(made.tasks["default/web"])
    made.move(made.tasks["default/q"], status.PENDING, -1)
    assert admitted(made, "default/p", rule) == "c d"


def test_a_node_that_joins_later_is_counted_too() -> None:
    made = cluster(*ZONES, app("x", "web", "a"), likes(app("p", "p"), 1, term("web", HOST)), near(app("q", "q"), term("web", HOST)))
    rule = InterPodAffinityFilter(made)
    assert admitted(made, "default/q", rule) == "a"
    made.put(*node("e").build())
    made.put(*app("y", "web", "e").build())
    assert admitted(made, "default/q", rule) == "a e"


def test_pods_with_equal_labels_where_terms_look_share_an_evaluation() -> None:
    made = cluster(*ZONES, far(app("web", "web", "a"), term("p")), *[app(f"p{i}", "p").label("index", str(i)) for i in range(3)])
    rule = InterPodAffinityFilter(made)
    assert len({rule.key(made.tasks[f"default/p{i}"]) for i in range(3)}) == 1


def test_a_selector_without_any_value_to_look_up_is_held_against_every_pod() -> None:
    exists = {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}, "topologyKey": HOST}
    made = cluster(*ZONES, app("web", "web", "a"), far(app("p", "p"), exists), far(app("q", "q"), exists))
    rule = InterPodAffinityFilter(made)
    assert admitted(made, "default/p", rule) == "b c d"
    made.move(made.tasks["default/q"], status.ALLOCATED, made.nodes.rows["b"])
    assert admitted(made, "default/p", rule) == "c d"


# -- scores


def scored(*things: Any, **options: Any) -> list[int]:
    made = cluster(*ZONES, *things)
    return scores(made, "default/p", InterPodAffinityScorer(made, **options))


def test_preferences_count_every_pod_near() -> None:
    assert scored(app("x", "web", "a"), likes(app("p", "p"), 5, term("web"))) == [100, 100, 0, 0]
    assert scored(app("x", "web", "a"), likes(app("p", "p"), 5, term("web"), "podAntiAffinity")) == [0, 0, 100, 100]


def test_weights_of_several_preferences_add_up() -> None:
    both = [{"weight": 8, "podAffinityTerm": term("web")}, {"weight": 2, "podAffinityTerm": term("db", HOST)}]
    asker = app("p", "p").having("spec", "affinity", "podAffinity", PREFERRED, value=both)
    assert scored(app("x", "web", "c"), app("y", "db", "a"), app("z", "db", "c"), asker) == [20, 0, 100, 0]


def test_preferences_of_standing_pods_count_as_well() -> None:
    assert scored(likes(app("x", "web", "c"), 5, term("p")), app("p", "p")) == [0, 0, 100, 0]
    assert scored(likes(app("x", "web", "c"), 5, term("p"), "podAntiAffinity"), app("p", "p")) == [100, 100, 0, 100]


def test_required_affinity_of_standing_pods_counts_by_the_hard_weight() -> None:
    existing = near(app("x", "web", "a"), term("p"))
    assert scored(existing, app("p", "p")) == [100, 100, 0, 0]
    assert scored(existing, app("p", "p"), hard_weight=0) == []


def test_what_standing_pods_prefer_can_be_ignored_for_a_pod_that_prefers_nothing() -> None:
    existing = likes(app("x", "web", "c"), 5, term("p"))
    assert scored(existing, app("p", "p"), ignore_existing=True) == []
    assert scored(existing, likes(app("p", "p"), 1, term("none")), ignore_existing=True) == [0, 0, 100, 0]


def test_standing_pods_can_be_heard_on_some_nodes_only() -> None:
    existing = (likes(app("x", "web", "a"), 5, term("p")), likes(app("y", "web", "c"), 5, term("p")))
    made = cluster(*ZONES, *existing, app("p", "p"), likes(app("q", "p"), 1, term("none")))
    rule = InterPodAffinityScorer(made, counted_rows=made.nodes.alive & [True, False, False, False])
    assert scores(made, "default/p", rule) == [100, 100, 0, 0]
    assert scores(made, "default/q", rule) == [100, 100, 100, 0]


def test_equal_scores_are_nothing() -> None:
    assert scored(app("x", "web", "a"), app("y", "web", "c"), likes(app("p", "p"), 5, term("web", "none"))) == [0, 0, 0, 0]


def test_scaling_truncates_as_floats_do() -> None:
    """29 hundredths times a hundred is a little less than 29."""
    existing = [app(f"x{i}", "web", "a") for i in range(29)] + [app(f"y{i}", "web", "c") for i in range(100)]
    assert scored(*existing, likes(app("p", "p"), 1, term("web", HOST))) == [28, 0, 100, 0]
