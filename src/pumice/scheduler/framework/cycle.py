"""The whole scheduler on one screen."""

from __future__ import annotations

from copy import copy
from typing import Any

from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import SILENT, Observer, Stage
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.remembered import recall, remember
from pumice.scheduler.framework.scheduling_queue import EVERYBODY, WaitingPods
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model.cluster import Cluster


def cycle(
    cluster: Cluster,
    policy: Policy,
    now: float,
    world: World = NOWHERE,
    queue: WaitingPods = EVERYBODY,
    observer: Observer = SILENT,
) -> Decisions:
    """Decide once. What is not decided is undone: `cluster` is afterwards as it was, plus what the decisions say.

    If nothing has happened since the last time that could make them others, they are the last ones.

    `queue` says which of the pods of kube-scheduler's profiles are tried, and is told what became of them. If something in Pumice fails,
    it is decided again with all plugins guarded, so that what fails spoils only what it was asked about, and is named.
    """
    if (last := recall(cluster, policy, now, observer)) is not None:
        return last
    try:
        return _decide(Session(cluster, policy, now, world, queue, observer))
    except Exception:
        return _decide(Session(cluster, policy, now, world, queue, observer, guarded=True))


def _decide(opened: Session) -> Decisions:
    with opened as session:
        for action in opened.policy.actions:
            session.observer.begins(Stage.ACTION, action)
            action.run(session)
            session.observer.ends(Stage.ACTION, action)
        decisions = session.close()
    remember(opened)
    return decisions


# A cycle that decides and leaves no trace: for those who ask what would be, on a state that lives on.
#
# All that a cycle changes besides places and phases is remembered here: what plugins keep, since when jobs wait, nominations, HyperNodes.


class Onlooker(Observer):
    """Sees the session of a rehearsal."""

    session: Session

    def begins(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.SESSION:
            self.session = subject


def rehearse(
    cluster: Cluster,
    policy: Policy,
    now: float,
    world: World = NOWHERE,
    queue: WaitingPods = EVERYBODY,
    onlooker: Onlooker | None = None,
) -> Decisions:
    """What `cycle` would decide. The cluster is afterwards as it was."""
    seen, before = onlooker or Onlooker(), _Before(cluster)
    decisions = cycle(cluster, policy, now, world, queue, seen)
    for eviction in decisions.evictions:
        eviction.task.deleting = eviction.task.disrupted = False  # first of all: indexes go by it
    seen.session.restore()
    before.put_back(decisions)
    return decisions


class _Before:
    """What a session's own journal does not hold."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._memory = {name: copy(kept) for name, kept in cluster.memory.items()}
        self._changed = dict(cluster.changed)
        jobs = {**cluster.waiting, **cluster.not_enqueued}.values()
        self._jobs = [(job, job.waiting_since, job.allocated_hypernode, dict(job.nominated_hypernodes)) for job in jobs]
        self._parts = [(part, part.allocated_hypernode) for job in jobs if not job.has_one_part for part in job.subjobs]
        tasks = (*cluster.without_job.values(), *(task for job in jobs for task in job.pending.values()))
        self._nominated = {task: task.nominated for task in tasks if task.nominated}

    def put_back(self, decisions: Decisions) -> None:
        self._cluster.memory = self._memory
        self._cluster.changed |= self._changed
        for job, waiting_since, hypernode, nominated in self._jobs:
            job.waiting_since, job.allocated_hypernode, job.nominated_hypernodes = waiting_since, hypernode, nominated
        for part, hypernode in self._parts:
            part.allocated_hypernode = hypernode
        for task in decisions.nominations:
            task.nominated = self._nominated.get(task, "")
