"""Counts of groups of pods, as far as answers do not show them."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.api.selectors import Requirement
from pumice.scheduler.plugins.kube.indexes import existing_pods
from pumice.scheduler.plugins.kube.indexes.label_index import LabelIndex, PodScope
from pumice.testing import cluster, pod
from tests.nodes_for_pods.asking import ZONE, app, zoned


def test_of_many_groups_of_pods_the_longest_unasked_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(existing_pods, "MOST", 2)
    made = cluster(*zoned(a=""), app("x", "0", "a"))
    wanted = [existing_pods.CountedPods((PodScope((Requirement("app", "In", (str(n),)),), None),)) for n in range(3)]
    counts = made.index(existing_pods.ExistingPods)
    first = counts.counts(wanted[0])
    counts.counts(wanted[1])
    assert counts.counts(wanted[0]) is first
    counts.counts(wanted[2])
    assert counts.counts(wanted[0]) is first
    assert counts.counts(wanted[1]).by_row == {} and counts.counts(wanted[0]).by_row == {0: 1}
    others = existing_pods.CountedPods((PodScope((Requirement("app", "In", ("0", "7")),), None),))
    assert counts.counts(others).by_row == {0: 1}  # filed beside another under the label of 0, which goes first
    made.put(*app("y", "0", "a").build())
    assert counts.counts(others).by_row == {0: 2}
    everybody = existing_pods.CountedPods((PodScope((Requirement("app", "Exists"),), None),))
    counts.counts(everybody)
    counts.counts(wanted[2])
    counts.counts(wanted[0])


@pytest.mark.parametrize("rows", [3, 150])
def test_counts_per_domain_are_the_same_by_a_loop_over_few_rows_and_an_array_of_many(rows: int) -> None:
    """Every third node has a pod, the last two of each ten no zone."""
    where = [f"n{number}" for number in range(rows * 3)]
    zones = {name: f"z{number % 10}" if number % 10 < 8 else "" for number, name in enumerate(where)}
    made = cluster(*zoned(**zones), *(app(f"p{number}", "x", name) for number, name in enumerate(where[::3])))
    counts = made.index(existing_pods.ExistingPods).counts(existing_pods.CountedPods((PodScope((Requirement("app", "Exists"),), None),)))
    codes, values = made.nodes.codes(ZONE)
    expected = [sum(zones[name] == zone for name in where[::3]) for zone in values]
    assert counts.per_domain(codes, len(values)).tolist() == expected
    assert [made.nodes.names[row] for row in np.flatnonzero(counts.present(len(where)))] == where[::3]


def test_an_array_of_counts_grows_with_the_table() -> None:
    made = cluster(*zoned(a=""), app("x", "0", "a"))
    counts = made.index(existing_pods.ExistingPods).counts(existing_pods.CountedPods((PodScope((Requirement("app", "Exists"),), None),)))
    assert counts.array(1).tolist() == [1]
    made.put(*zoned(b="")[0].build())
    made.put(*app("y", "0", "b").build())
    assert counts.array(2).tolist() == [1, 1]


def test_who_is_near_follows_those_who_come_to_nodes_new_and_old_with_the_label_and_without() -> None:
    made = cluster(*zoned(a="z", b=""), app("x", "0", "a"))
    counts = made.index(existing_pods.ExistingPods).counts(existing_pods.CountedPods((PodScope((Requirement("app", "Exists"),), None),)))
    assert counts.near(ZONE, made.nodes).tolist() == [1, 0]
    made.put(*app("y", "0", "b").build())
    made.put(*app("v", "0", "a").build())
    assert counts.near(ZONE, made.nodes).tolist() == [2, 0]
    made.put(*zoned(c="z")[0].build())
    made.put(*app("w", "0", "c").build())
    assert counts.near(ZONE, made.nodes).tolist() == [3, 0, 3]


def test_values_of_labels_that_no_pod_has_any_more_are_not_kept() -> None:
    made = cluster(*zoned(a=""), app("x", "0", "a"), app("y", "1", "a"))
    index = made.index(existing_pods.ExistingPods)
    index.counts(existing_pods.CountedPods((PodScope((Requirement("app", "In", ("0",)),), None),)))
    made.remove("Pod", "default/x")
    assert {key: [*by_value] for key, by_value in index._by_label.items()} == {"app": ["1"]}


def test_a_group_that_no_label_can_be_in_is_empty() -> None:
    made = cluster(*zoned(a=""), app("x", "0", "a"))
    nobody = existing_pods.CountedPods((PodScope((Requirement("app", "In", ()),), None),))
    assert not made.index(existing_pods.ExistingPods).counts(nobody)


def test_a_register_finds_what_means_a_pod_until_it_is_taken_out() -> None:
    task = next(iter(cluster(app("x", "0")).tasks.values()))
    anyone, same, one = (Requirement("app", "Exists"), Requirement("app", "In", ("0",)), Requirement("app", "In", ("0", "1")))
    register: LabelIndex[str] = LabelIndex()
    for name, requirement in (("anyone", anyone), ("same", same), ("one", one)):
        register.add(name, (PodScope((requirement,), None),))
    assert sorted(register.meaning(task)) == ["anyone", "one", "same"]
    for name, left in (("same", ["anyone", "one"]), ("anyone", ["one"]), ("one", [])):
        register.remove(name)
        assert sorted(register.meaning(task)) == left
        assert name not in register


def test_pods_without_the_label_come_and_go_unnoticed() -> None:
    made = cluster(*zoned(a=""), app("x", "0", "a"))
    some = existing_pods.CountedPods((PodScope((Requirement("app", "In", ("0",)),), None),))
    counts = made.index(existing_pods.ExistingPods).counts(some)
    made.put(*pod("bare").on("a").build())
    made.remove("Pod", "default/bare")
    assert counts.by_row == {0: 1}
