"""Queues open and close, alone and as a tree."""

from __future__ import annotations

from typing import Any

import pytest

from pumice.api import annotations as key, kinds
from pumice.api.json_objects import Key, Object
from pumice.controllers.volcano.queue import Queues, next_state
from pumice.controllers.writes import Delete, Emit, Patch
from tests.controllers.stage import Stage, queue, table


@pytest.mark.parametrize("row", table("queue_states.yaml"), ids=lambda row: f"{row['state'] or 'new'} {row['action']} busy={row['busy']}")
def test_the_state_table(row: dict[str, Any]) -> None:
    assert next_state(row["state"], row["action"], row["busy"]) == row["then"]


def new(name: str, **spec: Any) -> Object:
    fresh = queue(name, **spec)
    del fresh["status"]
    return fresh


def group(name: str, of: str) -> Object:
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": meta, "spec": {"queue": of, "minMember": 1}}


def play(*objects: Object) -> Stage:
    return Stage(*objects, controllers=[Queues()])


def state(stage: Stage, name: str) -> str:
    return str(stage.get(kinds.QUEUE, name)["status"]["state"])


def mark(stage: Stage, name: str) -> str | None:
    found: Object = stage.get(kinds.QUEUE, name)["metadata"].get("annotations") or {}
    return found.get(key.CLOSED_BY_PARENT)


def test_a_new_queue_opens_under_root() -> None:
    stage = play(new("root"), new("a", parent=None))
    assert stage.get(kinds.QUEUE, "a")["spec"]["parent"] == "root"
    assert "parent" not in stage.get(kinds.QUEUE, "root")["spec"] or stage.get(kinds.QUEUE, "root")["spec"]["parent"] == "root"
    assert state(stage, "a") == state(stage, "root") == "Open"
    assert stage.get(kinds.QUEUE, "a")["status"]["allocated"] == {}, "Volcano 1.8's definition takes no status without it"
    stage.assert_settled()


def test_a_queue_that_cannot_be_changed_any_more_can_still_be_closed() -> None:
    """Its parent is written last: a queue from before today's rules may be refused it for ever."""
    old = queue("a", parent=None)
    stage = Stage(controllers=[])
    stage.lister.put(old)
    stage.lister.put(stage.order("CloseQueue", old))
    writes = Queues().reconcile(Key("", "a"), stage.lister, stage.now).writes
    assert [type(write) for write in writes] == [Patch, Delete, Emit, Emit, Patch]
    assert isinstance(writes[-1], Patch) and writes[-1].patch == {"spec": {"parent": "root"}}


def test_a_new_queue_has_its_parent_when_it_is_seen_to_be_open() -> None:
    stage = Stage(controllers=[])
    stage.lister.put(new("a", parent=None))
    first, second = Queues().reconcile(Key("", "a"), stage.lister, stage.now).writes
    assert isinstance(first, Patch) and isinstance(second, Patch) and (first.subresource, second.subresource) == ("", "status")


def test_a_queue_closes_once_its_last_group_is_gone() -> None:
    stage = play(queue("a"), group("g", "a"))
    stage.command("CloseQueue", queue("a"))
    assert stage.names(kinds.COMMAND) == []
    assert state(stage, "a") == "Closing"
    stage.delete(kinds.POD_GROUP, "g")
    assert state(stage, "a") == "Closed"
    stage.command("OpenQueue", queue("a"))
    assert state(stage, "a") == "Open"
    stage.assert_settled()


def test_opening_and_closing_are_told_in_volcanos_words() -> None:
    stage = play(queue("a"))
    stage.command("CloseQueue", queue("a"))
    stage.command("OpenQueue", queue("a"))
    told = [(event.type, event.reason, event.message) for event in stage.lister.emitted]
    text = "Start to execute command {}Queue, and clean it up to make sure executed not more than once."
    assert told == [
        ("Normal", "CloseQueue", text.format("Close")),
        ("Normal", "CloseQueue", "Close queue succeed"),
        ("Normal", "OpenQueue", text.format("Open")),
        ("Normal", "OpenQueue", "Open queue succeed"),
    ]


def test_a_group_that_moves_to_another_queue_leaves_the_first_one_free() -> None:
    stage = play(queue("a"), queue("b"), group("g", "a"))
    stage.command("CloseQueue", queue("a"))
    stage.change(kinds.POD_GROUP, "g", {"spec": {"queue": "b"}})
    assert state(stage, "a") == "Closed"


def test_children_close_and_open_with_their_parent() -> None:
    stage = play(queue("a"), queue("b", parent="a"), queue("c", parent="b"), queue("d", parent="a"))
    stage.command("CloseQueue", queue("d"))
    stage.command("CloseQueue", queue("a"))
    assert [state(stage, name) for name in "abcd"] == ["Closed"] * 4
    assert [mark(stage, name) for name in "abcd"] == [None, "true", "true", None]
    stage.command("OpenQueue", queue("a"))
    assert [state(stage, name) for name in "abcd"] == ["Open", "Open", "Open", "Closed"]
    assert [mark(stage, name) for name in "abcd"] == [None, "false", "false", None]
    stage.assert_settled()


def test_a_child_that_a_user_closes_as_well_stays_closed_when_its_parent_opens() -> None:
    stage = play(queue("root"), queue("a"), queue("b", parent="a"))
    stage.command("CloseQueue", stage.get(kinds.QUEUE, "a"))
    assert (state(stage, "b"), mark(stage, "b")) == ("Closed", "true")
    stage.command("CloseQueue", stage.get(kinds.QUEUE, "b"))
    stage.command("OpenQueue", stage.get(kinds.QUEUE, "a"))
    assert (state(stage, "a"), state(stage, "b"), mark(stage, "b")) == ("Open", "Closed", "false")
    stage.command("OpenQueue", stage.get(kinds.QUEUE, "b"))
    assert state(stage, "b") == "Open"


def test_root_cannot_be_closed_and_a_child_not_be_opened_before_its_parent() -> None:
    stage = play(queue("root"), queue("a"), queue("b", parent="a"))
    stage.command("CloseQueue", queue("root"))
    assert state(stage, "root") == "Open"
    told = stage.lister.emitted[-1]
    assert (told.type, told.reason, told.message) == ("Warning", "CommandRefused", "the root queue cannot be closed")
    stage.command("CloseQueue", queue("a"))
    stage.command("OpenQueue", queue("b"))
    assert state(stage, "b") == "Closed"
    assert stage.lister.emitted[-1].message == 'queue "b" cannot be opened while its parent "a" is Closed; open that first'
    assert stage.names(kinds.COMMAND) == []


def test_a_queue_that_moves_under_a_closed_parent_closes_and_opens_again_when_it_leaves() -> None:
    stage = play(queue("a"), queue("b"), queue("c"))
    stage.command("CloseQueue", queue("a"))
    stage.change(kinds.QUEUE, "c", {"spec": {"parent": "a"}})
    assert (state(stage, "c"), mark(stage, "c")) == ("Closed", "true")
    stage.change(kinds.QUEUE, "c", {"spec": {"parent": "b"}})
    assert (state(stage, "c"), mark(stage, "c")) == ("Open", "false")
    stage.command("CloseQueue", queue("a"))
    stage.change(kinds.QUEUE, "c", {"spec": {"parent": "a"}})
    stage.change(kinds.QUEUE, "c", {"spec": {"parent": "root"}})
    assert state(stage, "c") == "Open"


def test_a_command_for_something_else_is_refused_with_a_reason() -> None:
    stage = play(queue("a"))
    stage.command("AbortJob", queue("a"))
    assert stage.lister.emitted[-1].message == '"AbortJob" is not an action for a queue; use OpenQueue or CloseQueue'
