"""The undo log of the kept state. Whatever is tried on it, by an action, a dry run, a session or a question, is noted here, and undone in
reverse order.

`Moves` gives tasks other places: statements and dry runs are made of it. `StateJournal` notes every other change too: attributes, phases,
objects. A session has one for all that it does, and what is asked of a cluster (answers/trial_cluster.py) is another.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from msgspec import Struct

from pumice.api.meta import Metadata, Wire
from pumice.api.pod import Pod
from pumice.scheduler.model import Cluster, Job, Task
from pumice.scheduler.model.task import key_of


class Change(Protocol):
    def undo(self, cluster: Cluster) -> None: ...


class Operation(Struct, frozen=True):
    """An operation on a task, and the state of the task before it."""

    task: Task
    before: int  #: status before
    row: int  #: row of its node before, -1 for none
    hidden: bool = False  #: whether the task was hidden from filters before
    beneficiary: str = ""  #: of an eviction: the pod or PodGroup in whose favour it is
    action: str = ""
    evicted: bool = False  #: of a pipelining: whether evictions make the room

    def undo(self, cluster: Cluster) -> None:
        cluster.move(self.task, self.before, self.row, evicted=self.hidden)


class SavedAttributes(Struct, frozen=True):
    """Attributes of a task, job or sub-job as they were. Nothing else in the cluster depends on them."""

    subject: Any
    values: dict[str, Any]

    def undo(self, cluster: Cluster) -> None:
        _assign(self.subject, self.values)


class SavedPhase(Struct, frozen=True):
    job: Job
    before: str

    def undo(self, cluster: Cluster) -> None:
        cluster.set_phase(self.job, self.before)


class Otherwise(Struct, frozen=True):
    """A change that is undone in its own way."""

    call: Callable[[], None]

    def undo(self, cluster: Cluster) -> None:
        self.call()


C = TypeVar("C", bound=Change)


class Journal(Generic[C]):
    """Changes in a `with` block. At its end they are undone in reverse order, except those that have been decided."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.operations: list[C] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.rollback()

    def mark(self) -> int:
        return len(self.operations)

    def rollback(self, mark: int = 0) -> None:
        """Undo all changes since the mark, the last one first."""
        while len(self.operations) > mark:
            self.undo(self.operations.pop())

    def undo(self, change: C) -> None:
        change.undo(self.cluster)


class Moves(Journal[Operation]):
    def do(self, operation: Operation, to: int, row: int, *, hide: bool = False) -> None:
        """Give the operation's task another status and place. `hide`: filters no longer see the task there."""
        self.operations.append(operation)
        self.cluster.move(operation.task, to, row, evicted=hide)


class StateJournal(Journal[Change]):
    """Changes of every kind."""

    def note(self, change: Change) -> None:
        """Note a change that is made by other means."""
        self.operations.append(change)

    def move(self, task: Task, to: int, row: int) -> None:
        """Give a task another status and place."""
        self.note(Operation(task, task.status, task.node))
        self.cluster.move(task, to, row)

    def start(self, task: Task, row: int, since: float, written: dict[str, str]) -> None:
        """Let a task run, as `Cluster.start` does."""
        self.set(task, annotations=task.annotations, started=since, placed_at=since)
        self.note(Operation(task, task.status, task.node))
        self.cluster.start(task, row, since, written)

    def nominate(self, task: Task, node_name: str) -> None:
        self.set(task, nominated=node_name)

    def set(self, subject: Any, **values: Any) -> None:
        """Set attributes on which nothing else in the cluster depends."""
        self.note(SavedAttributes(subject, {name: getattr(subject, name) for name in values}))
        _assign(subject, values)

    def phase(self, job: Job, phase: str) -> None:
        self.note(SavedPhase(job, job.phase))
        self.cluster.set_phase(job, phase)

    def put(self, kind: str, item: Wire) -> None:
        self.note(_restoring(self.cluster, kind, _name_of(item)))
        self.cluster.put(kind, item)
        self.cluster.refresh_sums()

    def remove(self, kind: str, key: str) -> None:
        self.note(_restoring(self.cluster, kind, key))
        self.cluster.remove(kind, key)


def _assign(subject: Any, values: dict[str, Any]) -> None:
    for name, value in values.items():
        setattr(subject, name, value)


def _restoring(cluster: Cluster, kind: str, key: str) -> Otherwise:
    """Puts an object back as it is now, or removes it if it does not exist now."""
    before: Wire | None
    match kind:
        case "Pod":
            task = cluster.tasks.get(key)
            if task is not None:
                return _putting_back(cluster, task)
            before = None
        case "PodGroup":
            job = cluster.jobs.get(key)
            if job is not None and job.group is not None:
                return _regrouping(cluster, job)
            before = None
        case "Queue":
            queue = cluster.queues.get(key)
            before = queue.wire if queue is not None else None
        case "Node":
            row = cluster.nodes.rows.get(key)
            before = cluster.nodes.wire[row] if row is not None else None
        case _:
            before = cluster.of(kind).get(key)
    return Otherwise(lambda: cluster.remove(kind, key) if before is None else cluster.put(kind, before))


def _putting_back(cluster: Cluster, task: Task) -> Otherwise:
    """Puts a task back as it is now. The task is copied first, as another pod of its name may take its place."""
    before = {slot: getattr(task, slot) for slot in Task.__slots__}
    to, node_name = task.status, task.node_name
    group = task.job.name if task.job is not None else ""

    def undo() -> None:
        cluster.remove("Pod", task.key)
        _assign(task, {**before, "job": None, "node": -1})
        cluster.put_back(task, to, node_name, group)

    return Otherwise(undo)


def _regrouping(cluster: Cluster, job: Job) -> Otherwise:
    group, phase, since, hypernode, places = job.group, job.phase, job.waiting_since, job.allocated_hypernode, job.held_places
    assert group is not None

    def undo() -> None:
        cluster.put("PodGroup", group)
        restored = cluster.job(job.uid)
        restored.waiting_since, restored.allocated_hypernode = since, hypernode
        cluster.hold_places(restored, places)
        cluster.set_phase(restored, phase)

    return Otherwise(undo)


def _name_of(item: Wire) -> str:
    if isinstance(item, Pod):
        return key_of(item)
    meta: Metadata = item.metadata  # type: ignore[attr-defined]
    return meta.key
