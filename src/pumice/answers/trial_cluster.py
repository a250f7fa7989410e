"""A cluster to try changes on: whatever is changed through a TrialCluster is undone when it ends, in reverse order.

The scheduler's state itself is changed, not a copy of it: a cluster of 150,000 pods is too large to be copied for a trial.

`Look` watches a rehearsed cycle for one subject, and looks at the session when it shows more than the decisions do.
`alone`: no other waiting job or pod is served. What keeps the subject waiting then is not the order of jobs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from pumice.answers.subject import WaitingPart
from pumice.api.meta import Wire
from pumice.api.pod import Pod, PodStatus
from pumice.api.volcano import Queue
from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.framework.cycle import RehearsalObserver, rehearse
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.journal import StateJournal
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.pods_to_try import Only
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import Cluster, Task
from pumice.scheduler.model.task import metadata_of


class TrialCluster(StateJournal):
    """Changes to a cluster that are undone at the end. Use it as a context manager."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.queues_before: dict[str, Queue] = {}  #: the queues that were changed, as they were

    def put(self, kind: str, item: Wire) -> None:
        known = self.cluster.queues.get(item.metadata.name) if isinstance(item, Queue) else None
        if known is not None and known.wire is not None:
            self.queues_before.setdefault(known.name, known.wire)
        super().put(kind, item)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        changed = dict(self.cluster.changed)
        super().__exit__(kind, error, trace)
        self.cluster.refresh_sums()
        for uid, job in changed.items():
            if self.cluster.jobs.get(uid) is job:
                self.cluster.report_again(job)
        self.cluster.log.clear()


def pod_of(task: Task, **spec: Any) -> Pod:
    """The pod of a task, as far as scheduling reads it, with these fields of its spec replaced."""
    return Pod(metadata_of(task), replace(task.template.spec, **spec), PodStatus(nominated_node_name=task.nominated or None))


Capture = Callable[["Look"], None]


class Look(RehearsalObserver):
    """Calls `capture` when the subject was tried without success, or at the end of the session if it was not tried and got no node."""

    def __init__(self, waiter: WaitingPart, capture: Capture) -> None:
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


def look(cluster: Cluster, policy: Policy, now: float, observer: Look, *, alone: bool, world: World = NOWHERE) -> Decisions:
    """Rehearse a cycle, and let a `Look` watch it, which its caller lets forget the session afterwards."""
    if not alone:
        return rehearse(cluster, policy, now, world, observer=observer)
    return rehearse_alone(cluster, policy, now, observer.waiter, world, observer)


def rehearse_alone(
    cluster: Cluster, policy: Policy, now: float, waiter: WaitingPart, world: World, observer: RehearsalObserver
) -> Decisions:
    """Rehearse a cycle in which no other job and no other pod of a profile waits."""
    with _by_itself(cluster, waiter):
        return rehearse(cluster, policy, now, world, Only(waiter.tasks), observer)


@contextmanager
def _by_itself(cluster: Cluster, waiter: WaitingPart) -> Iterator[None]:
    """Let no job except the subject's wait for nodes or for admission."""
    waiting, not_enqueued = cluster.waiting, cluster.not_enqueued
    own = {waiter.job.uid: waiter.job} if waiter.job is not None else {}
    cluster.waiting = {uid: job for uid, job in own.items() if uid in waiting}
    cluster.not_enqueued = {uid: job for uid, job in own.items() if uid in not_enqueued}
    try:
        yield
    finally:
        cluster.waiting, cluster.not_enqueued = waiting, not_enqueued
