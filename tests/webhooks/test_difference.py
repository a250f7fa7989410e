"""A patch made of two values makes the one of the other."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from pumice.cluster.apiserver.patches.json_patch import json_patch
from pumice.live.webhooks.json_patch import difference

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab/~", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("ab/~", max_size=2), VALUES, max_size=3), st.dictionaries(st.text("ab/~", max_size=2), VALUES, max_size=3))
def test_the_patch_of_two_objects_leads_from_one_to_the_other(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert json_patch(old, list(difference(old, new))) == new


def test_equal_values_need_no_patch_and_small_changes_small_ones() -> None:
    old = {"spec": {"a": 1, "list": [1, {"x": 1}]}}
    assert list(difference(old, old)) == []
    assert list(difference(old, {"spec": {"a": 1, "list": [1, {"x": 2}]}})) == [{"op": "replace", "path": "/spec/list/1/x", "value": 2}]
