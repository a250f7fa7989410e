"""Counts of groups of pods, as far as answers do not show them."""

from __future__ import annotations

import pytest

from pumice.api.selectors import Requirement
from pumice.plugins.kube.standing import groups
from pumice.plugins.kube.standing.scope import Scope
from pumice.testing import pod
from tests.nodes_for_pods.asking import app, made_of, zoned


def test_of_many_groups_of_pods_the_longest_unasked_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST", 2)
    made = made_of(*zoned(a=""), app("x", "0", "a"))
    wanted = [groups.Group((Scope((Requirement("app", "In", (str(n),)),), None),)) for n in range(3)]
    counts = groups.Groups.of(made)
    first = counts.counts(wanted[0])
    counts.counts(wanted[1])
    assert counts.counts(wanted[0]) is first
    counts.counts(wanted[2])
    assert counts.counts(wanted[0]) is first
    assert counts.counts(wanted[1]).by_row == {} and counts.counts(wanted[0]).by_row == {0: 1}
    everybody = groups.Group((Scope((Requirement("app", "Exists"),), None),))
    counts.counts(everybody)
    counts.counts(wanted[2])
    counts.counts(wanted[0])


def test_an_array_of_counts_grows_with_the_table() -> None:
    made = made_of(*zoned(a=""), app("x", "0", "a"))
    counts = groups.Groups.of(made).counts(groups.Group((Scope((Requirement("app", "Exists"),), None),)))
    assert counts.array(1).tolist() == [1]
    made.put(*zoned(b="")[0].build())
    made.put(*app("y", "0", "b").build())
    assert counts.array(2).tolist() == [1, 1]


def test_a_group_that_no_label_can_be_in_is_empty() -> None:
    made = made_of(*zoned(a=""), app("x", "0", "a"))
    nobody = groups.Group((Scope((Requirement("app", "In", ()),), None),))
    assert not groups.Groups.of(made).counts(nobody)


def test_pods_without_the_label_come_and_go_unnoticed() -> None:
    made = made_of(*zoned(a=""), app("x", "0", "a"))
    some = groups.Group((Scope((Requirement("app", "In", ("0",)),), None),))
    counts = groups.Groups.of(made).counts(some)
    made.put(*pod("bare").on("a").build())
    made.remove("Pod", "default/bare")
    assert counts.by_row == {0: 1}
