"""The scheduling cycle on one screen; below it rehearsals: cycles that leave no trace.

Rehearsals answer what would happen, on a state that stays in use. The session restores what it has changed. What is not the session's is
saved here: the clock, past usage, and what plugins keep.
"""

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, Self

from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_classes import MEMORY as JOB_CLASSES
from pumice.scheduler.framework.last_decisions import MEMORY, recall, remember
from pumice.scheduler.framework.newcomer_cycle import place_newcomers
from pumice.scheduler.framework.observer import SILENT, Observer, Stage
from pumice.scheduler.framework.past_evictions import PAST_EVICTIONS
from pumice.scheduler.framework.pods_to_try import EVERYBODY, WaitingPods
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster, Task

WHAT_IT_DID = ("before", "cluster", "evicted", "moves", "now", "past_evictions", "phases", "pretended")  #: attributes of a session


def cycle(
    cluster: Cluster,
    policy: Policy,
    now: float,
    world: World = NOWHERE,
    queue: WaitingPods = EVERYBODY,
    observer: Observer = SILENT,
    *,
    guarded: bool = False,
) -> Decisions:
    """Run one cycle and return its decisions. Afterwards `cluster` is as before plus the decisions; everything else is undone.

    If nothing has changed since the last cycle that could change the decisions, the last decisions are returned.

    `queue` says which pods of kube-scheduler's profiles are tried, and is informed of the outcome. A plugin or an action from outside that
    fails spoils only what it was asked, and the decisions name it. If something in Pumice itself fails, this raises, and all is undone;
    `guarded` treats Pumice's own plugins like those from outside.
    """
    cluster.clock = now
    if (last := recall(cluster, policy, now, observer)) is not None:
        return last
    if (decisions := place_newcomers(cluster, policy, now, observer)) is not None:
        return decisions
    for action in policy.actions:
        if (decisions := action.decide(cluster, policy, now, observer)) is not None:
            return decisions
    with Session(cluster, policy, now, world, queue, observer, guarded=guarded) as session:
        for action in policy.actions:
            session.run(action)
        decisions = session.close()
    assert decisions.conclusion is not None
    at_rest = decisions.conclusion.at_rest
    if at_rest.groups:  # else the session is not kept
        at_rest.find_out = partial(_look_at_each, cluster, policy, now, world, cluster.revision, session)
    remember(session, partial(_look_at_each, cluster, policy, now, world, cluster.revision))
    session.plugins.release()
    if at_rest.groups:
        session.forget_all_but(WHAT_IT_DID)
    return decisions


class RehearsalObserver(Observer):
    """An observer that keeps the session of a rehearsal."""

    session: Session

    def begins(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.SESSION:
            self.session = subject

    def forget(self) -> None:
        """Nobody asks about the session any more."""
        self.session.forget_all_but(WHAT_IT_DID)


class Unseen(RehearsalObserver):
    """An observer that keeps the session only to undo it. It needs no full cycles, so of jobs that are alike only one is tried."""

    needs_full_cycles = reads_reasons = False


class EachLookedAt(RehearsalObserver):
    """An observer for which all jobs are looked at, of jobs that are alike only one."""

    needs_full_cycles, reads_all = False, True


class Rehearsal:
    """Cycles one after another, in a `with` block. At its end the cluster is as before, if the caller has taken the cycles back and has
    undone what it did between them."""

    def __init__(self, cluster: Cluster, policy: Policy, world: World = NOWHERE) -> None:
        self.cluster, self._policy, self._world = cluster, policy, world

    def __enter__(self) -> Self:
        cluster = self.cluster
        self._clock, self._changed = cluster.clock, dict(cluster.changed)
        self._past_usage = {key: usage.copy() for key, usage in cluster.past_usage.items()}
        self._memory = cluster.memory
        cluster.memory = {name: own_copy(kept) for name, kept in cluster.memory.items() if name != JOB_CLASSES}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        cluster = self.cluster
        cluster.memory, cluster.clock, cluster.past_usage = self._memory, self._clock, self._past_usage
        cluster.changed |= self._changed

    def cycle(
        self, now: float, queue: WaitingPods = EVERYBODY, observer: RehearsalObserver | None = None
    ) -> tuple[Decisions, Callable[[], None]]:
        """The decisions of one cycle, and the function that takes the cycle back."""
        seen = observer or Unseen()
        self.cluster.memory.pop(MEMORY, None)
        decisions = cycle(self.cluster, self._policy, now, self._world, queue, seen)
        return decisions, partial(_take_back, seen.session, is_over=observer is None)


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
        seen = observer or RehearsalObserver()
        decisions, take_back = rehearsal.cycle(now, queue, seen)
        take_back()
        if observer is None:
            seen.forget()
    return decisions


def _look_at_each(cluster: Cluster, policy: Policy, now: float, world: World, revision: int, session: Session | None = None) -> Decisions:
    """The decisions of a cycle that looks at each job. If nothing has changed since a session, from the state before it. `session`: that
    session, unless it has changed nothing itself."""
    is_same, changed = cluster.revision == revision, dict(cluster.changed)
    with Rehearsal(cluster, policy, world) as rehearsal:
        again = _taken_back(session) if is_same and session is not None else []
        if is_same and session is not None:
            cluster.memory[PAST_EVICTIONS] = session.past_evictions.entries
        seen = EachLookedAt()
        decisions, take_back = rehearsal.cycle(now, observer=seen)
        take_back()
        seen.forget()
        for redo in again:
            redo()
    if is_same:
        cluster.forget_changes()
        cluster.revision, cluster.changed = revision, changed
    return decisions


def _take_back(session: Session, *, is_over: bool) -> None:
    session.restore()
    if is_over:
        session.forget_all_but(WHAT_IT_DID)


def _taken_back(session: Session) -> list[Callable[[], None]]:
    """Take back what a session has decided. The functions that are returned do it again."""
    cluster, evicted = session.cluster, session.evicted
    cluster.clock = session.now
    flags = [partial(_flag, task, task.deleting, task.disrupted) for task in evicted]
    moves = [partial(cluster.move, task, task.status, task.node, evicted=task.evicted) for task in session.moves]
    phases = [partial(cluster.set_phase, job, job.phase) for job in session.phases]
    for task in evicted:
        _flag(task, deleting=False, disrupted=False)  # first of all: indexes read these
    for operation in session.moves.values():
        operation.undo(cluster)
    for job, before in session.phases.items():
        cluster.set_phase(job, before)
    return [*moves, *phases, *flags]


def _flag(task: Task, deleting: bool, disrupted: bool) -> None:
    task.deleting, task.disrupted = deleting, disrupted


def own_copy(kept: Any) -> Any:
    """A copy of what a plugin keeps, that can be changed without changing the original: containers are copied with all in them, other
    things by their method `copy`. What has none is shared, such as tasks and jobs."""
    if type(kept) is dict:
        return {name: own_copy(value) for name, value in kept.items()}
    if type(kept) is list:
        return list(map(own_copy, kept))
    return kept.copy() if hasattr(kept, "copy") else kept
