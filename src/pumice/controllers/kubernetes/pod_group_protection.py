"""Kubernetes' own PodGroups stay while they are needed: the finalizer that each gets is removed once no running pod names the group.

Pods of a Job are owned by their group as well. When the Job is gone, each would wait for the other: the group for its pods, and the pods,
which are collected with their last owner, for the group. So a group that goes deletes the pods that nobody else owns.
"""

from collections.abc import Hashable, Iterable, Mapping

from pumice.api import Key, Object, kinds, namespace_of, spec_of, uid_of
from pumice.api.annotations import GROUP_PROTECTION
from pumice.api.json_objects import finalizers_of, owners_of, terminating
from pumice.controllers.controller import NOTHING, Among, KeysOf, Lister, ObjectChange, Result, itself, result
from pumice.controllers.kubernetes.owned_pods import ENDED, phase
from pumice.controllers.writes import delete, without_finalizer

GROUP = kinds.NATIVE_POD_GROUPS.name


def group_of(pod: Object) -> str:
    """The name of the group that a pod belongs to; empty if it belongs to none."""
    return str((spec_of(pod).get("schedulingGroup") or {}).get("podGroupName") or "")


class PodGroupProtection:
    name = "podgroup-protection"

    def __init__(self) -> None:
        self.watches: Mapping[str, KeysOf] = {GROUP: itself, kinds.POD: Among(GROUP, _its_group)}

    def reconcile(self, key: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(key, Key)
        group = lister.get(GROUP, *key)
        if group is None or not terminating(group) or GROUP_PROTECTION not in finalizers_of(group):
            return NOTHING
        running = [pod for pod in lister.all(kinds.POD, key.namespace) if group_of(pod) == key.name and phase(pod) not in ENDED]
        if running:
            return result(
                delete(pod) for pod in running if not terminating(pod) and [one["uid"] for one in owners_of(pod)] == [uid_of(group)]
            )
        return result(without_finalizer(group, GROUP_PROTECTION))


def _its_group(change: ObjectChange, lister: Lister) -> Iterable[Key]:
    """The group of a pod, if it is on its way out; a new pod holds up its group, and changes nothing."""
    name = group_of(change.old) if change.old is not None else ""
    group = lister.get(GROUP, namespace_of(change.object), name) if name else None
    return [Key(namespace_of(change.object), name)] if group is not None and terminating(group) else []
