"""A cluster to try changes on: whatever is changed through a Sketch is undone when it ends, in reverse order.

The scheduler's state itself is changed, not a copy of it: a cluster of 150,000 pods is too large to be copied for a trial.

`Look` watches a rehearsed cycle for one subject, and looks at the session when it shows more than the decisions do.
`alone`: no other waiting job or pod is served. What keeps the subject waiting then is not the order of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from msgspec.structs import replace

from pumice.answers.subject import Waiter
from pumice.api.meta import Metadata, Wire
from pumice.api.pod import Pod, PodStatus
from pumice.scheduler.actions.schedule import ScheduleLoop
from pumice.scheduler.framework.cycle import RehearsalObserver, rehearse
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.observer import Stage
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import NOWHERE, Only, World
from pumice.scheduler.model.cluster import Cluster
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.task import Task, metadata_of

Undo = Callable[[], None]


class Sketch:
    """Changes to a cluster that are undone at the end. Use it as a context manager."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._undo: list[Undo] = []

    def __enter__(self) -> Sketch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        changed = dict(self.cluster.changed)
        while self._undo:
            self._undo.pop()()
        self.cluster.refresh_sums()
        self.cluster.changed = {uid: job for uid, job in (changed | self.cluster.changed).items() if self.cluster.jobs.get(uid) is job}
        self.cluster.log.clear()

    def put(self, kind: str, item: Wire) -> None:
        self._undo.append(self._restoring(kind, _key(item)))
        self.cluster.put(kind, item)
        self.cluster.refresh_sums()

    def remove(self, kind: str, key: str) -> None:
        self._undo.append(self._restoring(kind, key))
        self.cluster.remove(kind, key)

    def move(self, task: Task, to: int, row: int) -> None:
        """Give a task another status and place."""
        before, place = task.status, task.node
        self.cluster.move(task, to, row)
        self._undo.append(lambda: self.cluster.move(task, before, place))

    def phase(self, job: Job, phase: str) -> None:
        before = job.phase
        self.cluster.set_phase(job, phase)
        self._undo.append(lambda: self.cluster.set_phase(job, before))

    def set(self, task: Task, **fields: Any) -> None:
        """Set fields of a task on which nothing else in the cluster depends."""
        before = {name: getattr(task, name) for name in fields}
        _assign(task, fields)
        self._undo.append(lambda: _assign(task, before))

    def takes_back(self, undo: Undo) -> None:
        """Keep the function that undoes another change, which was made to the cluster by other means."""
        self._undo.append(undo)

    def _restoring(self, kind: str, key: str) -> Undo:
        """The function that puts an object back as it is now, or removes it if it does not exist now."""
        cluster = self.cluster
        match kind:
            case "Pod":
                task = cluster.tasks.get(key)
                return _putting_back(cluster, task) if task is not None else lambda: cluster.remove(kind, key)
            case "PodGroup":
                job = cluster.jobs.get(key)
                return _regrouping(cluster, job) if job is not None and job.group is not None else lambda: cluster.remove(kind, key)
            case "Queue":
                queue = cluster.queues.get(key)
                before: Wire | None = queue.wire if queue is not None else None
            case "Node":
                row = cluster.nodes.rows.get(key)
                before = cluster.nodes.wire[row] if row is not None else None
            case _:
                before = cluster.of(kind).get(key)
        return (lambda: cluster.remove(kind, key)) if before is None else (lambda: cluster.put(kind, before))


def _assign(task: Task, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(task, name, value)


def _putting_back(cluster: Cluster, task: Task) -> Undo:
    """The function that puts a task back as it is now. The task is copied first, as another pod of its name may take its place."""
    before = Task.__new__(Task)
    for slot in Task.__slots__:
        setattr(before, slot, getattr(task, slot))
    group = task.job.name if task.job is not None else ""

    def undo() -> None:
        cluster.remove("Pod", task.key)
        for slot in Task.__slots__:
            setattr(task, slot, getattr(before, slot))
        task.job, task.node = None, -1
        cluster.put_back(task, before.status, before.node_name, group)

    return undo


def _regrouping(cluster: Cluster, job: Job) -> Undo:
    group, phase, since, hypernode = job.group, job.phase, job.waiting_since, job.allocated_hypernode
    assert group is not None

    def undo() -> None:
        cluster.put("PodGroup", group)
        restored = cluster.job(job.uid)
        restored.waiting_since, restored.allocated_hypernode = since, hypernode
        cluster.set_phase(restored, phase)

    return undo


def _key(item: Wire) -> str:
    meta: Metadata = item.metadata  # type: ignore[attr-defined]
    if isinstance(item, Pod):
        return f"{meta.namespace or 'default'}/{meta.name}"
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def pod_of(task: Task, **spec: Any) -> Pod:
    """The pod of a task, as far as scheduling reads it, with these fields of its spec replaced."""
    return Pod(metadata_of(task), replace(task.template.spec, **spec), PodStatus(nominated_node_name=task.nominated or None))


Capture = Callable[["Look"], None]


class Look(RehearsalObserver):
    """Calls `capture` when the subject was tried without success, or at the end of the session if it was not tried and got no node."""

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
    """Rehearse a cycle, and let a `Look` watch it."""
    observer = Look(waiter, capture)
    if not alone:
        return rehearse(cluster, policy, now, world, observer=observer)
    return rehearse_alone(cluster, policy, now, waiter, world, observer)


def rehearse_alone(cluster: Cluster, policy: Policy, now: float, waiter: Waiter, world: World, observer: RehearsalObserver) -> Decisions:
    """Rehearse a cycle in which no other job and no other pod of a profile waits."""
    with _by_itself(cluster, waiter):
        return rehearse(cluster, policy, now, world, Only(waiter.tasks), observer)


@contextmanager
def _by_itself(cluster: Cluster, waiter: Waiter) -> Iterator[None]:
    """Let no job except the subject's wait for nodes or for admission."""
    waiting, not_enqueued = cluster.waiting, cluster.not_enqueued
    own = {waiter.job.uid: waiter.job} if waiter.job is not None else {}
    cluster.waiting = {uid: job for uid, job in own.items() if uid in waiting}
    cluster.not_enqueued = {uid: job for uid, job in own.items() if uid in not_enqueued}
    try:
        yield
    finally:
        cluster.waiting, cluster.not_enqueued = waiting, not_enqueued
