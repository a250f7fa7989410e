"""Looking at a cycle from where one subject stands: a rehearsal, stopped at the moments when more is to be seen than in its decisions.

`alone`: nobody else who waits is served. What keeps the subject waiting then is no matter of order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pumice.answers.subject import Waiter
from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.framework.cycle import RehearsalObserver, rehearse
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, Only, World
from pumice.scheduler.model.cluster import Cluster

Capture = Callable[["Look"], None]


class Look(RehearsalObserver):
    """Calls `capture` when the subject has been tried in vain, or at the end if it had no turn."""

    def __init__(self, waiter: Waiter, capture: Capture) -> None:
        self.waiter = waiter
        self.loop: ScheduleLoop | None = None
        self._capture = capture
        self._has_looked = False

    def begins(self, stage: Stage, subject: Any) -> None:
        super().begins(stage, subject)
        if stage is Stage.SESSION:
            self._has_looked = False
        elif stage is Stage.ATTEMPTS:
            self.loop = subject

    def ends(self, stage: Stage, subject: Any) -> None:
        if stage is Stage.SESSION or (stage is Stage.ACTION and self._was_tried):
            self._look()

    @property
    def _was_tried(self) -> bool:
        session = self.session
        return any(task.uid in session.fit_errors or task.uid in session.refused_by_queue for task in self.waiter.tasks)

    def _look(self) -> None:
        if not self._has_looked and not any(bind.task in self.waiter.members for bind in self.session.decisions.binds):
            self._has_looked = True
            self._capture(self)


def look(
    cluster: Cluster, policy: Policy, now: float, waiter: Waiter, capture: Capture, *, alone: bool, world: World = NOWHERE
) -> Decisions:
    """Rehearse a cycle and look at it."""
    observer = Look(waiter, capture)
    if not alone:
        return rehearse(cluster, policy, now, world, observer=observer)
    return rehearse_alone(cluster, policy, now, waiter, world, observer)


def rehearse_alone(cluster: Cluster, policy: Policy, now: float, waiter: Waiter, world: World, observer: RehearsalObserver) -> Decisions:
    """With nobody else who waits."""
    with _by_itself(cluster, waiter):
        return rehearse(cluster, policy, now, world, Only(waiter.tasks), observer)


@contextmanager
def _by_itself(cluster: Cluster, waiter: Waiter) -> Iterator[None]:
    """Nobody but the subject waits for its pods, or to be let in."""
    waiting, not_enqueued = cluster.waiting, cluster.not_enqueued
    job = waiter.job
    if job is not None:
        cluster.waiting = {job.uid: job} if job.uid in waiting else {}
        cluster.not_enqueued = {job.uid: job} if job.uid in not_enqueued else {}
    try:
        yield
    finally:
        cluster.waiting, cluster.not_enqueued = waiting, not_enqueued
