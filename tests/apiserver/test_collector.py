"""What follows from a deletion: dependents go with their owners, before them or not at all; namespaces are emptied."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.apiserver import ApiError, Patch, Store, Wish
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
    made.delete("configmaps", name, "default", Wish(propagation=propagation))
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
        Patch("merge", {"metadata": {"finalizers": [each for each in finalizers(made, "c") if "/" not in each]}}),
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
    made.delete("pods", "p", "default", Wish(grace_s=0))
    made.collector.run()
    assert left(made) == []


def test_orphans_stay_and_forget_their_owner() -> None:
    made = store()
    config(made, "b", config(made, "a"))
    assert delete(made, "a", "Orphan") == ["b"]
    assert not made.get("configmaps", "b", "default")["metadata"]["ownerReferences"]


def test_a_namespace_is_emptied_and_takes_nothing_new() -> None:
    made = store()
    made.create("namespaces", {"metadata": {"name": "n"}})
    made.create("configmaps", {"metadata": {"name": "c", "finalizers": ["a/b"]}}, "n")
    made.create("configmaps", {"metadata": {"name": "elsewhere"}}, "default")
    assert made.delete("namespaces", "n")[0]["status"]["phase"] == "Terminating"
    made.collector.run()
    with pytest.raises(ApiError, match="because it is being terminated"):
        made.create("configmaps", {"metadata": {"name": "new"}}, "n")
    made.patch("configmaps", "c", Patch("merge", {"metadata": {"finalizers": []}}), "n")
    made.collector.run()
    assert made.find("namespaces", "", "n") is None
    assert left(made) == ["elsewhere"]
