"""Rules about a cluster's objects: priorities without effect, disruption budgets that allow no eviction, jobs that can never run; and about
its queues: amounts that contradict each other or exceed the cluster, and broken queue trees.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from pumice.answers.can_ever_run import claims, fits
from pumice.answers.lint.finding import Finding, Level
from pumice.api.core import PodDisruptionBudgetSpec
from pumice.api.defaults import ROOT_QUEUE
from pumice.api.plural import plural
from pumice.api.selectors import matches
from pumice.controllers.kubernetes.owned_pods import share
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import World
from pumice.scheduler.model import COMPLETED, PODS, Cluster, Dimensions, Queue, Task, Vector, status

MOST_JOBS = 200  #: how many waiting jobs are checked for whether they can ever run


def powerless_priorities(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find priority classes whose pods can never preempt others, however high they are."""
    used = Counter(
        job.group.spec.priority_class_name for job in cluster.jobs.values() if job.group is not None and job.group.spec.priority_class_name
    )
    classes = [each for each in cluster.of("PriorityClass").values() if not each.metadata.name.startswith("system-")]
    preempts = policy.has_action("preempt") or policy.has_action("gangpreempt") or policy.profiles is not None
    if not preempts and used and len({each.value for each in classes}) > 1:
        yield Finding(
            "nobody-preempts",
            Level.NOTE,
            "configuration",
            "priority classes decide who is served first, and never make room, since no action preempts",
            "Add preempt to the actions, if important jobs shall evict others",
        )
    lowest = min((each.value for each in classes), default=0)
    for each in classes:
        if each.preemption_policy == "Never" and each.value > lowest and preempts:
            yield Finding(
                "class-never-preempts",
                Level.NOTE,
                f"priorityclass/{each.metadata.name}",
                f"pods of it wait for room however important they are ({each.value}), since its preemptionPolicy is Never",
                "Leave preemptionPolicy out, if they shall make room",
            )


def blocking_budgets(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find disruption budgets that never allow any of their pods to be evicted."""
    budgets = sorted(cluster.of("PodDisruptionBudget").items())
    by_namespace: dict[str, list[Task]] = {budget.metadata.namespace or "default": [] for _, budget in budgets}
    for task in cluster.tasks.values() if budgets else ():
        if task.namespace in by_namespace and not task.status & status.FINISHED:
            by_namespace[task.namespace].append(task)
    for key, budget in budgets:
        selector = budget.spec.selector.requirements if budget.spec.selector else ()
        existing = [task for task in by_namespace[budget.metadata.namespace or "default"] if selector and matches(selector, task.labels)]
        covered = [task for task in existing if task.status == status.RUNNING]
        if covered and _keeps_all(budget.spec, len(existing)):
            yield Finding(
                "budget-blocks-all",
                Level.WARNING,
                f"poddisruptionbudget/{key}",
                f"its pods ({len(covered)}) can never be evicted: drains of their nodes hang, and nobody else gets their room",
                "Let at least one be unavailable",
                f"{covered[0].key} on {covered[0].node_name} is one of them",
            )


def _keeps_all(spec: PodDisruptionBudgetSpec, pods: int) -> bool:
    """Whether of so many pods none may be missing. A part is rounded up, as Kubernetes does."""
    with suppress(ValueError):  # no server takes other words
        if spec.max_unavailable is not None:
            return share(spec.max_unavailable, pods, True) <= 0
        return spec.min_available is not None and share(spec.min_available, pods, True) >= pods
    return False


def never_fits(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    if not cluster.nodes.count:
        return
    waiting = {**cluster.waiting, **cluster.not_enqueued}.values()
    waits = sorted((job for job in waiting if job.group is not None), key=lambda job: (job.created, job.uid))
    for job in waits[:MOST_JOBS]:
        fit = fits(cluster, policy, now, f"podgroup/{job.uid}", world)
        if fit.bound is not None:
            text = f"it can never run here: {fit.bound.text}" + (f"; {fit.largest}" if fit.largest else "")
            yield Finding("never-fits", Level.ERROR, f"podgroup/{job.uid}", text, "Ask for less, or add what is short")
        elif fit.waits_for:
            text = f"it waits for {claims(fit.waits_for)}, without which none of its pods starts"
            fix = "Create what is missing, or look why it is not bound"
            yield Finding("waits-for-claim", Level.WARNING, f"podgroup/{job.uid}", text, fix)


def unheeded_topologies(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find waiting jobs whose hard network topology no plugin observes."""
    for uid, job in sorted({**cluster.waiting, **cluster.not_enqueued}.items()):
        if job.group is not None and policy.why_topology_is_unheeded(job.group):
            text = "its hard network topology has no effect: no plugin heeds it"
            yield Finding("topology-unheeded", Level.WARNING, f"podgroup/{uid}", text, "Add network-topology-aware to the plugins")


def beyond_the_cluster(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find out whether all queues together deserve, or are guaranteed, more than the cluster has."""
    leaves = _leaves(cluster)
    if not cluster.nodes.count or not leaves:
        return
    total = cluster.nodes.total()
    for field, level in (("deserved", Level.WARNING), ("guarantee", Level.ERROR)):
        wanted: Vector = np.sum([getattr(queue, field) for queue in leaves], axis=0)
        more = _worst(wanted, total)
        if more is not None:
            amounts = _amounts(cluster.dimensions, more, wanted, total)
            consequence = (
                f"queues deserve {amounts}: not all of them can have it, and reclaim goes on evicting between them"
                if field == "deserved"
                else f"queues are guaranteed {amounts}: nothing is left free for any of them to borrow, and not all guarantees can be kept"
            )
            yield Finding(f"{field}-beyond-cluster", level, "queues", consequence, f"Lower {field}, or add nodes")


def contradictions(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find queues whose capability is below their guarantee or deserved."""
    for queue in _existing(cluster):
        for field in ("guarantee", "deserved"):
            wanted: Vector = getattr(queue, field)
            more = _worst(wanted, queue.capability)
            if more is not None:
                held = cluster.dimensions.format_amount(more, wanted[more])
                most, name = cluster.dimensions.format_amount(more, queue.capability[more]), cluster.dimensions.names[more]
                yield Finding(
                    f"capability-below-{field}",
                    Level.ERROR if field == "guarantee" else Level.WARNING,
                    f"queue/{queue.name}",
                    f"it can never hold the {held} {name} of its {field}, since its capability is {most}",
                    f"Raise capability.{name} to {held}, or lower {field}",
                )


def trees(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find faults in the queue tree, if the plugin capacity uses queues as a tree."""
    if not any(choice.plugin.name == "capacity" and choice.hierarchy for tier in policy.tiers for choice in tier):
        return
    queues = {queue.name: queue for queue in _existing(cluster)}
    inner = {queue.parent for queue in queues.values() if queue.name != ROOT_QUEUE}
    for queue in queues.values():
        if trouble := _way_up(queue, queues):
            yield Finding(
                "queue-tree",
                Level.ERROR,
                f"queue/{queue.name}",
                f"its jobs never start: {trouble}",
                "Name a queue that leads to root as spec.parent",
            )
        job = next((job for job in queue.jobs.values() if job.phase != COMPLETED), None)
        if queue.name in inner and queue.name != ROOT_QUEUE and job is not None:
            yield Finding(
                "jobs-in-inner-queue",
                Level.ERROR,
                f"queue/{queue.name}",
                "it has queues below it and jobs of its own: neither its jobs nor those below it start",
                "Give its jobs a leaf of their own",
                f"podgroup/{job.uid} is in it",
            )


def _way_up(queue: Queue, queues: dict[str, Queue]) -> str:
    """What is wrong with the way from a queue to the root; empty if nothing is."""
    seen = [queue.name]
    while seen[-1] != ROOT_QUEUE:
        parent = queues[seen[-1]].parent
        if parent not in queues and parent != ROOT_QUEUE:
            return f"queue {parent}, the parent of {seen[-1]}, does not exist"
        if parent in seen:
            return f"{' is below '.join([*seen, parent])}, a circle"
        if parent == ROOT_QUEUE:
            return ""
        seen.append(parent)
    return ""


def shut_with_jobs(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    for queue in _existing(cluster):
        waits = [job for job in queue.jobs.values() if job.pending]
        if not queue.open and waits:
            yield Finding(
                "closed-with-jobs",
                Level.WARNING,
                f"queue/{queue.name}",
                f"it is {queue.state or 'not open'}, and {len(waits)} of its jobs {plural(len(waits), 'waits', 'wait')} until it is open",
                "Open it, or move the jobs",
                f"podgroup/{waits[0].uid} is one of them",
            )


def unreclaimable(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Find out whether reclaim has nothing to do, since no queue is reclaimable."""
    queues = [queue for queue in _existing(cluster) if queue.name != ROOT_QUEUE]
    if policy.has_action("reclaim") and len(queues) > 1 and not any(queue.reclaimable for queue in queues):
        yield Finding(
            "nothing-reclaimable",
            Level.WARNING,
            "queues",
            "reclaim can take back nothing, since every queue says reclaimable: false",
            "Set reclaimable on those that lend",
        )


def _existing(cluster: Cluster) -> list[Queue]:
    return sorted((queue for queue in cluster.queues.values() if queue.exists), key=lambda queue: queue.name)


def _leaves(cluster: Cluster) -> list[Queue]:
    inner = {queue.parent for queue in _existing(cluster)}
    return [queue for queue in _existing(cluster) if queue.name not in inner and queue.name != ROOT_QUEUE]


def _worst(wanted: Vector, limit: Vector) -> int | None:
    """The column in which `wanted` exceeds `limit` by the greatest factor; None if it does so in no column."""
    more = wanted > limit
    more[PODS] = False
    if not more.any():
        return None
    return int(np.where(more, wanted / np.maximum(limit, 1.0), 0.0).argmax())


def _amounts(dimensions: Dimensions, column: int, wanted: Vector, total: Vector) -> str:
    asked, most = dimensions.format_amount(column, wanted[column]), dimensions.format_amount(column, total[column])
    return f"{asked} {dimensions.names[column]} of the {most} that the cluster has"
