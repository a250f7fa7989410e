"""The Workload and the PodGroup that a Job makes for its pods (feature gate WorkloadWithJob).

A Job that nobody controls gets a Workload with one template, and a PodGroup made from it. A Job whose owner has a Workload makes only the
PodGroup, from the template that its annotation names; without the annotation its owner cares for the group. Only a Job that has never
started makes anything, one object at a time, so that each can name the one before. Until all are there it makes no pods.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pumice.api import Object, kinds, name_of, namespace_of, spec_of, status_of, uid_of
from pumice.api.annotations import GROUP_TEMPLATE
from pumice.api.json_objects import ALPHABET, annotations_of, condition, controlled_by, controller_of, copied
from pumice.controllers.controller import Lister
from pumice.controllers.kubernetes.pod_group_protection import GROUP
from pumice.controllers.writes import Create, Emit, Write, change

WORKLOAD = kinds.WORKLOADS.name
LONGEST = 253  #: characters of a name


class Grouping(NamedTuple):
    writes: Sequence[Write] = ()
    group: Object | None = None  #: its PodGroup; None if its pods are scheduled one by one
    waits: bool = False  #: its pods may not be made yet

    @property
    def least(self) -> int:
        """So many pods must be there before any of them gets a node."""
        policy = spec_of(self.group).get("schedulingPolicy") or {} if self.group is not None else {}
        return int((policy.get("gang") or {}).get("minCount", 0))


ALONE = Grouping()


def grouping(job: Object, pods: Sequence[Object], lister: Lister) -> Grouping:
    if "schedulingGroup" in (spec_of(job).get("template") or {}).get("spec", {}):
        return ALONE
    if controller_of(job) is not None:
        return _delegated(job, pods, lister) if GROUP_TEMPLATE in annotations_of(job) else ALONE
    mine = _controlled(job, WORKLOAD, lister)
    if len(mine) > 1:
        return ALONE
    if not mine:
        return _creation(job, "Workload", _workload(job)) if _is_new(job, pods) else ALONE
    (workload,) = mine
    templates = spec_of(workload).get("podGroupTemplates") or []
    if len(templates) != 1:
        why = f"Workload {name_of(workload)} has {len(templates)} PodGroupTemplates, want exactly 1"
        text = f"Failed to compile Workload for Job {name_of(job)}: {why}"
        return Grouping([Emit(job, "Warning", "FailedWorkloadCompilation", text)], waits=True)
    groups = [group for group in _controlled(job, GROUP, lister) if _workload_of(group) == name_of(workload)]
    if not groups:
        return _creation(job, "PodGroup", _group(job, workload, templates[0], owned=True)) if _is_new(job, pods) else ALONE
    return Grouping(_resized(job, workload, groups[0]), groups[0]) if len(groups) == 1 else ALONE


def _delegated(job: Object, pods: Sequence[Object], lister: Lister) -> Grouping:
    """For a Job whose owner has the Workload, perhaps not yet: until then pods go alone."""
    owner = controller_of(job) or {}
    reference = {"apiGroup": kinds.group_of(owner["apiVersion"]), "kind": owner["kind"], "name": owner["name"]}
    found = (one for one in lister.all(WORKLOAD, namespace_of(job)) if _refers(one) == reference)
    workload = next(found, None)
    templates = spec_of(workload).get("podGroupTemplates") or () if workload is not None else ()
    template = next((one for one in templates if one.get("name") == annotations_of(job)[GROUP_TEMPLATE]), None)
    if workload is None or template is None:
        return ALONE
    groups = [group for group in _controlled(job, GROUP, lister) if _workload_of(group) == name_of(workload)]
    if groups:
        return Grouping(group=groups[0])
    return _creation(job, "PodGroup", _group(job, workload, template, owned=False)) if _is_new(job, pods) else ALONE


def _refers(workload: Object) -> Object:
    reference = spec_of(workload).get("controllerRef") or {}
    return {field: reference.get(field, "") for field in ("apiGroup", "kind", "name")}


def _workload_of(group: Object) -> str:
    return str((spec_of(group).get("workloadRef") or {}).get("workloadName", ""))


def _controlled(job: Object, kind: str, lister: Lister) -> list[Object]:
    return [one for one in lister.dependents(uid_of(job), kind) if (controller_of(one) or {}).get("uid") == uid_of(job)]


def _is_new(job: Object, pods: Iterable[Object]) -> bool:
    """Whether the Job has never started, as far as can be seen."""
    status = status_of(job)
    return not (any(pods) or any(status.get(field) for field in ("startTime", "succeeded", "failed")) or condition(job, "Suspended"))


def _creation(job: Object, kind: str, made: Object) -> Grouping:
    event = Emit(job, "Normal", f"{kind}Created", f"Created {kind} {name_of(made)} for Job {name_of(job)}")
    refused = f"Failed{kind}Create", f"Failed to create {kind} for Job {name_of(job)}"
    return Grouping([Create(made, job, refused), event], waits=True)


def _policy(job: Object) -> Object:
    """The policy that the Job states; a gang without a size is as large as the Job is parallel."""
    stated = (spec_of(job).get("scheduling") or {}).get("schedulingPolicy")
    if not stated or "gang" not in stated:
        return {"basic": {}}
    least = (stated["gang"] or {}).get("minCount")
    return {"gang": {"minCount": max(1, int(spec_of(job).get("parallelism", 1))) if least is None else least}}


def _workload(job: Object) -> Object:
    stated = spec_of(job).get("scheduling") or {}
    template: Object = {"name": f"{name_of(job)}-pgt-0", "schedulingPolicy": _policy(job)}
    template |= {field: copied(stated[field]) for field in ("schedulingConstraints", "disruptionMode", "resourceClaims") if field in stated}
    if priority := spec_of(job)["template"]["spec"].get("priorityClassName"):
        template["priorityClassName"] = priority
    reference = {"apiGroup": kinds.group_of(job["apiVersion"]), "kind": job["kind"], "name": name_of(job)}
    code = _encoded(f"(types.UID){uid_of(job)}")
    name = f"{name_of(job)[: LONGEST - len(code) - 1]}-{code}"
    made = kinds.new(WORKLOAD, namespace_of(job), name, spec={"controllerRef": reference, "podGroupTemplates": [template]})
    made["metadata"]["ownerReferences"] = [controlled_by(job)]
    return made


def _group(job: Object, workload: Object, template: Object, owned: bool) -> Object:
    """The PodGroup of a template. `owned`: its Workload is the Job's own, and owns it as well."""
    spec = {field: copied(value) for field, value in template.items() if field not in ("name", "priority", "preemptionPolicy")}
    spec["workloadRef"] = {"workloadName": name_of(workload), "templateName": template["name"]}
    made = kinds.new(GROUP, namespace_of(job), _group_name(name_of(workload), template["name"]), spec=spec)
    made["metadata"]["ownerReferences"] = [controlled_by(job), *([_owner(workload)] if owned else [])]
    return made


def _owner(owner: Object) -> Object:
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name_of(owner), "uid": uid_of(owner)}


def _resized(job: Object, workload: Object, group: Object) -> list[Write]:
    """The writes that bring the minimum of a gang to what the Job states now."""
    gang = _policy(job).get("gang")
    if gang is None:
        return []
    wanted = copied(workload), copied(group)
    for policy in (wanted[0]["spec"]["podGroupTemplates"][0]["schedulingPolicy"], wanted[1]["spec"]["schedulingPolicy"]):
        if "gang" in policy:
            policy["gang"]["minCount"] = gang["minCount"]
    return [*change(workload, wanted[0]), *change(group, wanted[1])]


def join(pod: Object, group: Object) -> Object:
    """The pod as a member of the group, which owns it as well."""
    pod["spec"]["schedulingGroup"] = {"podGroupName": name_of(group)}
    pod["metadata"]["ownerReferences"].append(_owner(group))
    return pod


def _group_name(workload: str, template: str) -> str:
    code = _encoded(workload + template)
    room = LONGEST - len(code) - 2
    if len(workload) + len(template) > room:
        least = room // 2
        if len(workload) <= least:
            template = template[: room - len(workload)]
        elif len(template) <= least:
            workload = workload[: room - len(template)]
        else:
            workload, template = workload[: room - least], template[:least]
    return f"{workload}-{template}-{code}"


def _encoded(text: str) -> str:
    """The FNV-1a hash of a text, its decimal digits written in the characters of suffixes."""
    number = 2166136261
    for byte in text.encode():
        number = (number ^ byte) * 16777619 & 0xFFFFFFFF
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))
