"""The PodGroup of a job: how many of its pods must start together, and what these need.

minResources is what a ResourceQuota would charge for the pods that count towards the minimum: of the tasks in the order of
their priority the first `minAvailable` pods; if the job asks for at least what its tasks ask for, each task's own minimum
comes first. A changed job changes its group.
"""

from __future__ import annotations

from collections.abc import Iterable

from pumice.api import annotations as key
from pumice.api.json_objects import copied
from pumice.api.quota import Usage, add, pod_usage, times, written
from pumice.controllers import kinds
from pumice.controllers.objects import Object, annotations_of, controlled_by, labels_of, name_of, namespace_of, spec_of, uid_of
from pumice.controllers.volcano.job import spec
from pumice.controllers.world import World
from pumice.controllers.writes import Create, Write, change

OWN_FIELDS = ("minMember", "minTaskMember", "minResources", "priorityClassName")  #: what a job keeps up to date in its group


def group_of(job: Object, world: World) -> Object | None:
    """The job's PodGroup; a group with the job's plain name, as older versions made it, counts."""
    for name in (group_name(job), name_of(job)):
        group = world.get(kinds.POD_GROUP, namespace_of(job), name)
        if group is not None and any(owner["uid"] == uid_of(job) for owner in group["metadata"].get("ownerReferences") or ()):
            return group
    return None


def group_name(job: Object) -> str:
    return f"{name_of(job)}-{uid_of(job)}"


def group_writes(job: Object, group: Object | None, world: World) -> list[Write]:
    """Make the PodGroup, or bring it to what the job asks for now."""
    wanted = build(job, world)
    if group is None:
        return [Create(wanted, job)]
    target = copied(group)
    target["spec"] |= {name: wanted["spec"].get(name) for name in OWN_FIELDS}
    return change(group, target)


def build(job: Object, world: World) -> Object:
    group = kinds.new(kinds.POD_GROUP, namespace_of(job), group_name(job))
    group["metadata"].update(annotations=dict(annotations_of(job)), labels=dict(labels_of(job)), ownerReferences=[controlled_by(job)])
    group["spec"] = {
        "minMember": spec.min_available(job),
        "minTaskMember": {spec.task_name(job, task): spec.task_min_available(task) for task in spec.tasks(job)},
        "queue": spec.queue_name(job),
        "minResources": written(min_resources(job, world)),
    }
    for name in ("priorityClassName", "networkTopology"):
        if spec_of(job).get(name):
            group["spec"][name] = copied(spec_of(job)[name])
    if policies := list(_sub_groups(job)):
        group["spec"]["subGroupPolicy"] = policies
    return group


def _sub_groups(job: Object) -> Iterable[Object]:
    """A partitioned task is a sub-group whose partitions are told apart by a label."""
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


def min_resources(job: Object, world: World) -> Usage:
    """What the pods that have to start together are charged."""
    order = sorted(spec.tasks(job), key=lambda task: -_priority(task, world))
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


def _priority(task: Object, world: World) -> int:
    name = _pod_spec(task).get("priorityClassName")
    found = world.get(kinds.PRIORITY_CLASS, "", name) if name else None
    return int(found.get("value") or 0) if found else 0
