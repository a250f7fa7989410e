"""How many pods of one owner are made in a turn, and how many may wait for a node at a time.

A Deployment of two billion replicas is a hundred bytes. Its pods are made only as far as they find nodes, so that it fills neither the
memory of the server nor the queue of a scheduler; a condition says so. A gang, which starts only when it is complete, is made whole.
"""

from collections.abc import Iterable

from pumice.api import Object, rfc3339, spec_of
from pumice.api.annotations import GROUP_MIN_MEMBER
from pumice.api.integers import integer
from pumice.api.json_objects import annotations_of, condition, terminating
from pumice.api.plural import plural

MOST_WAITING = 2000
TYPE, REASON, REFUSED = "ReplicaFailure", "TooManyPodsWait", "FailedCreate"
BURST = 500  #: so many pods are made in a turn; more only beside as many older ones


def burst(existing: int) -> int:
    """The most pods to make in a turn, beside so many existing ones; the new pods cause the next turn. As they may double, to count all of
    them in each turn costs no more in the end than to make them."""
    return max(BURST, existing)


def room(owner: Object, pods: Iterable[Object], most: int) -> int:
    """How many more pods may be made now, beside these."""
    waiting = sum(not (spec_of(pod).get("nodeName") or terminating(pod)) for pod in pods)
    return max(0, max(most, integer(annotations_of(owner).get(GROUP_MIN_MEMBER, "0"))) - waiting)


def note(status: Object, held_back: bool, most: int, now: float) -> None:
    """Say in the draft of the owner's status, by a condition, that pods are held back, or no longer are."""
    before = condition({"status": status}, TYPE) or {}
    waited = before.get("reason") == REASON
    if not (held_back or waited):
        return
    others = [each for each in status.get("conditions") or () if each.get("reason") != REASON]
    text = f"{most} of its pods {plural(most, 'waits', 'wait')} for a node; more are made as these get one"
    since = before["lastTransitionTime"] if waited else rfc3339(now)
    mine = {"type": TYPE, "status": "True", "reason": REASON, "message": text, "lastTransitionTime": since}
    status["conditions"] = [*others, *([mine] if held_back else [])]


def refused(status: Object, message: str, now: float) -> Object:
    """The status of an owner, one of whose pods could not be created. The message is that of the first refusal: each names another pod."""
    before = condition({"status": status}, TYPE) or {}
    if before.get("reason") == REFUSED:
        return status
    mine = {"type": TYPE, "status": "True", "reason": REFUSED, "message": message, "lastTransitionTime": rfc3339(now)}
    return {**status, "conditions": [*(each for each in status.get("conditions") or () if each.get("type") != TYPE), mine]}


def complete(status: Object) -> None:
    """Note in the draft of the owner's status that no pod is missing any more."""
    if any(each.get("reason") == REFUSED for each in status.get("conditions") or ()):
        status["conditions"] = [each for each in status["conditions"] if each.get("reason") != REFUSED]
