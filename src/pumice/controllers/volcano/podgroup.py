"""PodGroups for pods without a PodGroup: plain pods, and those of ReplicaSets, StatefulSets, DaemonSets and Jobs.

Pods with the same controller share the PodGroup `podgroup-<uid of the controller>`; a pod without one gets `podgroup-<its uid>`.
A pod that names a PodGroup itself is left alone, so several workloads may share a PodGroup that a user made. A workload may
ask to be scheduled as a gang (`scheduling.volcano.sh/group-min-member`); if it is scaled to zero, its PodGroup is deleted.
If a PodGroup is lost otherwise, it is made again, because its pods would wait for ever. An annotation that is patched onto the
pod names the PodGroup for the scheduler.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from pumice.api import annotations as key
from pumice.api import kinds
from pumice.api.json_objects import (
    Key,
    Object,
    annotations_of,
    controlled_by,
    controller_of,
    copied,
    key_of,
    labels_of,
    namespace_of,
    owners_of,
    spec_of,
    status_of,
    terminating,
    uid_of,
)
from pumice.api.kinds import kind_of
from pumice.api.meta import SCHEDULER_NAME
from pumice.api.quantity import integer
from pumice.api.quota import pod_usage, times, written
from pumice.controllers.controller import NOTHING, Create, Lister, ObjectChange, Result, Write, change, delete, patch, result

SCALABLE = (kinds.REPLICA_SET, kinds.STATEFUL_SET)
ANNOTATED_OWNERS = (*SCALABLE, kinds.DAEMON_SET, kinds.BATCH_JOB)
FROM_POD = (key.PREEMPTABLE, key.COOLDOWN_TIME, key.REVOCABLE_ZONE)


class GroupSubject(NamedTuple):
    """The key of a pod or a workload whose PodGroup is to be kept."""

    kind: str
    namespace: str
    name: str


class PodGroups:
    """Makes shadow PodGroups for the pods of the given schedulers."""

    name = "podgroup"

    def __init__(self, scheduler_names: Iterable[str] = (SCHEDULER_NAME,), inherit_owner_annotations: bool = True) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.inherit = inherit_owner_annotations
        self.watches = {kinds.POD: self._pod_changed, kinds.POD_GROUP: self._group_lost, **dict.fromkeys(SCALABLE, _scale_changed)}

    def _pod_changed(self, change: ObjectChange, lister: Lister) -> Iterable[GroupSubject]:
        if change.old is None and change.new is not None and self._lacks_group(change.new):
            yield GroupSubject(kinds.POD, *key_of(change.new))

    def _group_lost(self, change: ObjectChange, lister: Lister) -> Iterable[GroupSubject]:
        """The keys for a PodGroup that is gone: that of its workload, or else those of its pods."""
        owner = controller_of(change.object)
        if change.new is not None or owner is None:
            return
        where = namespace_of(change.object)
        if kind_of(owner) in SCALABLE and lister.get(kind_of(owner), where, owner["name"]) is not None:
            yield GroupSubject(kind_of(owner), where, owner["name"])
            return
        itself = lister.get(kinds.POD, where, owner["name"]) if kind_of(owner) == kinds.POD else None
        left = [itself] if itself is not None else lister.dependents(owner["uid"], kinds.POD)
        yield from (GroupSubject(kinds.POD, *key_of(pod)) for pod in left if self._in_own_group(pod))

    def _lacks_group(self, pod: Object) -> bool:
        return self._in_own_group(pod) and not annotations_of(pod).get(key.GROUP_NAME)

    def _in_own_group(self, pod: Object) -> bool:
        """Whether we keep the pod's PodGroup: the pod is for our schedulers, is not being deleted, and names no other PodGroup."""
        ours = spec_of(pod).get("schedulerName") in self.scheduler_names and not terminating(pod)
        return ours and annotations_of(pod).get(key.GROUP_NAME, "") in ("", group_name(pod))

    def looks_up(self, subject: Hashable, lister: Lister) -> Iterable[tuple[str, Key]]:
        """The owners of a pod, whose annotations its PodGroup inherits."""
        assert isinstance(subject, GroupSubject)
        pod = lister.get(*subject) if subject.kind == kinds.POD and self.inherit else None
        if pod is not None:
            for owner in owners_of(pod):
                if kind_of(owner) in ANNOTATED_OWNERS:
                    yield kind_of(owner), Key(subject.namespace, owner["name"])

    def reconcile(self, subject: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(subject, GroupSubject)
        found = lister.get(*subject)
        if found is None:
            return NOTHING
        return result(self._for_pod(found, lister) if subject.kind == kinds.POD else self._for_workload(found, lister))

    def _for_pod(self, pod: Object, lister: Lister) -> list[Write]:
        if not self._in_own_group(pod):
            return []
        group = lister.get(kinds.POD_GROUP, namespace_of(pod), group_name(pod))
        made: list[Write] = []
        if group is None or terminating(group):
            made = [Create(self.build(pod, lister), pod)]
        elif self._is_of_newest_revision(pod, lister):
            made = _update(group, self.build(pod, lister))
        mark = {"metadata": {"annotations": {key.GROUP_NAME: group_name(pod)}}}
        return [*made, *([patch(pod, mark)] if self._lacks_group(pod) else [])]

    def _is_of_newest_revision(self, pod: Object, lister: Lister) -> bool:
        """Whether the pod is of a StatefulSet's newest revision: it updates the PodGroup, as no such pod existed when the set changed."""
        owner = controller_of(pod)
        if owner is None or kind_of(owner) != kinds.STATEFUL_SET:
            return False
        workload = lister.get(kinds.STATEFUL_SET, namespace_of(pod), owner["name"])
        return workload is not None and self._speaks_for(pod, workload)

    def _for_workload(self, workload: Object, lister: Lister) -> list[Write]:
        """The writes that adapt the PodGroup to the workload's scale, annotations and template."""
        group = lister.get(kinds.POD_GROUP, namespace_of(workload), f"podgroup-{uid_of(workload)}")
        if spec_of(workload).get("replicas", 1) == 0:
            return [delete(group)] if group is not None and not terminating(group) else []
        pod = next((each for each in lister.dependents(uid_of(workload), kinds.POD) if self._speaks_for(each, workload)), None)
        if pod is None:
            return []
        wanted = self.build(pod, lister)
        return _update(group, wanted) if group is not None else [Create(wanted, workload)]

    def _speaks_for(self, pod: Object, workload: Object) -> bool:
        """Whether the workload's PodGroup can be built from this pod: it is ours, in no other PodGroup, and of the newest revision."""
        if not self._in_own_group(pod):
            return False
        revision = status_of(workload).get("updateRevision")
        return not revision or labels_of(pod).get(key.CONTROLLER_REVISION_HASH, revision) == revision

    def build(self, pod: Object, lister: Lister) -> Object:
        """The PodGroup for this pod and the others of its controller."""
        inherited = self._inherited(pod, lister)
        members = _min_member(inherited) if controller_of(pod) else 1  # a pod with owners and no controller has no pods to wait for
        group = kinds.new(kinds.POD_GROUP, namespace_of(pod), group_name(pod))
        group["metadata"]["ownerReferences"] = copied(owners_of(pod)) if controller_of(pod) else [controlled_by(pod)]
        notes = _group_annotations(pod, {name: value for name, value in inherited.items() if name.startswith("volcano.sh/")})
        tags = {name: labels_of(pod)[name] for name in (key.PREEMPTABLE, key.COOLDOWN_TIME) if name in labels_of(pod)}
        group["metadata"].update({name: value for name, value in (("annotations", notes), ("labels", tags)) if value})
        group["spec"] = {"minMember": members, "minResources": written(times(pod_usage(spec_of(pod)), members))}
        group["spec"].update(_optional_spec(pod))
        group["status"] = {"phase": "Pending"}
        return group

    def _inherited(self, pod: Object, lister: Lister) -> dict[str, str]:
        """The annotations of the pod's owners; if several owners state the same one, the first of them wins."""
        found: dict[str, str] = {}
        for owner in owners_of(pod) if self.inherit else ():
            workload = lister.get(kind_of(owner), namespace_of(pod), owner["name"]) if kind_of(owner) in ANNOTATED_OWNERS else None
            found = {**(annotations_of(workload) if workload else {}), **found}
        return found


def _scale_changed(change: ObjectChange, lister: Lister) -> Iterable[GroupSubject]:
    """The key of a workload that is new, or of which a part changed from which its PodGroup is made: changes of its pods do not count."""
    old, new = change
    if new is not None and (old is None or _says(old) != _says(new)):
        yield GroupSubject(kind_of(new), *key_of(new))


def _says(workload: Object) -> tuple[object, ...]:
    return spec_of(workload), annotations_of(workload), status_of(workload).get("updateRevision")


def group_name(pod: Object) -> str:
    """The name of the PodGroup that is made for a pod."""
    owner = controller_of(pod)
    return f"podgroup-{owner['uid'] if owner else uid_of(pod)}"


def _min_member(inherited: dict[str, str]) -> int:
    stated = integer(inherited.get(key.GROUP_MIN_MEMBER, "1"), 1)
    return stated if stated >= 0 else 1


def _group_annotations(pod: Object, inherited: dict[str, str]) -> dict[str, str]:
    own = annotations_of(pod)
    budget = next(((name,) for name in (key.JDB_MIN_AVAILABLE, key.JDB_MAX_UNAVAILABLE) if name in own), ())
    return inherited | {name: own[name] for name in (*FROM_POD, *budget) if name in own}


def _optional_spec(pod: Object) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if queue := annotations_of(pod).get(key.QUEUE_NAME):
        spec["queue"] = queue
    if priority_class := spec_of(pod).get("priorityClassName"):
        spec["priorityClassName"] = priority_class
    if topology := _network_topology(annotations_of(pod)):
        spec["networkTopology"] = topology
    return spec


def _network_topology(notes: Any) -> dict[str, Any]:
    mode, tier = notes.get(key.TOPOLOGY_MODE), notes.get(key.TOPOLOGY_HIGHEST_TIER, "")
    if mode is None and not tier:
        return {}
    topology: dict[str, Any] = {"mode": "soft" if (mode or "").lower() == "soft" else "hard"}
    if (number := integer(tier, -1)) >= 0:
        topology["highestTierAllowed"] = number
    return topology


def _update(group: Object, wanted: Object) -> list[Write]:
    """The writes that make an existing PodGroup as wanted now; fields that others added to it stay."""
    target = copied(group)
    target["spec"] = {**spec_of(group), **wanted["spec"]}
    for part in ("labels", "annotations"):
        if merged := {**(group["metadata"].get(part) or {}), **wanted["metadata"].get(part, {})}:
            target["metadata"][part] = merged
    return change(group, target)
