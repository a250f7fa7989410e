"""What follows from a deletion: dependents go with their owners, before them or not at all; namespaces are emptied."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.cluster.apiserver import DeleteOptions, PatchRequest, StatusError, Store
from pumice.cluster.apiserver.deletion import read_delete_options
from tests.apiserver.made import pod, store


def config(made: Store, name: str, *owners: Any, blocks: bool = False, **metadata: Any) -> Any:
    """A ConfigMap that others own; its reference is made from their metadata."""
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"], "blockOwnerDeletion": blocks}
        for owner in owners
    ]
    body = {"metadata": {"name": name, **({"ownerReferences": references} if references else {}), **metadata}}
    return made.create("configmaps", body, "default")["metadata"]


def delete(made: Store, name: str, propagation: str = "") -> list[str]:
    """The names that are left."""
    made.delete("configmaps", name, "default", DeleteOptions(propagation=propagation))
    made.collector.run()
    return left(made)


def left(made: Store) -> list[str]:
    return [obj["metadata"]["name"] for obj in made.all("configmaps", "default")]


def test_what_is_owned_goes_after_its_owner_down_to_the_last() -> None:
    made = store()
    a = config(made, "a")
    config(made, "c", config(made, "b", a))
    config(made, "d")
    assert delete(made, "a") == ["d"]


def test_dependents_go_with_the_last_of_their_owners_and_forget_the_dead_ones() -> None:
    made = store()
    config(made, "c", config(made, "a"), config(made, "b"))
    assert delete(made, "a") == ["b", "c"]
    assert [owner["name"] for owner in made.get("configmaps", "c", "default")["metadata"]["ownerReferences"]] == ["b"]
    assert delete(made, "b") == []


def test_an_owner_of_the_same_name_but_another_uid_owns_nothing() -> None:
    made = store()
    config(made, "a")
    config(made, "b", {"name": "a", "uid": "another"})
    made.collector.run()
    assert left(made) == ["a"]


def test_an_owner_of_a_kind_that_nobody_knows_is_taken_to_live() -> None:
    made = store()
    reference = {"apiVersion": "x.io/v1", "kind": "Thing", "name": "t", "uid": "u"}
    config(made, "b", ownerReferences=[reference])
    made.collector.run()
    assert left(made) == ["b"]


@pytest.mark.parametrize(("blocks", "waits"), [(True, ["a", "b", "c"]), (False, ["c"])])
def test_in_the_foreground_an_owner_waits_for_those_who_block_it(blocks: bool, waits: list[str]) -> None:
    made = store()
    b = config(made, "b", config(made, "a"), blocks=blocks)
    config(made, "c", b, blocks=blocks, finalizers=["example.com/hold"])
    assert delete(made, "a", "Foreground") == waits
    made.patch(
        "configmaps",
        "c",
        PatchRequest("merge", {"metadata": {"finalizers": [each for each in finalizers(made, "c") if "/" not in each]}}),
        "default",
    )
    made.collector.run()
    assert left(made) == []


def finalizers(made: Store, name: str) -> list[str]:
    return list(made.get("configmaps", name, "default")["metadata"].get("finalizers") or ())


def test_an_owner_waits_for_a_pod_that_is_still_ending() -> None:
    made = store()
    owner = config(made, "o")
    bound = pod("p", nodeName="n")
    bound["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": owner["uid"], "blockOwnerDeletion": True}
    ]
    made.create("pods", bound, "default")
    assert delete(made, "o", "Foreground") == ["o"]
    assert made.get("pods", "p", "default")["metadata"]["deletionTimestamp"]
    made.delete("pods", "p", "default", DeleteOptions(grace_s=0))
    made.collector.run()
    assert left(made) == []


def test_orphans_stay_and_forget_their_owner() -> None:
    made = store()
    config(made, "b", config(made, "a"))
    assert delete(made, "a", "Orphan") == ["b"]
    assert not made.get("configmaps", "b", "default")["metadata"]["ownerReferences"]


def owner_names(made: Store, name: str) -> list[str]:
    return [owner["name"] for owner in made.get("configmaps", name, "default")["metadata"].get("ownerReferences") or ()]


@pytest.mark.parametrize("blocks", [True, False])
def test_in_the_foreground_nobody_goes_who_has_another_owner(blocks: bool) -> None:
    made = store()
    a, b = config(made, "a"), config(made, "b")
    config(made, "shared", a, b, blocks=blocks)
    config(made, "under", config(made, "own", a, blocks=blocks), b, blocks=blocks)
    assert delete(made, "a", "Foreground") == ["b", "shared", "under"]
    assert owner_names(made, "shared") == owner_names(made, "under") == ["b"]


def test_with_several_owners_the_last_to_be_deleted_takes_it_along() -> None:
    made = store()
    config(made, "shared", config(made, "a"), config(made, "b"), blocks=True)
    for owner in "ab":
        made.delete("configmaps", owner, "default", DeleteOptions(propagation="Foreground"))
    made.collector.run()
    assert left(made) == []


@pytest.mark.parametrize("propagation", ["Foreground", "Background"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_owners_in_a_circle_go_together(size: int, propagation: str) -> None:
    made = store()
    ring = [config(made, f"c{number}") for number in range(size)]
    for number, metadata in enumerate(ring):
        owner = ring[number - 1]
        own(made, metadata["name"], owner)
    config(made, "outside", ring[-1], blocks=True)
    assert delete(made, "c0", propagation) == []


def own(made: Store, name: str, *owners: Any) -> None:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": each["name"], "uid": each["uid"], "blockOwnerDeletion": True} for each in owners
    ]
    made.patch("configmaps", name, PatchRequest("merge", {"metadata": {"ownerReferences": references}}), "default")


def test_two_that_own_each_other_may_be_deleted_at_the_same_time() -> None:
    made = store()
    ring = [config(made, name) for name in "ab"]
    own(made, "a", ring[1])
    own(made, "b", ring[0])
    for name in "ab":
        made.delete("configmaps", name, "default", DeleteOptions(propagation="Foreground"))
    made.collector.run()
    assert left(made) == []


def test_a_circle_with_an_owner_outside_stays_without_whom_was_deleted() -> None:
    made = store()
    keeper = config(made, "keeper")
    ring = [config(made, name) for name in "ab"]
    own(made, "a", ring[1])
    own(made, "b", ring[0], keeper)
    assert delete(made, "a", "Foreground") == ["b", "keeper"]
    assert owner_names(made, "b") == ["keeper"]


def test_owners_given_up_or_taken_on_later_count_as_well() -> None:
    made = store()
    a = config(made, "a")
    config(made, "b", a, blocks=True, finalizers=["x.io/hold"])
    assert delete(made, "a", "Foreground") == ["a", "b"]
    own(made, "b")
    made.collector.run()
    assert left(made) == ["b"], "who is owned no more holds nobody up"
    config(made, "c")
    own(made, "c", a)
    made.collector.run()
    assert left(made) == ["b"], "whom the dead own goes"


def test_what_comes_under_an_owner_that_waits_goes_too() -> None:
    made = store()
    a = config(made, "a")
    config(made, "b", a, blocks=True, finalizers=["x.io/hold"])
    assert delete(made, "a", "Foreground") == ["a", "b"]
    config(made, "late", a)
    made.collector.run()
    assert left(made) == ["a", "b"]


def test_an_object_of_the_whole_cluster_cannot_lose_an_owner_in_some_namespace() -> None:
    made = store()
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": config(made, "a")["uid"]}
    made.create("namespaces", {"metadata": {"name": "n", "ownerReferences": [reference]}})
    assert delete(made, "a") == []
    assert not made.get("namespaces", "n")["metadata"].get("deletionTimestamp")


@pytest.mark.parametrize(
    ("resource", "delete_options", "stays"),
    [
        ("replicationcontrollers", DeleteOptions(), True),
        ("replicationcontrollers", DeleteOptions(propagation="Background"), False),
        ("jobs.batch", DeleteOptions(), True),
        ("jobs.batch", DeleteOptions(propagation="Foreground"), False),
        ("replicasets.apps", DeleteOptions(), False),
        ("replicasets.apps", DeleteOptions(propagation="Orphan"), True),
    ],
)
def test_what_becomes_of_pods_if_nobody_says_it_depends_on_the_kind_of_their_owner(
    resource: str, delete_options: DeleteOptions, stays: bool
) -> None:
    made = store()
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod("p")["spec"]}}
    if resource == "replicationcontrollers":
        spec["selector"] = {"a": "b"}
    if resource == "jobs.batch":
        spec = {"template": {"spec": {**pod("p")["spec"], "restartPolicy": "Never"}}}
    owner = made.create(resource, {"metadata": {"name": "o"}, "spec": spec}, "default")
    owned = pod("p")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": "o", "uid": owner["metadata"]["uid"], "controller": True}
    ]
    made.create("pods", owned, "default")
    made.delete(resource, "o", "default", delete_options)
    made.collector.run()
    assert made.find(resource, "default", "o") is None
    found = made.find("pods", "default", "p")
    assert (found is not None and not found["metadata"]["ownerReferences"]) if stays else found is None


@pytest.mark.parametrize(
    ("first", "second", "finalizer"),
    [("Foreground", "Orphan", "orphan"), ("Orphan", "Foreground", "foregroundDeletion"), ("Foreground", "", "foregroundDeletion")],
)
def test_a_later_wish_takes_the_place_of_an_earlier_one(first: str, second: str, finalizer: str) -> None:
    made = store()
    config(made, "a", finalizers=["x.io/hold"])
    for propagation in (first, second):
        made.delete("configmaps", "a", "default", DeleteOptions(propagation=propagation))
    assert finalizers(made, "a") == ["x.io/hold", finalizer]
    made.delete("configmaps", "a", "default", DeleteOptions(propagation="Background"))
    assert finalizers(made, "a") == ["x.io/hold"]


def test_an_object_says_by_a_finalizer_what_becomes_of_its_dependents() -> None:
    made = store()
    config(made, "c", config(made, "b", config(made, "a"), finalizers=["orphan"]))
    assert delete(made, "a") == ["c"]
    assert owner_names(made, "c") == []


def test_who_lost_an_owner_just_before_the_end_goes_after_the_restart() -> None:
    made, again = store(), store()
    config(made, "b", config(made, "a"), blocks=True)
    config(made, "d", config(made, "c"))
    made.delete("configmaps", "a", "default")
    for name in ("b", "c", "d"):
        again.restore("configmaps", ("default", name), made.get("configmaps", name, "default"))
    again.collector.run()
    assert left(again) == ["c", "d"]


def test_old_and_new_ways_to_say_what_becomes_of_dependents() -> None:
    assert read_delete_options({"orphanDependents": True}, {}).propagation == "Orphan"
    assert read_delete_options({"orphanDependents": False}, {}).propagation == "Background"
    with pytest.raises(StatusError, match="cannot be both set"):
        read_delete_options({"orphanDependents": False, "propagationPolicy": "Orphan"}, {})


def test_a_namespace_is_emptied_and_takes_nothing_new() -> None:
    made = store()
    made.create("namespaces", {"metadata": {"name": "n"}})
    made.create("configmaps", {"metadata": {"name": "c", "finalizers": ["a/b"]}}, "n")
    made.create("configmaps", {"metadata": {"name": "elsewhere"}}, "default")
    assert made.delete("namespaces", "n")[0]["status"]["phase"] == "Terminating"
    made.collector.run()
    with pytest.raises(StatusError, match="because it is being terminated"):
        made.create("configmaps", {"metadata": {"name": "new"}}, "n")
    made.patch("configmaps", "c", PatchRequest("merge", {"metadata": {"finalizers": []}}), "n")
    made.collector.run()
    assert made.find("namespaces", "", "n") is None
    assert left(made) == ["elsewhere"]


def test_namespace_lets_its_pods_go_first_and_says_what_remains() -> None:
    made = store()
    made.create("namespaces", {"metadata": {"name": "n"}})
    made.create("pods", pod("p") | {"metadata": {"name": "p", "finalizers": ["example.com/held"]}}, "n")
    made.create("configmaps", {"metadata": {"name": "c"}}, "n")
    made.delete("namespaces", "n")
    made.collector.run()
    assert made.find("configmaps", "n", "c") is not None
    told = {each["type"]: (each["status"], each["reason"], each["message"]) for each in made.get("namespaces", "n")["status"]["conditions"]}
    assert told["NamespaceDeletionContentFailure"][:2] == ("True", "ContentDeletionFailed")
    assert "pods has 1 resource instances" in told["NamespaceContentRemaining"][2]
    assert told["NamespaceFinalizersRemaining"][2].endswith("has finalizers remaining: example.com/held in 1 resource instances")
    made.patch("pods", "p", PatchRequest("merge", {"metadata": {"finalizers": None}}), "n")
    made.delete("pods", "p", "n", DeleteOptions(grace_s=0)) if made.find("pods", "n", "p") else None
    made.collector.run()
    assert made.find("namespaces", "", "n") is None
