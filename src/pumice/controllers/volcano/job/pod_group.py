"""The PodGroup of a job: how many of its pods must start together, and which resources these pods need.

minResources is what a ResourceQuota would charge for the pods that count towards the minimum: the first `minAvailable` pods, with the
tasks in the order of their priority. If the job's `minAvailable` is at least the sum of its tasks' `minAvailable`, the minimum of each
task comes first. If the job changes, its PodGroup is changed.
"""

from collections.abc import Iterable

from pumice.api import Object, annotations as key, kinds, name_of, namespace_of, spec_of, uid_of
from pumice.api.json_objects import annotations_of, controlled_by, copied, labels_of
from pumice.api.resource_quota import Usage, add, pod_usage, times, written
from pumice.controllers.controller import Lister
from pumice.controllers.volcano.job import spec
from pumice.controllers.writes import Create, Write, change

OWN_FIELDS = ("minMember", "minTaskMember", "minResources", "priorityClassName")  #: the fields that a job keeps up to date in its PodGroup


def group_of(job: Object, lister: Lister) -> Object | None:
    """The job's PodGroup, or None. A PodGroup with the job's plain name, as older versions made it, counts too."""
    for name in (group_name(job), name_of(job)):
        group = lister.get(kinds.POD_GROUP, namespace_of(job), name)
        if group is not None and any(owner["uid"] == uid_of(job) for owner in group["metadata"].get("ownerReferences") or ()):
            return group
    return None


def group_name(job: Object) -> str:
    return f"{name_of(job)}-{uid_of(job)}"


def group_writes(job: Object, group: Object | None, lister: Lister) -> list[Write]:
    """The writes that create the job's PodGroup, or update it to what the job states now."""
    wanted = build(job, lister)
    if group is None:
        return [Create(wanted, job)]
    target = copied(group)
    target["spec"] |= {name: wanted["spec"].get(name) for name in OWN_FIELDS}
    return change(group, target)


def build(job: Object, lister: Lister) -> Object:
    group = kinds.new(kinds.POD_GROUP, namespace_of(job), group_name(job))
    group["metadata"].update(annotations=dict(annotations_of(job)), labels=dict(labels_of(job)), ownerReferences=[controlled_by(job)])
    group["spec"] = {
        "minMember": spec.min_available(job),
        "minTaskMember": {spec.task_name(job, task): spec.task_min_available(task) for task in spec.tasks(job)},
        "queue": spec.queue_name(job),
        "minResources": written(min_resources(job, lister)),
    }
    for name in ("priorityClassName", "networkTopology"):
        if spec_of(job).get(name):
            group["spec"][name] = copied(spec_of(job)[name])
    if policies := list(_sub_groups(job)):
        group["spec"]["subGroupPolicy"] = policies
    return group


def _sub_groups(job: Object) -> Iterable[Object]:
    """The sub-group policies: one for each partitioned task, whose partitions are told apart by a label."""
    for task in spec.tasks(job):
        partition = task.get("partitionPolicy")
        if partition:
            name = spec.task_name(job, task)
            policy = {
                "name": name,
                "labelSelector": {"matchLabels": {key.TASK_SPEC: name}},
                "matchLabelKeys": [key.PARTITION_ID],
                "subGroupSize": spec.partition_size(task),
                "minSubGroups": int(partition.get("minPartitions") or 0),
            }
            yield policy | ({"networkTopology": partition["networkTopology"]} if partition.get("networkTopology") else {})


def min_resources(job: Object, lister: Lister) -> Usage:
    """What a ResourceQuota charges for the pods that have to start together."""
    order = sorted(spec.tasks(job), key=lambda task: -_priority(task, lister))
    left = spec.min_available(job)
    parts: list[Usage] = []
    rounds = [spec.replicas] if left < spec.total_min_available(job) else [spec.task_min_available, _beyond_minimum]
    for wanted in rounds:
        for task in order:
            taken = min(left, wanted(task))
            parts.append(times(pod_usage(_pod_spec(task)), taken))
            left -= taken
    return {name: amount for name, amount in add(parts).items() if amount}


def _beyond_minimum(task: Object) -> int:
    return max(0, spec.replicas(task) - spec.task_min_available(task))


def _pod_spec(task: Object) -> Object:
    return spec_of(task.get("template") or {})


def _priority(task: Object, lister: Lister) -> int:
    name = _pod_spec(task).get("priorityClassName")
    found = lister.get(kinds.PRIORITY_CLASS, "", name) if name else None
    return int(found.get("value") or 0) if found else 0
