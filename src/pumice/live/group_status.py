"""The status of a PodGroup as it is written, and when it is worth writing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pumice.api.times import instant
from pumice.api.volcano import PodGroup
from pumice.framework.decisions import GroupStatus
from pumice.live.said import without_amounts
from pumice.model import status

AMOUNTS_S = 60.0  #: within it a condition is not written again for the amounts in its message
Status = dict[str, Any]


def known_status(group: PodGroup) -> Status:
    """As the watch has it."""
    known: Status = msgspec.to_builtins(group.status)
    return known


def next_status(before: Status, group: GroupStatus, at: str, transition: str) -> Status:
    """What the cycle makes of it. Conditions of other types stay; their order too."""
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


def is_news(before: Status, after: Status, now: float) -> bool:
    """Whether it is to be written: not for times and ids of transitions, and not soon again for the amounts in messages alone, which change
    for everybody who waits whenever anybody is placed."""
    if _meaning(before) == _meaning(after):
        return False
    changed = [old for old, new in zip(_conditions(before), _conditions(after), strict=False) if old != new]
    return _meaning(before, without_amounts) != _meaning(after, without_amounts) or any(now - _since(old) >= AMOUNTS_S for old in changed)


def _conditions(given: Status) -> list[Status]:
    return given.get("conditions") or []


def _since(condition: Status) -> float:
    try:
        return instant(condition.get("lastTransitionTime") or "")
    except ValueError:
        return 0.0


def _meaning(given: Status, reading: Callable[[str], str] = str) -> tuple[Any, ...]:
    numbers = tuple(given.get(name) or 0 for name in ("running", "succeeded", "failed"))
    told = ("type", "status", "reason", "message")
    conditions = tuple(tuple(reading(condition.get(field) or "") for field in told) for condition in _conditions(given))
    return given.get("phase") or "", numbers, conditions
