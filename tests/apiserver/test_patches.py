"""The four kinds of patches: tables of what they do, and fuzz for what they must survive."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pumice.api.annotations import LAST_APPLIED
from pumice.api.field_selectors import parse_field_selector
from pumice.api.json_objects import merged
from pumice.cluster.apiserver import PatchRequest, StatusError, WriteOptions
from pumice.cluster.apiserver.patches.field_paths import from_fields, to_fields
from pumice.cluster.apiserver.patches.patch import PatchError, json_patch, strategic_merge
from pumice.cluster.apiserver.scheme.builtin_shapes import object_shape
from tests.apiserver.made import pod, store

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/$", max_size=3), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "patch", "result"),
    [
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": "b"}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}),
        ([1], {"a": 1}, {"a": 1}),
        ({"a": 1}, "b", "b"),
    ],
)
def test_merged(value: Any, patch: Any, result: Any) -> None:
    assert merged(value, patch) == result


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/b", "value": 2}], {"a": [1, 2], "b": 2}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a", "value": 1}], {"a": 1}),
        ([{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1, 2], "b": [1, 2]}),
        ([{"op": "move", "from": "/a/0", "path": "/b"}], {"a": [2], "b": 1}),
        ([{"op": "test", "path": "/a/0", "value": 1}, {"op": "add", "path": "/x~1y~0z", "value": 1}], {"a": [1, 2], "x/y~z": 1}),
    ],
)
def test_json_patch(operations: Any, result: Any) -> None:
    value = {"a": [1, 2]}
    assert json_patch(value, operations) == result
    assert value == {"a": [1, 2]}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/a/0", "value": 2}],
        [{"op": "test", "path": "/a/0", "value": True}],
        [{"op": "remove", "path": "/z"}],
        [{"op": "replace", "path": "/a/2", "value": 1}],
        [{"op": "replace", "path": "/z/y", "value": 1}],
        [{"op": "add", "path": "/a/5", "value": 1}],
        [{"op": "add", "path": "/a/01", "value": 1}],
        [{"op": "add", "path": "a", "value": 1}],
        [{"op": "move", "from": "/a", "path": "/a/0"}],
        [{"op": "jump", "path": "/a"}],
        [{"op": "add", "path": "/a"}],
        {"op": "add"},
        [1],
    ],
)
def test_json_patches_that_do_not_fit_are_refused(operations: Any) -> None:
    with pytest.raises(PatchError):
        json_patch({"a": [1, 2]}, operations)


POD = object_shape("core.v1.Pod")
LIVE = {
    "spec": {
        "containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "2"}],
        "tolerations": [{"key": "k"}],
    }
}


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ({"containers": [{"name": "b", "image": "9"}]}, [("a", "1"), ("b", "9")]),
        ({"containers": [{"name": "c", "image": "3"}]}, [("c", "3"), ("a", "1"), ("b", "2")]),
        ({"containers": [{"name": "b", "image": "9"}, {"name": "c", "image": "3"}]}, [("a", "1"), ("b", "9"), ("c", "3")]),
        ({"containers": [{"name": "c", "image": "3"}, {"name": "b", "image": "9"}]}, [("c", "3"), ("a", "1"), ("b", "9")]),
        ({"containers": [{"name": "b", "image": "9"}, {"name": "a", "image": "8"}]}, [("b", "9"), ("a", "8")]),
        ({"containers": [{"name": "c", "image": "3"}, {"name": "a", "$patch": "delete"}]}, [("c", "3"), ("b", "2")]),
        ({"containers": [{"name": "a", "$patch": "delete"}]}, [("b", "2")]),
        ({"containers": [{"$patch": "replace"}, {"name": "z", "image": "0"}]}, [("z", "0")]),
        (
            {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "a", "image": "9"}]},
            [("b", "2"), ("a", "9")],
        ),
    ],
)
def test_strategic_merge_of_lists_with_keys(patch: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    merged = strategic_merge(POD, LIVE, {"spec": patch})
    assert [(one["name"], one["image"]) for one in merged["spec"]["containers"]] == expected
    assert LIVE["spec"]["containers"][0]["env"] == [{"name": "X", "value": "1"}]


def test_strategic_merge_of_other_lists_and_directives() -> None:
    assert strategic_merge(POD, LIVE, {"spec": {"tolerations": []}})["spec"]["tolerations"] == []
    live = {"metadata": {"finalizers": ["a", "b"]}}
    assert strategic_merge(POD, live, {"metadata": {"finalizers": ["c"]}})["metadata"]["finalizers"] == ["c", "a", "b"]
    assert strategic_merge(POD, live, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}})["metadata"]["finalizers"] == ["b"]
    volume = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    change = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}
    assert strategic_merge(POD, volume, change)["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]
    nested = {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]}}
    assert [one["name"] for one in strategic_merge(POD, LIVE, nested)["spec"]["containers"][0]["env"]] == ["Y", "X"]


@given(VALUES, VALUES)
def test_any_merge_patch_ends_in_what_it_says(value: Any, patch: Any) -> None:
    once = merged(value, patch)
    assert merged(once, patch) == once


@given(
    VALUES,
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": st.text("/ab01-~", max_size=5)},
            optional={"value": VALUES, "from": st.text("/ab01~", max_size=4)},
        ),
        max_size=4,
    ),
)
def test_any_json_patch_fits_or_is_refused(value: Any, operations: Any) -> None:
    with contextlib.suppress(PatchError):
        json_patch(value, operations)


PATCH_TYPES = st.sampled_from(["json", "merge", "strategic", "apply"])


@given(PATCH_TYPES, VALUES | st.fixed_dictionaries({"metadata": VALUES, "spec": VALUES}))
def test_any_patch_of_a_pod_is_done_or_refused_with_a_reason(patch_type: str, body: Any) -> None:
    made = store()
    made.create("pods", pod("p"), "default")
    before = made.get("pods", "p", "default")
    try:
        made.patch("pods", "p", PatchRequest(patch_type, body), "default", options=WriteOptions(manager="m"))
    except StatusError as refusal:
        assert 400 <= refusal.code < 500
        assert made.get("pods", "p", "default") is before


@given(st.text(max_size=30))
def test_any_text_is_a_field_selector_or_refused(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_field_selector(text, ("status.phase",))


# Server-side apply


def applied(manager: str, data: dict[str, str], force: bool = False, **more: Any) -> tuple[PatchRequest, WriteOptions]:
    return PatchRequest("apply", {"apiVersion": "v1", "kind": "ConfigMap", "data": data, **more}), WriteOptions(
        manager=manager, force=force
    )


def test_apply_creates_shares_conflicts_and_forces() -> None:
    made = store()

    def apply(manager: str, data: dict[str, str], force: bool = False) -> dict[str, Any]:
        patch, options = applied(manager, data, force)
        return made.patch("configmaps", "c", patch, "default", options=options)

    apply("one", {"a": "1", "b": "1"})
    apply("two", {"a": "1", "c": "1"})
    with pytest.raises(StatusError) as conflict:
        apply("two", {"a": "2", "c": "1"})
    assert (conflict.value.code, conflict.value.details) == (
        409,
        {"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "one" using v1', "field": ".data.a"}]},
    )
    assert apply("two", {"a": "2", "c": "1"}, force=True)["data"] == {"a": "2", "b": "1", "c": "1"}
    assert apply("one", {"b": "1"})["data"] == {"a": "2", "b": "1", "c": "1"}
    assert apply("two", {"c": "1"})["data"] == {"b": "1", "c": "1"}


def test_an_apply_by_kubectl_keeps_its_note_of_what_was_applied_last() -> None:
    made = store()
    note = {LAST_APPLIED: '{"data":{"a":"1"}}'}
    made.create("configmaps", {"metadata": {"name": "c", "annotations": note}, "data": {"a": "1"}}, "default")
    for manager in ("other", "kubectl"):
        patch, options = applied(manager, {"a": "2"}, True)
        notes = made.patch("configmaps", "c", patch, "default", options=options)["metadata"]["annotations"]
        assert (notes == note) == (manager == "other")
    assert json.loads(notes[LAST_APPLIED])["data"] == {"a": "2"}


def test_a_struct_goes_with_the_last_field_that_anyone_owned_in_it() -> None:
    made = store()
    inner = {"type": "object", "properties": {"sets": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}}}
    inner["properties"] |= {"flavor": {"type": "object", "properties": {"name": {"type": "string", "default": "any"}}}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"admission": inner, "other": {"type": "string"}}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Work", "plural": "works"}, "versions": [version]}
    made.create("customresourcedefinitions.apiextensions.k8s.io", {"metadata": {"name": "works.example.com"}, "spec": spec})

    def apply(manager: str, spec: dict[str, Any]) -> Any:
        body = {"apiVersion": "example.com/v1", "kind": "Work", "spec": spec}
        options = WriteOptions(manager=manager)
        return made.patch("works.example.com", "w", PatchRequest("apply", body), "default", options=options)["spec"]

    apply("one", {"other": "x"})
    assert apply("two", {"admission": {"sets": ["a"], "flavor": {}}})["admission"] == {"sets": ["a"], "flavor": {"name": "any"}}
    assert apply("two", {}) == {"other": "x"}
    apply("two", {"admission": {"sets": ["a"]}})
    apply("one", {"other": "x", "admission": {"sets": ["b"]}})
    assert apply("two", {}) == {"other": "x", "admission": {"sets": ["b"]}}


def test_the_labels_of_an_object_go_with_the_last_of_them() -> None:
    made = store()
    for metadata in ({"labels": {"a": "1"}}, {}):
        patch, options = applied("one", {"a": "1"}, metadata=metadata)
        found = made.patch("configmaps", "c", patch, "default", options=options)
    assert "labels" not in found["metadata"]


def test_applying_the_same_again_writes_nothing() -> None:
    made = store()
    patch, options = applied("one", {"a": "1"})
    first = made.patch("configmaps", "c", patch, "default", options=options)
    assert made.patch("configmaps", "c", patch, "default", options=options) == first
    assert made.storage.version == int(first["metadata"]["resourceVersion"])


def test_an_update_takes_ownership_of_what_it_changes() -> None:
    made = store()
    patch, options = applied("one", {"a": "1", "b": "1"})
    made.patch("configmaps", "c", patch, "default", options=options)
    changed = made.patch("configmaps", "c", PatchRequest("merge", {"data": {"a": "2"}}), "default", options=WriteOptions(manager="editor"))
    owners = {entry["manager"]: entry["fieldsV1"] for entry in changed["metadata"]["managedFields"]}
    assert owners == {"one": {"f:data": {"f:b": {}}}, "editor": {"f:data": {"f:a": {}}}}
    with pytest.raises(StatusError, match='conflict with "editor" using v1'):
        made.patch("configmaps", "c", patch, "default", options=options)


def test_an_apply_needs_a_manager_and_no_managed_fields() -> None:
    made = store()
    with pytest.raises(StatusError, match="is required for apply patch"):
        made.patch("configmaps", "c", applied("", {})[0], "default")
    with pytest.raises(StatusError, match=r"metadata\.managedFields must be nil"):
        patch, options = applied("m", {}, metadata={"managedFields": [{}]})
        made.patch("configmaps", "c", patch, "default", options=options)


PATHS = st.sets(st.lists(st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"']), min_size=1, max_size=4).map(tuple), max_size=6)


@given(PATHS)
def test_sets_of_paths_survive_being_written(paths: set[tuple[str, ...]]) -> None:
    inner = {path for path in paths if any(other != path and other[: len(path)] == path for other in paths) and path[-1][:2] != "k:"}
    assert from_fields(to_fields(paths - inner)) >= paths - inner
