"""The condition of a pod that waits: PodScheduled=False, with the reason and the nominated node."""

from typing import Any

from pumice.client.bind_and_evict import set_conditions
from pumice.live.scheduler.requests import MarkPod


def apply_mark(status: dict[str, Any], request: MarkPod, at: str) -> bool:
    """Write into a pod's status that it waits, and return whether that changed it. A pod that was placed meanwhile is left alone."""
    there = status.get("conditions") or []
    if any(condition.get("type") == "PodScheduled" and condition.get("status") == "True" for condition in there):
        return False
    condition = {"type": "PodScheduled", "status": "False", "lastTransitionTime": at}
    changed = set_conditions(status, [condition | {"reason": request.reason, "message": request.message}])
    if request.nominated is not None and request.nominated != status.get("nominatedNodeName", ""):
        status["nominatedNodeName"] = request.nominated
        changed = True
    return changed
