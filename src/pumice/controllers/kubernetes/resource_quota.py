"""ResourceQuotas: their status says how much of them is used. `api.resource_quota` says how much each object is charged."""

from collections.abc import Hashable, Iterable

from pumice.api import Key, Object, key_of, kinds, namespace_of, spec_of, status_of
from pumice.api.json_objects import terminating
from pumice.api.kinds import kind_of
from pumice.api.resource_quota import used, written
from pumice.controllers.controller import NOTHING, Among, KeysOf, Lister, ObjectChange, Result, itself, result
from pumice.controllers.writes import status_change

COUNTED = {
    kinds.POD: "pods",
    kinds.SERVICE: "services",
    kinds.SECRET: "secrets",
    kinds.CONFIG_MAP: "configmaps",
    kinds.CLAIM: "persistentvolumeclaims",
    kinds.REPLICATION_CONTROLLER: "replicationcontrollers",
    kinds.RESOURCE_QUOTA: "resourcequotas",
    kinds.DEPLOYMENT: "deployments.apps",
    kinds.REPLICA_SET: "replicasets.apps",
    kinds.STATEFUL_SET: "statefulsets.apps",
    kinds.BATCH_JOB: "jobs.batch",
    kinds.BATCH_CRON_JOB: "cronjobs.batch",
    kinds.JOB: "jobs.batch.volcano.sh",
    kinds.POD_GROUP: "podgroups.scheduling.volcano.sh",
}  #: the kinds whose objects are counted, and their names in quotas
_KINDS = {resource: kind for kind, resource in COUNTED.items()}


class ResourceQuotas:
    name = "resourcequota"

    def __init__(self) -> None:
        self.watches: dict[str, KeysOf] = dict.fromkeys(COUNTED, Among(kinds.RESOURCE_QUOTA, _quotas_around))
        self.watches[kinds.RESOURCE_QUOTA] = itself

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        quota = lister.get(kinds.RESOURCE_QUOTA, *key)
        if quota is None or terminating(quota):
            return NOTHING
        hard = spec_of(quota).get("hard") or {}
        namespace = namespace_of(quota)
        amounts = used(quota, hard, lambda resource: lister.all(_KINDS[resource], namespace) if resource in _KINDS else ())
        status = {**status_of(quota), "hard": hard, "used": written({name: amounts.get(name, 0) for name in hard})}
        return result(status_change(quota, status))


CHANGING = (kinds.SERVICE, kinds.CLAIM)  #: the kinds whose spec may change so that an object is charged otherwise, besides pods
_CHARGED = ("containers", "initContainers", "activeDeadlineSeconds")  #: fields of a pod's spec that can change while the pod lives


def _is_charged_otherwise(old: Object, new: Object) -> bool:
    """Whether two states of a pod differ in what affects its charge."""
    if status_of(old).get("phase") != status_of(new).get("phase"):
        return True
    before, after = spec_of(old), spec_of(new)
    return before is not after and any(before.get(field) != after.get(field) for field in _CHARGED)


def _quotas_around(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The keys of the quotas of the namespace, if the change affects what is used."""
    old, new = change
    if old and new:
        kind = kind_of(new)
        if not (_is_charged_otherwise(old, new) if kind == kinds.POD else kind in CHANGING and spec_of(old) != spec_of(new)):
            return ()
    return [key_of(quota) for quota in lister.all(kinds.RESOURCE_QUOTA, namespace_of(change.object))]
