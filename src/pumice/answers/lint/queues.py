"""Rules about queues: amounts that contradict each other or the cluster, and trees that do not hang together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pumice.answers.lint.finding import Finding, Level
from pumice.api.meta import ROOT_QUEUE
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import World
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import COMPLETED
from pumice.scheduler.model.queue import Queue
from pumice.scheduler.model.resources import PODS, Dimensions, Vector


def beyond_the_cluster(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """What is deserved, or guaranteed, in all is more than there is."""
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
    """Of one queue: the most that it may hold is below what it shall have."""
    for queue in _existing(cluster):
        for field in ("guarantee", "deserved"):
            wanted: Vector = getattr(queue, field)
            more = _worst(wanted, queue.capability)
            if more is not None:
                held = cluster.dimensions.in_words(more, wanted[more])
                most, name = cluster.dimensions.in_words(more, queue.capability[more]), cluster.dimensions.names[more]
                yield Finding(
                    f"capability-below-{field}",
                    Level.ERROR if field == "guarantee" else Level.WARNING,
                    f"queue/{queue.name}",
                    f"it can never hold the {held} {name} of its {field}, since its capability is {most}",
                    f"Raise capability.{name} to {held}, or lower {field}",
                )


def trees(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Only where plugin capacity reads queues as a tree."""
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
                f"it is {queue.state or 'not open'}, and {len(waits)} of its jobs wait until it is open",
                "Open it, or move the jobs",
                f"podgroup/{waits[0].uid} is one of them",
            )


def unreclaimable(cluster: Cluster, policy: Policy, now: float, world: World) -> Iterator[Finding]:
    """Where all queues keep what they borrowed, reclaim has nothing to do."""
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
    """The column in which more is wanted than there may be, by the greatest factor."""
    more = wanted > limit
    more[PODS] = False
    if not more.any():
        return None
    return int(np.where(more, wanted / np.maximum(limit, 1.0), 0.0).argmax())


def _amounts(dimensions: Dimensions, column: int, wanted: Vector, total: Vector) -> str:
    asked, most = dimensions.in_words(column, wanted[column]), dimensions.in_words(column, total[column])
    return f"{asked} {dimensions.names[column]} of the {most} that the cluster has"
