"""What a plugin answers when it is asked: a vote, or a refusal with its reason."""

from enum import IntEnum

from msgspec import Struct


class Vote(IntEnum):
    """The vote of one plugin. REJECT decides at once, PERMIT decides unless another plugin of its tier rejects, ABSTAIN does not count."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class Refusal(Struct, frozen=True):
    """Why a plugin refuses a job or a task. `reason` is the word that Volcano writes into conditions, `message` is the text for people."""

    reason: str
    message: str


NOT_ENOUGH_RESOURCES = "NotEnoughResources"
NOT_ENOUGH_TASKS = "NotEnoughTasks"
NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
UNSCHEDULABLE = "Unschedulable"
SCHEDULABLE = "Schedulable"
