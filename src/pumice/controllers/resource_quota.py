"""ResourceQuotas: what of them is used, by pods as they are charged and by counts of objects.

Pods that have ended are free. A quota with scopes counts only the pods in all of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from pumice.controllers import kinds
from pumice.controllers.controller import NOTHING, Change, Result, itself, result
from pumice.controllers.kinds import kind_of
from pumice.controllers.objects import Key, Object, key_of, namespace_of, spec_of, status_of, terminating
from pumice.controllers.quota_usage import Usage, add, pod_usage, written
from pumice.controllers.world import World
from pumice.controllers.writes import status_change

COUNTED = {
    kinds.SERVICE: ("services", "count/services"),
    kinds.SECRET: ("secrets", "count/secrets"),
    kinds.CONFIG_MAP: ("configmaps", "count/configmaps"),
    kinds.CLAIM: ("persistentvolumeclaims", "count/persistentvolumeclaims"),
    kinds.REPLICATION_CONTROLLER: ("replicationcontrollers", "count/replicationcontrollers"),
    kinds.RESOURCE_QUOTA: ("resourcequotas", "count/resourcequotas"),
    kinds.DEPLOYMENT: ("count/deployments.apps",),
    kinds.REPLICA_SET: ("count/replicasets.apps",),
    kinds.STATEFUL_SET: ("count/statefulsets.apps",),
    kinds.BATCH_JOB: ("count/jobs.batch",),
    kinds.BATCH_CRON_JOB: ("count/cronjobs.batch",),
    kinds.JOB: ("count/jobs.batch.volcano.sh",),
    kinds.POD_GROUP: ("count/podgroups.scheduling.volcano.sh",),
}  #: the names under which objects of a kind are counted


class ResourceQuotas:
    """Keeps `status.used`."""

    name = "resourcequota"

    def __init__(self) -> None:
        self.watches = {**dict.fromkeys((kinds.POD, *COUNTED), _quotas_around), kinds.RESOURCE_QUOTA: itself}

    def reconcile(self, key: Hashable, world: World, now: float) -> Result:
        assert isinstance(key, Key)
        quota = world.get(kinds.RESOURCE_QUOTA, *key)
        if quota is None or terminating(quota):
            return NOTHING
        hard = spec_of(quota).get("hard") or {}
        used = usage(quota, world)
        status = {**status_of(quota), "hard": hard, "used": written({name: used.get(name, 0) for name in hard})}
        return result(status_change(quota, status))


def usage(quota: Object, world: World) -> Usage:
    """What is used of everything that a quota could limit."""
    namespace, scopes = namespace_of(quota), _scopes(quota)
    pods = (pod for pod in world.all(kinds.POD, namespace) if status_of(pod).get("phase") not in ("Succeeded", "Failed"))
    parts = [pod_usage(spec_of(pod)) for pod in pods if all(_in_scope(pod, scope) for scope in scopes)]
    if scopes:
        return add(parts)
    hard = spec_of(quota).get("hard") or {}
    for kind, names in COUNTED.items():
        if any(name in hard for name in names):
            count = sum(1 for _ in world.all(kind, namespace))
            parts.append(dict.fromkeys(names, count * 1000))
    if "requests.storage" in hard:
        parts.extend(_storage(claim) for claim in world.all(kinds.CLAIM, namespace))
    return add(parts)


def _storage(claim: Object) -> Usage:
    requests = (spec_of(claim).get("resources") or {}).get("requests") or {}
    container = {"resources": {"requests": {"storage": requests.get("storage", "0")}}}
    return {"requests.storage": pod_usage({"containers": [container]})["requests.storage"]}


def _scopes(quota: Object) -> list[Object]:
    plain = [{"scopeName": name, "operator": "Exists"} for name in spec_of(quota).get("scopes") or ()]
    return [*plain, *((spec_of(quota).get("scopeSelector") or {}).get("matchExpressions") or ())]


def _in_scope(pod: Object, scope: Object) -> bool:
    spec, name = spec_of(pod), scope["scopeName"]
    if name == "PriorityClass":
        stated, values = spec.get("priorityClassName"), scope.get("values") or []
        answers = {"In": stated in values, "NotIn": stated not in values, "Exists": bool(stated), "DoesNotExist": not stated}
        return answers.get(scope["operator"], False)
    best_effort = set(pod_usage(spec)) <= {"pods", "count/pods"}
    bounded = spec.get("activeDeadlineSeconds") is not None
    answers = {"BestEffort": best_effort, "NotBestEffort": not best_effort, "Terminating": bounded, "NotTerminating": not bounded}
    return answers.get(name, False)


def _charge(pod: Object) -> list[object]:
    """What of a living pod's spec can change and is charged."""
    return [spec_of(pod).get(part) for part in ("containers", "initContainers", "activeDeadlineSeconds")]


def _quotas_around(change: Change, world: World) -> Iterable[Key]:
    """The quotas of the namespace, if the change is one that counts."""
    old, new = change
    if old and new and kind_of(new) != kinds.POD:
        return ()
    if old and new and status_of(old).get("phase") == status_of(new).get("phase") and _charge(old) == _charge(new):
        return ()
    return [key_of(quota) for quota in world.all(kinds.RESOURCE_QUOTA, namespace_of(change.object))]
