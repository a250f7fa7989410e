"""Gangs written in another dialect: Volcano's PodGroups as Kubernetes' own, and PodGroups of others as Volcano's.

Objects go in and come out as plain values, all that are no PodGroups and name none unchanged. What the other dialect cannot say is left
out, with a line about it. Towards Volcano the rules are those by which the PodGroup controller reads other dialects
(`controllers/volcano/foreign_gangs.py`).

What only one side has is kept where the other side ignores it, so that the way back finds it: the queue as a label, which Pumice reads; the
names of a group's Workload and template as an annotation.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from pumice.api import InputError, Object, annotations as key, kinds, name_of, namespace_of, spec_of
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.gang_dialects import BY_NAME, COSCHEDULING_POD_GROUPS, NAMED
from pumice.api.json_objects import annotations_of, copied, field, labels_of
from pumice.api.kinds import COMPOSITE_POD_GROUPS, NATIVE_POD_GROUP, NATIVE_POD_GROUPS, WORKLOADS, Kind, group_of, kind_of
from pumice.api.meta import Metadata
from pumice.api.pod import Pod
from pumice.api.quantity import quantity
from pumice.api.resource_quota import pod_usage, times
from pumice.api.structs import KINDS, convert
from pumice.controllers.in_memory import Memory
from pumice.controllers.volcano.foreign_gangs import COMPOSITE, ForeignGang, gang_of, group_spec, marks, number

SOURCES = (NATIVE_POD_GROUP, COMPOSITE, WORKLOADS.name, COSCHEDULING_POD_GROUPS.name)
COSCHEDULING_LABEL = BY_NAME[COSCHEDULING_POD_GROUPS.name].group_label
WORKLOAD = "pumice.io/workload"  #: annotation of a PodGroup of Volcano: the Workload and the template that its native group names
TEMPLATE = "pods"  #: the name of a template that the user has not named
OF_GROUPS = ("workloadRef", "parentCompositePodGroupName")  #: fields of a group that its template does not have
NOT_NATIVE = {
    "minTaskMember": "a native PodGroup has one minimum for all pods",
    "subGroupPolicy": "only parts that the label volcano.sh/task-spec tells apart are PodGroups of a tree",
}
NOT_VOLCANOS = {
    "disruptionMode": "Volcano's gangs are preempted as gangpreempt and gangreclaim do",
    "preemptionPolicy": "that of the pods counts",
    "resourceClaims": "each pod has claims of its own",
    "priority": "a PodGroup of Volcano has a priority class",
    "scheduleTimeoutSeconds": "no pod holds room while it waits for its gang",
}

Tell = Callable[[str], None]


def migrated(objects: Iterable[Object], to: str, scheduler: str | None, tell: Tell) -> list[Object]:
    """The objects in the dialect `to`, "native" or "volcano". `scheduler` becomes the schedulerName of the members, if it is given. Raises
    InputError for an object that cannot be read."""
    given = [copied(each) for each in objects]
    for each in given:
        _check(each)
    groups, others, moved = _to_native(given, tell) if to == "native" else _to_volcano(given, tell)
    for template in moved:
        if scheduler is not None:
            template["spec"]["schedulerName"] = scheduler
    return [*groups, *others]


#: new PodGroups, the other objects, and those pods and pod templates that have another dialect now
Outcome = tuple[list[Object], list[Object], list[Object]]


def _check(subject: Object) -> None:
    """Raise InputError if the object cannot be read."""
    template, struct = _template_of(subject), KINDS.get((group_of(subject["apiVersion"]), subject["kind"]))
    try:
        convert(subject["metadata"], Metadata)
        if not (subject["metadata"].get("name") if kind_of(subject) in (*SOURCES, kinds.POD_GROUP) else _name(subject)):
            raise ValueError("it has no name")
        if struct is not None:
            convert(subject, struct)
        if template is not None:
            convert(_as_pod(subject, template), Pod)
    except ValueError as error:  # also msgspec.ValidationError
        raise InputError(str(error), subject=f"{subject['kind']} {_name(subject)}".strip()) from None


def _template_of(subject: Object) -> Object | None:
    """The pod itself, or the pod template of a workload."""
    if kind_of(subject) == kinds.POD:
        return subject
    found = field(subject, "spec.template") or field(subject, "spec.jobTemplate.spec.template")
    return found if isinstance(found, dict) else None


def _meta(template: Object) -> Object:
    meta: Object = template.setdefault("metadata", {})
    return meta


def _where(subject: Object) -> str:
    return namespace_of(subject) or "default"


def _name(subject: Object) -> str:
    """The name of an object, or that by which a server will name it; empty if it has neither."""
    meta = subject["metadata"]
    return meta.get("name") or meta.get("generateName") or ""


def _named(subject: Object) -> str:
    return f"{subject['kind']} {_where(subject)}/{_name(subject)}"


def _new(kind: Kind, subject: Object, name: str, spec: Object, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Object:
    """A new object beside another, without labels and annotations if there are none."""
    stated = {part: dict(values) for part, values in (("labels", labels), ("annotations", annotations)) if values}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "namespace": _where(subject), **stated},
        "spec": spec,
    }


def _without(values: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in values.items() if name not in names}


def _keep(template: Object, part: str, values: dict[str, str]) -> None:
    """Let a pod have these labels or annotations, and no others."""
    _meta(template).pop(part, None)
    if values:
        template["metadata"][part] = values


def _to_volcano(given: list[Object], tell: Tell) -> Outcome:
    known = Memory({**each, "metadata": {**each["metadata"], "name": _name(each), "uid": "", "namespace": _where(each)}} for each in given)
    made: dict[tuple[str, str], Object] = {}
    others, moved = [], []
    for subject in given:
        template = _template_of(subject)
        if kind_of(subject) in SOURCES:
            _tell_of(subject, NOT_VOLCANOS, tell)
            continue
        others.append(subject)
        if template is None or annotations_of({"metadata": template.get("metadata") or {}}).get(key.GROUP_NAME):
            continue
        pod = _as_pod(subject, template)
        gang = gang_of(pod, known)
        if gang is None or gang.dialect not in NAMED:
            continue
        if gang.owner is None:
            tell(f"{_named(subject)}: left as it is: the PodGroup that it names is not given, or a part of its tree")
            continue
        _make(gang, pod, made)
        metadata = marks(gang, pod)["metadata"]
        _keep(template, "annotations", {**annotations_of(pod), **metadata["annotations"]})
        _keep(template, "labels", {**_without(labels_of(pod), COSCHEDULING_LABEL), **metadata.get("labels", {})})
        template["spec"].pop("schedulingGroup", None)
        moved.append(template)
    for subject in given:  # groups of which no pod is given
        if kind_of(subject) in (NATIVE_POD_GROUP, COSCHEDULING_POD_GROUPS.name):
            gang = gang_of(_member_of(subject), known)
            if gang is not None and gang.owner is not None:
                _make(gang, None, made)
    return list(made.values()), others, moved


def _as_pod(subject: Object, template: Object) -> Object:
    meta = {**(template.get("metadata") or {}), "name": _name(subject), "namespace": _where(subject)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}


def _member_of(group: Object) -> Object:
    """A pod of the group, as far as it names that."""
    meta: Object = {"name": "", "namespace": _where(group)}
    if kind_of(group) == NATIVE_POD_GROUP:
        return {"metadata": meta, "spec": {"schedulingGroup": {"podGroupName": name_of(group)}}}
    return {"metadata": meta | {"labels": {COSCHEDULING_LABEL: name_of(group)}}}


def _make(gang: ForeignGang, pod: Object | None, made: dict[tuple[str, str], Object]) -> None:
    """Make Volcano's PodGroup of a gang, once."""
    owner = gang.owner
    assert owner is not None
    place = _where(owner), gang.name
    if place in made:
        return
    spec = group_spec(gang, pod or {})
    if pod is None and not spec_of(owner).get("minResources"):
        del spec["minResources"]
    notes = _without(annotations_of(owner), key.QUEUE_NAME)
    if (reference := spec_of(owner).get("workloadRef")) and tuple(reference.values()) != (name_of(owner), TEMPLATE):
        notes[WORKLOAD] = f"{reference.get('workloadName')}/{reference.get('templateName')}"
    made[place] = _new(kinds.POD_GROUPS, owner, gang.name, spec, _without(labels_of(owner), key.QUEUE_NAME), notes)


def _to_native(given: list[Object], tell: Tell) -> Outcome:
    groups = {(_where(each), name_of(each)): each for each in given if kind_of(each) == kinds.POD_GROUP}
    members: dict[tuple[str, str], list[Object]] = {}
    others, moved = [], []
    for subject in given:
        if kind_of(subject) == kinds.POD_GROUP:
            continue
        others.append(subject)
        template = _template_of(subject)
        if kind_of(subject) == kinds.JOB:
            tell(f"{_named(subject)}: left as it is: Volcano's controllers make its pods and their PodGroup")
        named = annotations_of(_as_pod(subject, template)).get(key.GROUP_NAME) if template is not None else None
        if template is None or not named:
            continue
        group = groups.get((_where(subject), named))
        if group is None:
            tell(f"{_named(subject)}: left as it is: PodGroup {named} is not given")
            continue
        members.setdefault((_where(group), named), []).append(template)
        _join(template, group)
        moved.append(template)
        if template["spec"].get("priorityClassName") != spec_of(group).get("priorityClassName"):
            tell(f"{_named(subject)}: kube-scheduler refuses a member whose priority class is not that of its PodGroup, {named}")
    made = [each for place, group in groups.items() for each in _natives(group, members.get(place, []), tell)]
    return list(_with_workloads(made)), others, moved


def _join(template: Object, group: Object) -> None:
    """Let a pod name its PodGroup as Kubernetes' own pods do."""
    parts = {_label_of(each): each["name"] for each in _parts(group) or ()}
    part = parts.get((_meta(template).get("labels") or {}).get(key.TASK_SPEC, ""))
    template.setdefault("spec", {})["schedulingGroup"] = {"podGroupName": part or name_of(group)}
    keys = (key.TASK_SPEC,) if part else ()
    _keep(template, "annotations", _without(template["metadata"].get("annotations") or {}, key.GROUP_NAME, *keys))
    _keep(template, "labels", _without(template["metadata"].get("labels") or {}, *keys))


def _label_of(policy: Object) -> str:
    """The label by which the pods of a sub-group that stands for a native group are told; empty for other sub-groups."""
    labels = (policy.get("labelSelector") or {}).get("matchLabels") or {}
    alone = list(labels) == [key.TASK_SPEC] == policy.get("matchLabelKeys") and policy.get("minSubGroups", 0) <= 1
    return labels[key.TASK_SPEC] if alone else ""


def _parts(group: Object) -> list[Object] | None:
    """The sub-group policies, if all stand for native groups; None if others are among them."""
    found: list[Object] = spec_of(group).get("subGroupPolicy") or []
    return found if all(map(_label_of, found)) else None


def _natives(group: Object, members: list[Object], tell: Tell) -> Iterator[Object]:
    """The native objects for a PodGroup of Volcano: a PodGroup, or a tree."""
    spec, parts = spec_of(group), _parts(group)
    _tell_of(group, NOT_NATIVE if parts is None else {"minTaskMember": NOT_NATIVE["minTaskMember"]}, tell)
    if spec.get("minResources") and not _is_sum(spec, members):
        tell(f"{_named(group)}: minResources is not translated: what its pods request counts")
    queue = spec.get("queue") or DEFAULT_QUEUE
    if queue != DEFAULT_QUEUE:
        tell(f"{_named(group)}: queue {queue} is kept as a label, which Pumice reads and kube-scheduler does not")
    labels = {**labels_of(group), **({key.QUEUE_NAME: queue} if queue != DEFAULT_QUEUE else {})}
    notes = _without(annotations_of(group), WORKLOAD, key.ALLOCATED_HYPERNODE)
    workload, _, template = (annotations_of(group).get(WORKLOAD) or f"{name_of(group)}/{TEMPLATE}").partition("/")
    ranked = {"priorityClassName": spec["priorityClassName"]} if spec.get("priorityClassName") else {}
    own = {"workloadRef": {"workloadName": workload, "templateName": template}, **ranked, **_constraint(group, spec, tell)}
    if not parts:
        least = number(spec.get("minMember", 1))
        policy: Object = {"gang": {"minCount": least}} if least > 1 else {"basic": {}}
        yield _new(NATIVE_POD_GROUPS, group, name_of(group), {**own, "schedulingPolicy": policy}, labels, notes)
        return
    sizes = sorted(_size(part) for part in parts)
    needed = next((count for count in range(1, len(sizes)) if sum(sizes[:count]) == spec.get("minMember")), len(sizes))
    policy = {"gang": {"minGroupCount": needed}}
    yield _new(COMPOSITE_POD_GROUPS, group, name_of(group), {**own, "schedulingPolicy": policy}, labels, notes)
    for part in parts:
        leaf = {
            "parentCompositePodGroupName": name_of(group),
            "workloadRef": {"workloadName": workload, "templateName": part["name"]},
            **ranked,
            **_constraint(group, part, tell),
            "schedulingPolicy": {"gang": {"minCount": _size(part)}},
        }
        yield _new(NATIVE_POD_GROUPS, group, part["name"], leaf, {}, {})


def _size(part: Object) -> int:
    return number(part.get("subGroupSize", 1))


def _constraint(group: Object, stated: Object, tell: Tell) -> Object:
    topology = stated.get("networkTopology")
    if not topology:
        return {}
    if topology.get("mode", "hard") == "hard" and topology.get("highestTierName"):
        return {"schedulingConstraints": {"topology": [{"key": topology["highestTierName"]}]}}
    tell(f"{_named(group)}: networkTopology is not translated: a native constraint is hard, and names a label of nodes")
    return {}


def _is_sum(spec: Object, members: list[Object]) -> bool:
    """Whether minResources is what so many pods request as the minimum says."""
    wanted = times(pod_usage(members[0]["spec"]), number(spec.get("minMember", 1))) if members else {}
    return all(quantity(str(amount)).milli == wanted.get(name) for name, amount in spec["minResources"].items())


def _with_workloads(groups: list[Object]) -> Iterator[Object]:
    """The groups, after the Workloads of whose templates they are."""
    workloads: dict[tuple[str, str], Object] = {}
    for each in groups:
        spec = spec_of(each)
        reference = spec["workloadRef"]
        template = {"name": reference["templateName"], **{part: value for part, value in spec.items() if part not in OF_GROUPS}}
        place = _where(each), reference["workloadName"]
        whole = workloads.setdefault(place, _new(WORKLOADS, each, reference["workloadName"], {}, {}, {}))["spec"]
        if "parentCompositePodGroupName" in spec:
            whole["compositePodGroupTemplates"][-1].setdefault("podGroupTemplates", []).append(template)
            continue
        listed = whole.setdefault("compositePodGroupTemplates" if kind_of(each) == COMPOSITE else "podGroupTemplates", [])
        if template["name"] not in {known["name"] for known in listed}:
            listed.append(template)
    yield from workloads.values()
    yield from groups


def _tell_of(subject: Object, reasons: Mapping[str, str], tell: Tell) -> None:
    """Tell of the fields that are set and that the other dialect does not have."""
    spec = spec_of(subject)
    for stated, why in reasons.items():
        usual = (stated == "disruptionMode" and "single" in (spec.get(stated) or {})) or (
            stated == "priority" and spec.get("priorityClassName")
        )
        if spec.get(stated) and not usual:
            tell(f"{_named(subject)}: {stated} is not translated: {why}")
