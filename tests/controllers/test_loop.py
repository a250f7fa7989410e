"""The work queue, and the lister in memory."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from hypothesis import given, strategies as st

from pumice.api import Object, kinds
from pumice.api.json_objects import Key, difference, merged
from pumice.controllers.controller import Lister, ObjectChange, Result, its_controller, itself, result
from pumice.controllers.in_memory import Memory
from pumice.controllers.in_memory_loop import Unsettled, settle
from pumice.controllers.work_queue import KeyQueue
from pumice.controllers.writes import Create, Delete, Patch, change, patch
from tests.controllers.stage import NOON, plain_pod, queue


class Counting:
    """Looks at queues; writes something new each time if it is `restless`."""

    name = "counting"

    def __init__(self, restless: bool = False) -> None:
        self.watches = {kinds.QUEUE: itself}
        self.restless = restless
        self.looks = 0

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        self.looks += 1
        found = lister.get(kinds.QUEUE, "", key.name)
        return result([patch(found, {"spec": {"weight": self.looks}})] if found and self.restless else [])


def test_a_key_that_waits_is_not_queued_twice() -> None:
    controller, lister = Counting(), Memory()
    work = KeyQueue([controller])
    work.observe([ObjectChange(None, queue("a")), ObjectChange(queue("a"), queue("a")), ObjectChange(None, queue("b"))], lister)
    assert len(work) == 2
    assert work.pop(0) == (controller, Key("", "a"))
    work.observe([ObjectChange(None, queue("a"))], lister)
    assert [work.pop(0), work.pop(0), work.pop(0)] == [(controller, Key("", "b")), (controller, Key("", "a")), None]


def test_an_object_that_makes_no_sense_is_passed_over_and_the_others_are_not(caplog: pytest.LogCaptureFixture) -> None:
    controller, lister = Counting(), Memory()
    work = KeyQueue([controller])
    nameless = queue("b")
    del nameless["metadata"]["name"]
    work.observe([ObjectChange(None, queue("a")), ObjectChange(None, nameless), ObjectChange(None, queue("c"))], lister)
    assert [work.pop(0), work.pop(0)] == [(controller, Key("", "a")), (controller, Key("", "c"))]
    assert len(caplog.records) == 1 and "counting passes over Queue.scheduling.volcano.sh" in caplog.text
    caplog.clear()


def test_who_controls_a_changed_object_is_found_out_once_for_all_controllers() -> None:
    before, after = plain_pod("p"), plain_pod("p")
    for state, owner in ((before, "old"), (after, "new")):
        state["metadata"]["ownerReferences"] = [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
        ]
    change = ObjectChange(before, after)
    assert its_controller(kinds.REPLICA_SET)(change, Memory()) == [Key("default", "new"), Key("default", "old")]
    assert its_controller(kinds.BATCH_JOB)(change, Memory()) == []
    assert change.controllers is change.controllers and not change.is_adoptable


def test_why_a_pod_waits_concerns_no_controller_but_all_else_does() -> None:
    class Pods(Counting):
        def __init__(self) -> None:
            self.watches = {kinds.POD: itself}

    class Owners(Counting):
        name = "owners"

        def __init__(self) -> None:
            self.watches = {kinds.POD: its_controller(kinds.REPLICA_SET)}

    def asked(differs: dict[str, object], spec: dict[str, object] | None = None, owners: list[Object] | None = None) -> list[str]:
        pod = plain_pod("p") | {"status": {"phase": "Pending"}}
        pod["metadata"] |= {"ownerReferences": owners or []}
        work = KeyQueue([Pods(), Owners()])
        work.observe([ObjectChange(pod, pod | {"spec": spec or pod["spec"], "status": {"phase": "Pending"} | differs})], Memory(owner_sets))
        return [found.controller.name for found in iter(lambda: work.pop(0), None)]

    owner_sets: list[Object] = []
    waits, ready = {"type": "PodScheduled", "status": "False"}, {"type": "Ready", "status": "True"}
    assert asked({"conditions": [waits], "nominatedNodeName": "a"}) == []
    assert asked({"conditions": [waits, ready]}) == asked({"phase": "Running"}) == asked({"podIP": "10.0.0.1"}) == ["counting"]
    assert asked({"conditions": [waits]}, spec={"nodeName": "a"}) == ["counting"]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "uid": "o", "controller": True}
    assert asked({"conditions": [waits]}, owners=[owner]) == ["counting"]  # there is no ReplicaSet
    owner_sets.append(kinds.new(kinds.REPLICA_SET, "default", "another"))
    assert asked({"conditions": [waits]}, owners=[owner]) == ["counting", "owners"]
    assert asked({"podIP": "10.0.0.1"}) == ["counting"]  # it concerns no owners


def test_a_later_key_comes_when_it_is_due_at_the_earliest_time_asked_for() -> None:
    controller = Counting()
    work = KeyQueue([controller])
    for when in (20.0, 10.0, 15.0):
        work.add_later(when, controller, Key("", "a"))
    assert work.next_time() == 10.0
    assert work.pop(9.9) is None
    assert work.pop(10.0) == (controller, Key("", "a"))
    assert work.pop(30.0) is None
    assert work.next_time() is None


def test_controllers_that_never_rest_are_stopped() -> None:
    with pytest.raises(Unsettled):
        settle(Memory([queue()]), [Counting(restless=True)], NOON, limit=50)
    assert settle(Memory([queue()]), [Counting()], NOON) == 0


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.sampled_from("abcd"), documents, max_size=4)


def _without_nulls(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}


@given(objects, objects)
def test_a_merge_patch_leads_from_one_object_to_the_other(old: dict[str, object], new: dict[str, object]) -> None:
    reached = merged(old, difference(old, new))
    assert _without_nulls(reached) == _without_nulls(new)
    assert difference(reached, new) == {}


def test_memory_keeps_what_controllers_rely_on() -> None:
    lister = Memory([queue("a")], NOON)
    stored = lister.get(kinds.QUEUE, "", "a")
    assert stored is not None and stored["metadata"]["resourceVersion"] == "1"
    assert lister.apply(Create(queue("a"))) == []
    assert lister.apply(Patch(kinds.QUEUE, "", "a", {"spec": {"weight": 3}}, uid="another")) == []
    for write in change(stored, {**stored, "spec": {**stored["spec"], "weight": 2}}):
        lister.apply(write)
    changed = lister.get(kinds.QUEUE, "", "a")
    assert changed is not None and changed["metadata"]["generation"] == 2 and stored["spec"]["weight"] == 1
    assert [each["metadata"]["name"] for each in lister.by_field(kinds.QUEUE, "spec.parent", "root")] == ["a"]


def test_a_pod_on_a_node_waits_for_its_kubelet_and_one_without_goes_at_once() -> None:
    lister = Memory([plain_pod("a"), plain_pod("b", nodeName="n")], NOON)
    for name in "ab":
        lister.apply(Delete(kinds.POD, "default", name))
    assert [pod["metadata"]["name"] for pod in lister.all(kinds.POD)] == ["b"]
    assert lister.apply(Delete(kinds.POD, "default", "b")) == []
    lister.apply(Delete(kinds.POD, "default", "b", grace_s=0))
    assert list(lister.all(kinds.POD)) == []
