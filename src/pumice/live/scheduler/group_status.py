"""The status of a PodGroup as it is written, and when it is worth writing."""

from collections.abc import Callable
from math import inf
from typing import Any

import msgspec

from pumice.api import instant
from pumice.api.volcano import PodGroup
from pumice.live.scheduler.sent_status import without_amounts
from pumice.scheduler.framework.decisions import GroupStatus
from pumice.scheduler.model import status

AMOUNTS_S = 60.0  #: for so long a condition is not written again if only amounts in its message have changed
Status = dict[str, Any]


def known_status(group: PodGroup) -> Status:
    """The status of a PodGroup as the watch has shown it."""
    known: Status = msgspec.to_builtins(group.status)
    return known


def next_status(before: Status, group: GroupStatus, at: str, transition: str) -> Status:
    """The status of a PodGroup after the cycle. Conditions of other types stay, and so does the order of the conditions."""
    counts = group.job.counts
    after: Status = {"phase": group.phase}
    for name, bit in (("running", status.RUNNING), ("succeeded", status.SUCCEEDED), ("failed", status.FAILED)):
        if counts[bit]:
            after[name] = counts[bit]
    conditions = list(before.get("conditions") or ())
    if group.condition is not None:
        condition = {
            "type": group.condition.type,
            "status": "True",
            "transitionID": transition,
            "lastTransitionTime": at,
            "reason": group.condition.reason,
            "message": group.condition.message,
        }
        _lay(conditions, {key: value for key, value in condition.items() if value})
    if conditions:
        after["conditions"] = conditions
    return after


def _lay(conditions: list[Status], condition: Status) -> None:
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            conditions[index] = condition
            return
    conditions.append(condition)


def new_at(before: Status, after: Status) -> float:
    """When the new status is to be written: never (inf) if only times and ids of transitions differ, at once (-inf) if more than amounts
    differs. If only amounts in messages differ it waits, because these change for every waiting job whenever a pod is placed."""
    if _meaning(before) == _meaning(after):
        return inf
    if _meaning(before, without_amounts) != _meaning(after, without_amounts):
        return -inf
    changed = [old for old, new in zip(_conditions(before), _conditions(after), strict=False) if old != new]
    return min(_since(old) for old in changed) + AMOUNTS_S


def _conditions(given: Status) -> list[Status]:
    return given.get("conditions") or []


def _since(condition: Status) -> float:
    try:
        return instant(condition.get("lastTransitionTime") or "")
    except ValueError:
        return 0.0


def _meaning(given: Status, reading: Callable[[str], str] = str) -> tuple[Any, ...]:
    numbers = tuple(given.get(name) or 0 for name in ("running", "succeeded", "failed"))
    fields = ("type", "status", "reason", "message")
    conditions = tuple(tuple(reading(condition.get(field) or "") for field in fields) for condition in _conditions(given))
    return given.get("phase") or "", numbers, conditions
