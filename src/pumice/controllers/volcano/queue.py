"""Queues: their state (Open, Closing, Closed, Unknown), the Commands that open and close them, and the rules of a tree of queues.

A closing queue is Closed once no PodGroup names it. A queue under a closed parent is closed with it (and marked, so that it
opens again with it); `root` cannot be closed, and a child cannot be opened before its parent. All this is derived from the
objects: a queue is reconciled when it, its parent, its PodGroups or a Command for it change.
"""

from collections.abc import Hashable, Iterable

from pumice.api import Key, Object, annotations as key, kinds, name_of, spec_of, status_of
from pumice.api.defaults import ROOT_QUEUE
from pumice.api.json_objects import annotations_of, field, terminating
from pumice.controllers.controller import NOTHING, Lister, ObjectChange, Result, itself, result
from pumice.controllers.volcano.command import commands_for, taken, target_of
from pumice.controllers.writes import Emit, Write, delete, patch, status_change

OPEN, CLOSED, CLOSING, UNKNOWN = "Open", "Closed", "Closing", "Unknown"
SYNC, OPEN_QUEUE, CLOSE_QUEUE = "SyncQueue", "OpenQueue", "CloseQueue"


def next_state(state: str, action: str, busy: bool) -> str:
    """The state of a queue after an action. `busy`: whether there are PodGroups that name the queue."""
    if action == OPEN_QUEUE:
        return OPEN
    if action == CLOSE_QUEUE and state != CLOSED:
        return CLOSING if busy else CLOSED
    if state == CLOSING:
        return CLOSING if busy else CLOSED
    if state == CLOSED:
        return CLOSED
    return OPEN if state in ("", OPEN) else UNKNOWN


class Queues:
    """Keeps `status.state` and `spec.parent` of queues."""

    name = "queue"

    def __init__(self) -> None:
        self.watches = {kinds.QUEUE: _with_relatives, kinds.POD_GROUP: _queue_named, kinds.COMMAND: target_of(kinds.QUEUE)}

    def reconcile(self, queue_key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(queue_key, Key)
        queue = lister.get(kinds.QUEUE, "", queue_key.name)
        if queue is None or terminating(queue):
            return NOTHING
        command = next(commands_for(queue, lister), None)
        if command is None:
            entered = _enter(queue, *_without_command(queue, lister), lister)
            is_new = not status_of(queue).get("state")  # a user who waits until it is open finds its parent
            return result([*_adopt(queue), *entered] if is_new else [*entered, *_adopt(queue)])
        refusal = _refusal(queue, command["action"], lister)
        if refusal:
            return result([delete(command), Emit(queue, "Warning", "CommandRefused", refusal)])
        done = Emit(queue, "Normal", command["action"], f"{command['action'].removesuffix('Queue')} queue succeed")
        writes = (delete(command), taken(command, queue, command["action"]), done)
        by_hand = False if key.CLOSED_BY_PARENT in annotations_of(queue) else None  # a queue closed by a user does not open with its parent
        return result([*_enter(queue, command["action"], by_hand, lister), *writes, *_adopt(queue)])  # a Command may be carried out twice


def _adopt(queue: Object) -> list[Write]:
    """The write that gives a queue its parent `root`. It comes last if the queue has a state: admission may refuse it for an old queue."""
    if name_of(queue) == ROOT_QUEUE or spec_of(queue).get("parent"):
        return []
    return [patch(queue, {"spec": {"parent": ROOT_QUEUE}})]


def _refusal(queue: Object, action: str, lister: Lister) -> str:
    """Why a Command cannot be carried out; empty if it can."""
    parent = _parent(queue, lister)
    if action not in (OPEN_QUEUE, CLOSE_QUEUE):
        return f'"{action}" is not an action for a queue; use {OPEN_QUEUE} or {CLOSE_QUEUE}'
    if action == CLOSE_QUEUE and name_of(queue) == ROOT_QUEUE:
        return "the root queue cannot be closed"
    if action == OPEN_QUEUE and parent is not None and _shut(parent):
        return f'queue "{name_of(queue)}" cannot be opened while its parent "{name_of(parent)}" is {state_of(parent)}; open that first'
    return ""


def _without_command(queue: Object, lister: Lister) -> tuple[str, bool | None]:
    """The action that the parent's state requires, and whether to mark the queue as closed by its parent (None: leave the mark)."""
    parent = _parent(queue, lister)
    if parent is not None and _shut(parent) and not _shut(queue):
        return CLOSE_QUEUE, True
    freed = parent is None or state_of(parent) == OPEN
    if freed and _shut(queue) and annotations_of(queue).get(key.CLOSED_BY_PARENT) == "true":
        return OPEN_QUEUE, False
    return SYNC, None


def _parent(queue: Object, lister: Lister) -> Object | None:
    """The parent of a queue; None if it does not exist, or is `root`, which is always open."""
    name = spec_of(queue).get("parent") or ROOT_QUEUE
    return None if name in (ROOT_QUEUE, name_of(queue)) else lister.get(kinds.QUEUE, "", name)


def _enter(queue: Object, action: str, closed_by_parent: bool | None, lister: Lister) -> list[Write]:
    before = status_of(queue).get("state") or ""
    state = next_state(before, action, busy=True)
    if state == CLOSING and not any(True for _ in lister.by_field(kinds.POD_GROUP, "spec.queue", name_of(queue))):
        state = next_state(before, action, busy=False)
    if state == OPEN and key.CLOSED_BY_PARENT in annotations_of(queue):
        closed_by_parent = False
    writes: list[Write] = []
    mark = None if closed_by_parent is None else str(closed_by_parent).lower()
    if mark is not None and annotations_of(queue).get(key.CLOSED_BY_PARENT) != mark:
        writes.append(patch(queue, {"metadata": {"annotations": {key.CLOSED_BY_PARENT: mark}}}))
    if state == status_of(queue).get("state"):
        return writes
    # Volcano 1.8's definition takes no status without `allocated`, which the scheduler fills in later
    return [*writes, *status_change(queue, {"allocated": {}, **status_of(queue), "state": state})]


def state_of(queue: Object) -> str:
    return str(status_of(queue).get("state") or OPEN)


def _shut(queue: Object) -> bool:
    return state_of(queue) in (CLOSED, CLOSING)


def _with_relatives(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The keys of the queue and of its children, whose state follows that of the queue."""
    yield from itself(change, lister)
    for child in lister.by_field(kinds.QUEUE, "spec.parent", name_of(change.object)):
        yield Key("", name_of(child))


def _queue_named(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The keys of the queues that gained or lost a PodGroup."""
    names = [field(state, "spec.queue") if state else None for state in change]
    if names[0] != names[1]:
        yield from (Key("", name) for name in names if name)
