"""PodGroups for pods without a PodGroup: plain pods, and those of ReplicaSets, StatefulSets, DaemonSets and Jobs.

Pods with the same controller share the PodGroup `podgroup-<uid of the controller>`; a pod without one gets `podgroup-<its uid>`.
A pod that names a PodGroup itself is left alone, so several workloads may share a PodGroup that a user made. A workload may
ask to be scheduled as a gang (`scheduling.volcano.sh/group-min-member`); if it is scaled to zero, its PodGroup is deleted.
If a PodGroup is lost otherwise, it is made again, because its pods would wait for ever. An annotation that is patched onto the
pod names the PodGroup for the scheduler.

Pods whose owners, labels or fields mean a gang in another dialect get the PodGroup of that gang (`foreign_gangs.py`) unless
`gangs_of_others` is False. The condition of Kubernetes' own PodGroups follows the PodGroups that are made for them.
"""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

from pumice.api import Key, Object, annotations as key, key_of, kinds, name_of, namespace_of, rfc3339, spec_of, status_of, uid_of
from pumice.api.defaults import SCHEDULER_NAME
from pumice.api.gang_dialects import COSCHEDULING_POD_GROUPS, NAMED, READ
from pumice.api.integers import integer
from pumice.api.json_objects import (
    annotations_of,
    condition,
    controlled_by,
    controller_of,
    copied,
    created_at,
    labels_of,
    owners_of,
    terminating,
)
from pumice.api.kinds import kind_of
from pumice.api.kube_pod_groups import SCHEDULED
from pumice.api.resource_quota import pod_usage, times, written
from pumice.controllers.controller import GANG_FIELD, GANG_LABEL, NOTHING, Lister, ObjectChange, Result, result
from pumice.controllers.volcano.foreign_gangs import (
    COMPOSITE,
    ForeignGang,
    gang_of,
    group_spec,
    known_by,
    leaves_below,
    marks,
    native_gang,
    reference_to,
)
from pumice.controllers.writes import Create, Write, change, delete, patch, status_change

SCALABLE = (kinds.REPLICA_SET, kinds.STATEFUL_SET)
ANNOTATED_OWNERS = (*SCALABLE, kinds.DAEMON_SET, kinds.BATCH_JOB)
FROM_POD = (key.PREEMPTABLE, key.COOLDOWN_TIME, key.REVOCABLE_ZONE)
GANGS = frozenset(kind.name for kind in READ)  #: the kinds whose objects mean a gang
WITH_CONDITION = (kinds.NATIVE_POD_GROUP, COMPOSITE)  #: the kinds whose PodGroups say what became of them
PATIENCE_S, PAUSE_S = 10.0, 1.0  #: how long a new pod waits for an owner that is not known, and how often it is looked for


class GroupSubject(NamedTuple):
    """The key of a pod or a workload whose PodGroup is to be kept."""

    kind: str
    namespace: str
    name: str


class PodGroups:
    """Makes shadow PodGroups for the pods of the given schedulers."""

    name = "podgroup"

    def __init__(
        self, scheduler_names: Iterable[str] = (SCHEDULER_NAME,), inherit_owner_annotations: bool = True, gangs_of_others: bool = True
    ) -> None:
        self.scheduler_names = frozenset(scheduler_names)
        self.inherit = inherit_owner_annotations
        self.gangs_of_others = gangs_of_others
        self.watches = {kinds.POD: self._pod_changed, kinds.POD_GROUP: self._group_changed, **dict.fromkeys(SCALABLE, _scale_changed)}
        if gangs_of_others:
            self.watches |= dict.fromkeys(GANGS, self._gang_changed)

    def _pod_changed(self, change: ObjectChange, lister: Lister) -> Iterable[GroupSubject]:
        if change.old is None and change.new is not None and self._lacks_group(change.new):
            yield GroupSubject(kinds.POD, *key_of(change.new))

    def _group_changed(self, change: ObjectChange, lister: Lister) -> Iterable[GroupSubject]:
        """The keys for a PodGroup that is gone: its workload's, or else those of its pods. For one of a native group: its own."""
        owner = controller_of(change.object)
        if owner is None:
            return
        kind, where = kind_of(owner), namespace_of(change.object)
        if change.new is not None:
            if self.gangs_of_others and kind in WITH_CONDITION and status_of(change.old or {}) != status_of(change.new):
                yield GroupSubject(kinds.POD_GROUP, *key_of(change.new))
        elif kind in SCALABLE and lister.get(kind, where, owner["name"]) is not None:
            yield GroupSubject(kind, where, owner["name"])
        elif kind in GANGS:
            if lister.get(kind, where, owner["name"]) is not None:  # otherwise its pods go, too
                yield from (GroupSubject(kinds.POD, *key_of(pod)) for pod in self._members(change.object, lister))
        else:
            itself = lister.get(kinds.POD, where, owner["name"]) if kind == kinds.POD else None
            left = [itself] if itself is not None else lister.dependents(owner["uid"], kinds.POD)
            yield from (GroupSubject(kinds.POD, *key_of(pod)) for pod in left if self._in_own_group(pod, lister))

    def _gang_changed(self, change: ObjectChange, lister: Lister) -> Iterable[GroupSubject]:
        """The keys for an object that means a gang: its own if it says something else, and those of pods that waited for it."""
        old, new = change
        if new is None:
            return
        if old is None:
            for pod in _naming(new, lister):
                if namespace_of(pod) == namespace_of(new) and self._lacks_group(pod):
                    yield GroupSubject(kinds.POD, *key_of(pod))
        elif _says(old) != _says(new) or labels_of(old) != labels_of(new):
            yield GroupSubject(kind_of(new), *key_of(new))

    def _members(self, group: Object, lister: Lister) -> Iterable[Object]:
        """The pods that name a PodGroup and that we keep in it."""
        named = (pod for pod in lister.all(kinds.POD, namespace_of(group)) if annotations_of(pod).get(key.GROUP_NAME) == name_of(group))
        return (pod for pod in named if self._in_own_group(pod, lister))

    def _gang(self, pod: Object, lister: Lister) -> ForeignGang | None:
        return gang_of(pod, lister) if self.gangs_of_others else None

    def _is_ours(self, pod: Object) -> bool:
        return spec_of(pod).get("schedulerName") in self.scheduler_names and not terminating(pod)

    def _lacks_group(self, pod: Object) -> bool:
        return self._is_ours(pod) and not annotations_of(pod).get(key.GROUP_NAME)

    def _in_own_group(self, pod: Object, lister: Lister) -> bool:
        """Whether we keep the pod's PodGroup: the pod is for our schedulers, is not being deleted, and names no other PodGroup."""
        if not self._is_ours(pod):
            return False
        named = annotations_of(pod).get(key.GROUP_NAME, "")
        if named in ("", group_name(pod)):
            return True
        gang = self._gang(pod, lister)
        return gang is not None and gang.owner is not None and named == gang.name

    def looks_up(self, subject: Hashable, lister: Lister) -> Iterable[tuple[str, Key]]:
        """The owners of a pod, whose annotations its PodGroup inherits, and the objects that mean its gang."""
        assert isinstance(subject, GroupSubject)
        pod = lister.get(*subject) if subject.kind == kinds.POD else None
        if pod is None:
            return
        if self.inherit:
            for owner in owners_of(pod):
                if kind_of(owner) in ANNOTATED_OWNERS:
                    yield kind_of(owner), Key(subject.namespace, owner["name"])
        if self.gangs_of_others:
            yield from known_by(pod, lister)

    def reconcile(self, subject: Hashable, lister: Lister, now: float) -> Result:
        assert isinstance(subject, GroupSubject)
        found = lister.get(*subject)
        if found is None:
            return NOTHING
        if subject.kind == kinds.POD:
            return self._for_pod(subject, found, lister, now)
        if subject.kind == kinds.POD_GROUP:
            return result(write for native in _natives(found, lister) for write in _condition_writes(native, found, now))
        return result(self._for_gang(found, lister) if subject.kind in GANGS else self._for_workload(found, lister))

    def _for_pod(self, subject: GroupSubject, pod: Object, lister: Lister, now: float) -> Result:
        if not self._in_own_group(pod, lister):
            return NOTHING
        gang = self._gang(pod, lister)
        if gang is not None and gang.owner is None:
            if gang.dialect in NAMED:
                return NOTHING  # it starts when its PodGroup is there, which will wake it
            if now < created_at(pod) + PATIENCE_S:
                return result((), [(now + PAUSE_S, subject)])
            gang = None
        name = gang.name if gang is not None else group_name(pod)
        group = lister.get(kinds.POD_GROUP, namespace_of(pod), name)
        made: list[Write] = []
        if group is None or terminating(group):
            made = [Create(self.build(pod, lister, gang), pod)]
        elif gang is None and self._is_of_newest_revision(pod, lister):
            made = _update(group, self.build(pod, lister))
        mark = marks(gang, pod) if gang is not None else {"metadata": {"annotations": {key.GROUP_NAME: name}}}
        return result([*made, *([patch(pod, mark)] if self._lacks_group(pod) else [])])

    def _for_gang(self, subject: Object, lister: Lister) -> list[Write]:
        """The writes that adapt PodGroups to the object for which they were made."""
        owner = native_gang(subject, lister).owner if kind_of(subject) == kinds.NATIVE_POD_GROUP else subject
        writes: list[Write] = []
        for group in lister.dependents(uid_of(owner), kinds.POD_GROUP) if owner is not None else ():
            pod = next(iter(self._members(group, lister)), None)
            if pod is not None and not terminating(group):
                writes += _update(group, self.build(pod, lister, self._gang(pod, lister)))
        return writes

    def _is_of_newest_revision(self, pod: Object, lister: Lister) -> bool:
        """Whether the pod is of a StatefulSet's newest revision: it updates the PodGroup, as no such pod existed when the set changed."""
        owner = controller_of(pod)
        if owner is None or kind_of(owner) != kinds.STATEFUL_SET:
            return False
        workload = lister.get(kinds.STATEFUL_SET, namespace_of(pod), owner["name"])
        return workload is not None and self._speaks_for(pod, workload, lister)

    def _for_workload(self, workload: Object, lister: Lister) -> list[Write]:
        """The writes that adapt the PodGroup to the workload's scale, annotations and template."""
        group = lister.get(kinds.POD_GROUP, namespace_of(workload), f"podgroup-{uid_of(workload)}")
        if spec_of(workload).get("replicas", 1) == 0:
            return [delete(group)] if group is not None and not terminating(group) else []
        pod = next((each for each in lister.dependents(uid_of(workload), kinds.POD) if self._speaks_for(each, workload, lister)), None)
        if pod is None:
            return []
        wanted = self.build(pod, lister)
        return _update(group, wanted) if group is not None else [Create(wanted, workload)]

    def _speaks_for(self, pod: Object, workload: Object, lister: Lister) -> bool:
        """Whether the workload's PodGroup can be built from this pod: it is ours, in no other PodGroup, and of the newest revision."""
        if not self._in_own_group(pod, lister) or self._gang(pod, lister) is not None:
            return False
        revision = status_of(workload).get("updateRevision")
        return not revision or labels_of(pod).get(key.CONTROLLER_REVISION_HASH, revision) == revision

    def build(self, pod: Object, lister: Lister, gang: ForeignGang | None = None) -> Object:
        """The PodGroup for this pod and the others of its controller, or of its gang."""
        begin: tuple[str, ...] = ("volcano.sh/",)
        if gang is not None and gang.owner is not None:
            group = kinds.new(kinds.POD_GROUP, namespace_of(pod), gang.name)
            owners, inherited = [reference_to(gang.owner)], annotations_of(gang.owner)
            begin = (*begin, "pumice.io/")
            spec = group_spec(gang, pod)
        else:
            group = kinds.new(kinds.POD_GROUP, namespace_of(pod), group_name(pod))
            owners = copied(owners_of(pod)) if controller_of(pod) else [controlled_by(pod)]
            inherited = self._inherited(pod, lister)
            members = _min_member(inherited) if controller_of(pod) else 1  # a pod with owners and no controller has no pods to wait for
            spec = {"minMember": members, "minResources": written(times(pod_usage(spec_of(pod)), members))}
        group["metadata"]["ownerReferences"] = owners
        notes = _group_annotations(pod, {name: value for name, value in inherited.items() if name.startswith(begin)})
        tags = {name: labels_of(pod)[name] for name in (key.PREEMPTABLE, key.COOLDOWN_TIME) if name in labels_of(pod)}
        group["metadata"].update({name: value for name, value in (("annotations", notes), ("labels", tags)) if value})
        group["spec"] = _optional_spec(pod) | spec
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


def _naming(gang: Object, lister: Lister) -> Iterable[Object]:
    """The pods in all namespaces that name a PodGroup of this name, or one below this composite group."""
    kind = kind_of(gang)
    if kind == COSCHEDULING_POD_GROUPS.name:
        yield from lister.by_field(kinds.POD, GANG_LABEL, name_of(gang))
    else:
        for leaf in leaves_below(gang, lister) if kind == COMPOSITE else [gang] if kind == kinds.NATIVE_POD_GROUP else ():
            yield from lister.by_field(kinds.POD, GANG_FIELD, name_of(leaf))


def _natives(group: Object, lister: Lister) -> list[Object]:
    """The native PodGroups for which a PodGroup of Volcano was made."""
    owner = controller_of(group)
    found = lister.get(kind_of(owner), namespace_of(group), owner["name"]) if owner is not None else None
    if found is None:
        return []
    return [found] if kind_of(found) == kinds.NATIVE_POD_GROUP else leaves_below(found, lister)


def _condition_writes(native: Object, group: Object, now: float) -> list[Write]:
    """The write by which a native group says what became of it: it was scheduled once its PodGroup has run."""
    before, waits = condition(native, SCHEDULED), condition(group, "Unschedulable")
    if status_of(group).get("phase") in ("Running", "Completed"):
        scheduled = {"status": "True", "reason": "Scheduled", "message": ""}
    elif waits is not None and waits.get("status") == "True" and (before or {}).get("status") != "True":
        scheduled = {"status": "False", "reason": "Unschedulable", "message": waits.get("message") or ""}
    else:
        return []
    if before is not None and all(before.get(name, "") == value for name, value in scheduled.items()):
        return []
    others = [each for each in status_of(native).get("conditions") or [] if each.get("type") != SCHEDULED]
    seen = {"observedGeneration": native["metadata"]["generation"]} if "generation" in native["metadata"] else {}
    new = {"type": SCHEDULED, **scheduled, **seen, "lastTransitionTime": rfc3339(now)}
    return status_change(native, {**status_of(native), "conditions": [*others, new]})


def _update(group: Object, wanted: Object) -> list[Write]:
    """The writes that make an existing PodGroup as wanted now; fields that others added to it stay."""
    target = copied(group)
    target["spec"] = {**spec_of(group), **wanted["spec"]}
    for part in ("labels", "annotations"):
        if merged := {**(group["metadata"].get(part) or {}), **wanted["metadata"].get(part, {})}:
            target["metadata"][part] = merged
    return change(group, target)
