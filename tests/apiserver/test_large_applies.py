"""Who owns which field of a large object: found without looking at what is equal, and refused before the work if it cannot be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pumice.cluster.apiserver import PatchRequest, StatusError, Store, WriteOptions
from pumice.cluster.apiserver.patches.field_paths import difference, leaves, to_fields
from pumice.cluster.apiserver.patches.managed_fields import SharedFields
from tests.apiserver.made import store
from tests.calls import calls


def service(count: int, shift: int = 0) -> dict[str, Any]:
    ports = [{"name": f"p{number}", "port": number, "protocol": "TCP", "targetPort": number + shift} for number in range(1, count + 1)]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}}


def put(made: Store, body: dict[str, Any], manager: str = "m", *, force: bool = False) -> dict[str, Any]:
    return made.patch("services", "s", PatchRequest("apply", body), "default", options=WriteOptions(manager=manager, force=force))


@pytest.mark.parametrize(
    ("change", "most"),
    [
        (lambda made, count: put(made, service(count)), 40),
        (lambda made, count: put(made, service(count, 1)), 80),
        (lambda made, count: made.patch("services", "s", PatchRequest("merge", {"metadata": {"labels": {"a": "b"}}}), "default"), 20),
    ],
    ids=["the same again", "another value for each", "a label"],
)
def test_work_on_an_object_of_many_items_is_a_little_for_each(change: Callable[[Store, int], Any], most: int) -> None:
    def work(count: int) -> int:
        made = store()
        put(made, service(count))
        return calls(lambda: change(made, count))

    assert (work(1000) - work(500)) / 500 < most


def test_an_object_whose_owners_would_not_fit_is_refused_before_they_are_written() -> None:
    made = store()
    with pytest.raises(StatusError, match="Request entity too large: the object has"):
        put(made, service(30_000))
    assert made.find("services", "default", "s") is None


def test_a_change_of_every_item_is_a_conflict_for_another_manager_and_taken_by_force() -> None:
    made = store()
    put(made, service(5))
    with pytest.raises(StatusError, match="failed with 5 conflicts"):
        put(made, service(5, 1), "other")
    put(made, service(5), "third")
    forced = put(made, service(5, 1), "other", force=True)
    fields = {entry["manager"]: entry["fieldsV1"]["f:spec"]["f:ports"] for entry in forced["metadata"]["managedFields"]}
    assert all("f:targetPort" in owned for owned in fields.pop("other").values())
    assert [owned.keys() for each in fields.values() for owned in each.values()] == [{".", "f:name", "f:port", "f:protocol"}] * 10


names = st.sampled_from(["a", "b", "c"])
a_port = st.fixed_dictionaries({"containerPort": st.integers(1, 3)}, optional={"name": names})
ports = st.lists(a_port, max_size=3, unique_by=lambda port: port["containerPort"])
a_container = st.fixed_dictionaries({"name": names}, optional={"image": names, "ports": ports, "args": st.lists(names)})
containers = st.lists(a_container, max_size=3, unique_by=lambda container: container["name"])
metadata = st.fixed_dictionaries({}, optional={"labels": st.dictionaries(names, names), "finalizers": st.lists(names, unique=True)})
spec = st.fixed_dictionaries({}, optional={"containers": containers, "nodeName": names})
pods = st.fixed_dictionaries({"metadata": metadata}, optional={"spec": spec})


@given(pods, pods)
def test_a_difference_is_that_of_the_leaves(old: dict[str, Any], new: dict[str, Any]) -> None:
    shape = store().kind("pods").shape
    was, is_now = leaves(shape, old), leaves(shape, new)
    changed, gone = difference(shape, old, new)
    assert changed == {path for path, value in is_now.items() if path not in was or was[path] != value}
    assert gone == was.keys() - is_now.keys()


repeated = st.fixed_dictionaries({}, optional={"containers": st.lists(a_container, max_size=3), "nodeName": names})


@given(st.lists(st.fixed_dictionaries({"metadata": metadata}, optional={"spec": repeated})))
def test_the_fields_of_a_new_object_are_those_of_its_leaves(objects: list[dict[str, Any]]) -> None:
    shape, shared = store().kind("pods").shape, SharedFields(40)  # which is soon full
    for obj in objects:
        fields, paths = shared.of(shape, obj), set(leaves(shape, obj))
        assert (fields, shared.read(fields)) == (to_fields(paths), paths)
