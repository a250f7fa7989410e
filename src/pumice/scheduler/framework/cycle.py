"""The scheduling cycle on one screen; below it, the memory of the last cycle, and rehearsals: cycles that leave no trace."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from math import inf
from types import TracebackType
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import replace

from pumice.scheduler.framework.alike import MEMORY as KINDS
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_status import next_stranded
from pumice.scheduler.framework.observer import SILENT, Observer, Stage
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import EVERYBODY, NOWHERE, WaitingPods, World
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.subjob import SubJob
from pumice.scheduler.model.task import Task


def cycle(
    cluster: Cluster,
    policy: Policy,
    now: float,
    world: World = NOWHERE,
    queue: WaitingPods = EVERYBODY,
    observer: Observer = SILENT,
) -> Decisions:
    """Run one cycle and return its decisions. Afterwards `cluster` is as before plus the decisions; everything else is undone.

    If nothing has changed since the last cycle that could change the decisions, the last decisions are returned.

    `queue` says which pods of kube-scheduler's profiles are tried, and is informed of the outcome. If something in Pumice fails, the
    cycle is run again with all plugins guarded: then a failure spoils only the one answer, and the decisions name it.
    """
    cluster.clock = now
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


# The decisions of the last cycle, which are also those of the next cycle as long as nothing has changed that could matter.
#
# A cycle that changed nothing is remembered, with the cluster's revision and the time until which its decisions hold. Plugins and actions
# declare that their answers follow from the kept state (`reads_only_state`); by time alone they change at a plugin's `next_turn`. If one
# of them does not declare it, every cycle is run in full. What a class declares does not hold for its subclasses.

MEMORY = "decisions"  #: its key in the cluster's memory


class Remembered(Struct, frozen=True):
    """The decisions of the last cycle, and until when they hold."""

    policy: Policy
    revision: int
    since: float
    until: float
    decisions: Decisions


def recall(cluster: Cluster, policy: Policy, now: float, observer: Observer) -> Decisions | None:
    """The decisions of the last cycle (the same object) if this cycle would decide the same, else None."""
    last: Remembered | None = cluster.memory.get(MEMORY)
    if last is None or last.policy is not policy or observer.watches or not last.since <= now < last.until:
        return None
    return None if cluster.changed or cluster.log or cluster.revision != last.revision else last.decisions


def remember(session: Session) -> None:
    """Keep the decisions of a session that has just closed, if it changed nothing."""
    cluster = session.cluster
    cluster.memory.pop(MEMORY, None)
    if _changed_nothing(session) and (until := _holds_until(session)) > session.now:
        cluster.memory[MEMORY] = Remembered(session.policy, cluster.revision, session.now, until, _of_those_who_wait(session))


def _changed_nothing(session: Session) -> bool:
    told = session.decisions
    if told.binds or told.evictions or told.ungated or told.failures or told.again_at < inf or session.went_by_clock:
        return False
    nominated = all(task.nominated == node for task, node in told.nominations.items())
    return nominated and all(job.phase == phase for job, phase in session.phases.items())


def _holds_until(session: Session) -> float:
    if not session.policy.reads_only_state:
        return -inf
    return min([next_stranded(session.cluster, session.now), *(plugin.next_turn(session) for plugin in session.plugins.everyone)])


def _of_those_who_wait(session: Session) -> Decisions:
    """The decisions, without the status of jobs that are in them only because the jobs had changed."""
    cluster = session.cluster
    moved = {task.job.uid: task.job for task in session.origins if task.job is not None}  # even if it was undone
    told = replace(session.decisions)
    assert told.conclusion is not None
    told.tell(told.conclusion.of({*cluster.waiting, *cluster.not_enqueued, *moved}))
    return told


# Cycles that leave no trace: for questions of what would happen, asked of a state that stays in use.
#
# The session itself restores places and phases. All else that a cycle changes is saved here: what plugins keep, since when jobs wait,
# nominations, HyperNodes of jobs.


class RehearsalObserver(Observer):
    """An observer that keeps the session of a rehearsal."""

    session: Session

    def begins(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.SESSION:
            self.session = subject


class Unseen(RehearsalObserver):
    """An observer that keeps the session only to undo it. It watches nothing, so of jobs that are alike only one is tried."""

    watches = asks_why = False


class Rehearsal:
    """Cycles one after another, in a `with` block. At its end the cluster is as before, if the caller has taken the cycles back and has
    undone what it did between them."""

    def __init__(self, cluster: Cluster, policy: Policy, world: World = NOWHERE) -> None:
        self.cluster, self._policy, self._world = cluster, policy, world

    def __enter__(self) -> Self:
        self._before = _Before(self.cluster)
        self.cluster.memory.pop(KINDS, None)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._before.put_back()

    def cycle(
        self, now: float, queue: WaitingPods = EVERYBODY, observer: RehearsalObserver | None = None
    ) -> tuple[Decisions, Callable[[], None]]:
        """The decisions of one cycle, and the function that takes the cycle back."""
        seen = observer or Unseen()
        self.cluster.memory.pop(MEMORY, None)
        decisions = cycle(self.cluster, self._policy, now, self._world, queue, seen)
        self._before.touched(decisions)

        def take_back() -> None:
            for eviction in decisions.evictions:
                eviction.task.deleting = eviction.task.disrupted = False  # first of all: indexes read these
            seen.session.restore()

        return decisions, take_back


def rehearse(
    cluster: Cluster,
    policy: Policy,
    now: float,
    world: World = NOWHERE,
    queue: WaitingPods = EVERYBODY,
    observer: RehearsalObserver | None = None,
) -> Decisions:
    """What `cycle` would decide. Afterwards the cluster is as before."""
    with Rehearsal(cluster, policy, world) as rehearsal:
        decisions, take_back = rehearsal.cycle(now, queue, observer or RehearsalObserver())
        take_back()
    return decisions


class _Before:
    """The state before a rehearsal, as far as a session does not restore it by itself."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._memory = {name: copy(kept) for name, kept in cluster.memory.items()}
        self._clock, self._past_usage = cluster.clock, {key: usage.copy() for key, usage in cluster.past_usage.items()}
        self._changed = dict(cluster.changed)
        self._jobs: dict[Job, tuple[float | None, str, dict[str, str]]] = {}
        self._parts: list[tuple[SubJob, str]] = []
        for job in {**cluster.waiting, **cluster.not_enqueued}.values():
            self._note(job)
        tasks = (*cluster.without_job.values(), *(task for job in self._jobs for task in job.pending.values()))
        self._nominated = {task: task.nominated for task in tasks if task.nominated}
        self._no_longer: dict[Task, None] = {}

    def _note(self, job: Job) -> None:
        self._jobs[job] = job.waiting_since, job.allocated_hypernode, dict(job.nominated_hypernodes)
        self._parts += () if job.has_one_part else ((part, part.allocated_hypernode) for part in job.subjobs)

    def touched(self, decisions: Decisions) -> None:
        """Note what else the decisions change: nominations, and jobs that lose pods, which wait from now on, too."""
        self._no_longer |= dict.fromkeys(decisions.nominations)
        for eviction in decisions.evictions:
            job = eviction.task.job
            if job is not None and job not in self._jobs:
                self._note(job)

    def put_back(self) -> None:
        self._cluster.memory = self._memory
        self._cluster.clock, self._cluster.past_usage = self._clock, self._past_usage
        self._cluster.changed |= self._changed
        for job, (waiting_since, hypernode, nominated) in self._jobs.items():
            job.waiting_since, job.allocated_hypernode, job.nominated_hypernodes = waiting_since, hypernode, nominated
        for part, hypernode in self._parts:
            part.allocated_hypernode = hypernode
        for task in self._no_longer:
            task.nominated = self._nominated.get(task, "")
