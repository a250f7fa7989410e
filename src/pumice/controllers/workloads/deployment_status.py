"""What a Deployment says about itself: counts over its ReplicaSets, and the conditions Available and Progressing."""

from __future__ import annotations

from collections.abc import Sequence

from pumice.api.json_objects import copied
from pumice.api.times import instant, rfc3339
from pumice.controllers.objects import Object, condition, name_of, spec_of, status_of
from pumice.controllers.workloads.rollout import limits

DEADLINE_S = 600
PARTS = {"replicas": "replicas", "readyReplicas": "readyReplicas", "availableReplicas": "availableReplicas"}


def deployment_status(deployment: Object, new: Object | None, old: Sequence[Object], now: float) -> tuple[Object, float | None]:
    """The status, and when the rollout will have taken too long."""
    sets = [*old, *([new] if new is not None else [])]
    wanted = int(spec_of(deployment).get("replicas", 1))
    counts = {name: sum(int(status_of(each).get(part) or 0) for each in sets) for name, part in PARTS.items()}
    counts["updatedReplicas"] = int(status_of(new).get("replicas") or 0) if new is not None else 0
    counts["unavailableReplicas"] = max(0, sum(int(spec_of(each).get("replicas", 1)) for each in sets) - counts["availableReplicas"])
    stored = status_of(deployment)
    status = {**copied(stored), **{name: value for name, value in counts.items() if value or name in stored}}
    status["observedGeneration"] = deployment["metadata"].get("generation", 1)
    moved = any(counts[name] != (stored.get(name) or 0) for name in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"))
    complete = counts["updatedReplicas"] == counts["replicas"] == counts["availableReplicas"] == wanted
    progressing, deadline = _progressing(deployment, new, complete, moved, now)
    status["conditions"] = [_available(deployment, counts["availableReplicas"], now), progressing]
    return status, deadline


def _available(deployment: Object, count: int, now: float) -> Object:
    within = limits(int(spec_of(deployment).get("replicas", 1)), spec_of(deployment).get("strategy"))
    if count >= within.min_available:
        return _entry(deployment, "Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    message = "Deployment does not have minimum availability."
    return _entry(deployment, "Available", "False", "MinimumReplicasUnavailable", message, now)


def _progressing(deployment: Object, new: Object | None, complete: bool, moved: bool, now: float) -> tuple[Object, float | None]:
    before = condition(deployment, "Progressing")
    limit_s = float(spec_of(deployment).get("progressDeadlineSeconds") or DEADLINE_S)
    subject = f'ReplicaSet "{name_of(new)}"' if new is not None else f'Deployment "{name_of(deployment)}"'
    if spec_of(deployment).get("paused"):
        return _entry(deployment, "Progressing", "Unknown", "DeploymentPaused", "Deployment is paused", now), None
    if complete:
        text = f"{subject} has successfully progressed."
        return _entry(deployment, "Progressing", "True", "NewReplicaSetAvailable", text, now, moved), None
    went_on = moved or before is None or before.get("reason") in ("NewReplicaSetAvailable", "DeploymentPaused")
    since = now if went_on else instant((before or {}).get("lastUpdateTime") or rfc3339(now))
    if not went_on and (now - since >= limit_s or (before or {}).get("reason") == "ProgressDeadlineExceeded"):
        text = f"{subject} has timed out progressing."
        return _entry(deployment, "Progressing", "False", "ProgressDeadlineExceeded", text, now), None
    entry = _entry(deployment, "Progressing", "True", "ReplicaSetUpdated", f"{subject} is progressing.", now, went_on)
    return entry, since + limit_s


def _entry(deployment: Object, type_: str, status: str, reason: str, message: str, now: float, touched: bool = False) -> Object:
    """A condition whose times move only if it says something new."""
    before = condition(deployment, type_) or {}
    same = before.get("status") == status and before.get("reason") == reason and before.get("message") == message
    stamp = rfc3339(now)
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": before.get("lastTransitionTime", stamp) if before.get("status") == status else stamp,
        "lastUpdateTime": before.get("lastUpdateTime", stamp) if same and not touched else stamp,
    }
