"""The status of a PodGroup as it is written, and when two of them say the same."""

from __future__ import annotations

from typing import Any

import msgspec

from pumice.api.volcano import PodGroup
from pumice.framework.decisions import GroupStatus
from pumice.model import status

HYPERNODE_KEY = "volcano.sh/job-allocated-hypernode"
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


def same_status(left: Status, right: Status) -> bool:
    """Equal but for the times and ids of transitions."""
    return _meaning(left) == _meaning(right)


def _meaning(given: Status) -> tuple[Any, ...]:
    numbers = tuple(given.get(name) or 0 for name in ("running", "succeeded", "failed"))
    told = ("type", "status", "reason", "message")
    conditions = tuple(tuple(condition.get(field) or "" for field in told) for condition in given.get("conditions") or ())
    return given.get("phase") or "", numbers, conditions
