"""A file or folder of Kubernetes objects, or a dump (`kubectl get ... -o json`): nodes, queues, PodGroups, pods, workload objects.

The annotation pumice.io/run-time, on the pod or its PodGroup, says how long pods run: a duration such as 1h30m. Jobs come at their
creationTimestamp, in this order; times count from the first job. Pods without a PodGroup are jobs of their own. The nodes of a dump's
running pods are not kept, nor what a scheduler wrote about their places: all pods wait for a node anew.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from pumice.api import InputError
from pumice.api.annotations import CHECKPOINT, ESTIMATE, GROUP_NAME, OF_PLACES, RUN_TIME, USER
from pumice.api.core import Node, PriorityClass
from pumice.api.defaults import DEFAULT_QUEUE, SCHEDULER_NAME
from pumice.api.files import streams
from pumice.api.manifests import read_all
from pumice.api.meta import Metadata, Wire
from pumice.api.pod import Pod
from pumice.api.quantity import Quantity
from pumice.api.volcano import PodGroup, PodGroupStatus
from pumice.inputs.cluster_from_files import complete
from pumice.inputs.gangs_in_files import grouped, pods_of_owners
from pumice.inputs.workloads import expanded
from pumice.simulate.arrival_times import seconds
from pumice.simulate.workload import Role, Work, Workload, class_name, in_order, least_resources

NOT_JOBS = (Node, Pod, PodGroup)
JobName = tuple[str, str, bool]  #: namespace, name, and whether it is that of a PodGroup


def workload(path: str, cluster: list[Node] | None, seed: int = 0) -> Workload:
    return workload_of(Path(path).name, _items(path), cluster, Counter())


def workload_of(name: str, items: list[tuple[str, Wire]], cluster: list[Node] | None, left_out: Counter[str]) -> Workload:
    """The workload of these objects, which may come from any source."""
    jobs = list(_jobs(items, left_out))
    began = min((work.submit for work in jobs), default=0.0)
    for work in jobs:
        work.submit -= began
    own = [item for _, item in items if isinstance(item, Node)]
    others = [(kind, item) for kind, item in items if not isinstance(item, NOT_JOBS)]
    return Workload(name, in_order(jobs), own if cluster is None else cluster, others, began, left_out)


def nodes(path: str) -> list[Node]:
    return [item for _, item in _items(path) if isinstance(item, Node)]


def _items(path: str) -> list[tuple[str, Wire]]:
    """The objects of a file or folder, with defaults, and with the pods that controllers would make."""
    objects = read_all(streams([path], deep=True))
    items = complete(objects.items)
    workloads = [each for each in objects.workloads if not each.is_served]
    if workloads:
        objects.items += expanded(workloads, items, 0.0)
    if objects.gangs:
        objects.items = grouped(objects, [*objects.items, *pods_of_owners(objects)], (SCHEDULER_NAME,))
    return complete(objects.items)


def _jobs(items: list[tuple[str, Wire]], left_out: Counter[str]) -> Iterable[Work]:
    groups = {job_of(item.metadata.namespace, item.metadata.name): item for _, item in items if isinstance(item, PodGroup)}
    classes = {item.metadata.name: item.value for _, item in items if isinstance(item, PriorityClass)}
    pods: dict[JobName, list[Pod]] = {}
    for _, item in items:
        if isinstance(item, Pod):
            pods.setdefault(job_of_pod(item), []).append(item)
    for job, members in pods.items():
        group, (namespace, name, is_group) = groups.get(job), job
        if not is_group and job_of(namespace, name) in pods:
            name += "-pod"  # beside a PodGroup of this name
        run = next((found for item in (group, *members) if (found := _seconds(item, RUN_TIME)) is not None), None)
        if run is None:
            left_out["no annotation pumice.io/run-time"] += 1
            continue
        spec = group.spec if group is not None else None
        priority = classes.get((spec.priority_class_name if spec else None) or "", members[0].spec.priority or 0)
        roles, least = _roles(members), _minimum(spec.min_member or 0, len(members)) if spec else None
        yield Work(
            name=name,
            submit=(group or members[0]).metadata.created,
            run=run,
            roles=roles,
            queue=(spec.queue if spec else None) or DEFAULT_QUEUE,
            user=_annotations(group or members[0]).get(USER, ""),
            priority=priority,
            estimate=_seconds(group, ESTIMATE),
            minimum=least,
            checkpoint=_seconds(group, CHECKPOINT) or 0.0,
            namespace=namespace,
            group=_group(group, priority, least_resources(roles, len(members) if least is None else least)) if group else None,
        )


def job_of(namespace: str | None, group: str) -> JobName:
    return namespace or "default", group, True


def job_of_pod(pod: Pod) -> JobName:
    """The job of a pod: that of its PodGroup, or the pod itself."""
    group = _annotations(pod).get(GROUP_NAME)
    return job_of(pod.metadata.namespace, group) if group else (pod.metadata.namespace or "default", pod.metadata.name, False)


def _group(group: PodGroup, priority: int, least: dict[str, Quantity]) -> PodGroup:
    """The PodGroup as it was when it came."""
    meta = Metadata(group.metadata.name, group.metadata.namespace, labels=group.metadata.labels, annotations=_annotations(group))
    spec = replace(
        group.spec, priority_class_name=class_name(priority) if priority else None, min_resources=group.spec.min_resources or least
    )
    return PodGroup(meta, spec, PodGroupStatus(phase="Pending"))


def _minimum(wanted: int, pods: int) -> int | None:
    """The minimum of a gang; None if the gang needs all of its pods."""
    return None if wanted == pods else wanted


def _roles(pods: list[Pod]) -> tuple[Role, ...]:
    """The roles of pods: equal pods that follow one another are one role."""
    roles: list[Role] = []
    for pod in pods:
        spec = replace(pod.spec, node_name=None)
        last = roles[-1] if roles else None
        meta = pod.metadata
        notes = _annotations(pod)
        if last is not None and (last.spec, last.annotations, last.labels) == (spec, notes, meta.labels):
            roles[-1] = Role(last.count + 1, last.spec, last.annotations, last.labels)
        else:
            roles.append(Role(1, spec, notes, meta.labels))
    return tuple(roles)


def _annotations(item: Pod | PodGroup) -> dict[str, str]:
    """The annotations of an object, without those that a scheduler wrote when it placed pods."""
    return {name: value for name, value in (item.metadata.annotations or {}).items() if name not in OF_PLACES}


def _seconds(item: Wire | None, annotation: str) -> float | None:
    if item is None:
        return None
    meta = item.metadata  # type: ignore[attr-defined]
    text = (meta.annotations or {}).get(annotation)
    try:
        return seconds(text) if text else None
    except ValueError as error:
        raise InputError(str(error), subject=f"{type(item).__name__} {meta.name}", field=f"metadata.annotations[{annotation}]") from None
