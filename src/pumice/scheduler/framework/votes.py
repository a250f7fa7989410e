"""Verdicts are values: a refusal says what was needed and how much is short. Also the three-valued vote."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Vote(IntEnum):
    """A veto ends the asking; a permit ends its tier; who abstains is not counted."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Refusal(NamedTuple):
    """Why not. `reason` is Volcano's word for conditions, `message` what a person reads."""

    reason: str
    message: str


NOT_ENOUGH_RESOURCES = "NotEnoughResources"
NOT_ENOUGH_TASKS = "NotEnoughTasks"
NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
UNSCHEDULABLE = "Unschedulable"
SCHEDULABLE = "Schedulable"
