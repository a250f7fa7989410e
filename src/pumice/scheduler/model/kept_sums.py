"""The kept sums: a task gets another status or place, and every sum of its node, job and queue follows. `move` is the one way."""

from collections.abc import Callable, Iterator
from itertools import chain

from pumice.api.meta import Metadata
from pumice.api.pod import ClaimCharge, Pod, PodStatus
from pumice.scheduler.model import status
from pumice.scheduler.model.inqueue_promises import KnownPromises, refresh_promises
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.nodes import Nodes
from pumice.scheduler.model.past_usage import HolderOf, PastUsage
from pumice.scheduler.model.resources import Dimensions
from pumice.scheduler.model.row_log import RowLog, row_change
from pumice.scheduler.model.shared_templates import Shared
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template


class KeptSums:
    """Tasks with their places, and the sums over them."""

    def __init__(self, schedulers: tuple[str, ...], ignored: frozenset[str]) -> None:
        self.schedulers = frozenset(schedulers)
        self.devices_take: Callable[[Task, int], list[ClaimCharge]] | None = None  #: what its devices take of a row's own resources
        self.clock = 0.0  #: the time of the next change, in seconds since 1970
        self.dimensions = Dimensions(ignored)
        self.nodes = Nodes(self.dimensions)
        self.waiting: dict[str, Job] = {}  #: jobs with Pending tasks
        self.without_job: dict[str, Task] = {}  #: Pending tasks without a job whose schedulerName is ours
        self.changed: dict[str, Job] = {}  #: jobs that have changed, so that the next cycle reports their status
        self.log = RowLog()
        self.revision = 0  #: grows with each change that a cycle could see, even if a cycle has undone it
        self.imagined = False  #: whether moves are only tried now, and will be undone
        self.past_usage: dict[tuple[float, HolderOf], PastUsage] = {}  #: updated with each move, too
        self._stale: dict[str, Job] = {}  #: jobs that have changed since the last refresh_sums()
        self._elastic: dict[str, Job] = {}  #: jobs that had more ready pods than their minimum then
        self._promises: KnownPromises = {}  #: promises that were computed before, for jobs that are alike
        self._followers: list[Callable[[int, Task, int], None]] = []  #: called with row, task and sign of each move that filters see
        self._shared = Shared(self.dimensions)  #: what equal pods share

    def move(self, task: Task, to: int, row: int, *, evicted: bool = False) -> None:
        """Give a task another status and row (-1: none), and adapt every sum. `evicted`: filters no longer see the task there."""
        self.revision += 1
        before = task.node
        if before >= 0:
            self._remove_from_node(task)
        self._remove_from_job(task)
        task.status = to
        task.evicted = evicted
        if task.seldom and task.claims and before != row and not self.imagined:
            self._charge(task, row)
        self._enter_job(task)
        if row >= 0:
            self._enter_node(task, row)
        else:
            task.node_name = ""

    def _charge(self, task: Task, row: int) -> None:
        """Give a task that we place the template with what its devices take of the row's own resources; take that back when it leaves."""
        if task.bare is not None:
            task.template, task.charges, task.bare = task.bare, (), None
        charges = self.devices_take(task, row) if self.devices_take is not None and row >= 0 and task.status & status.PLACED else []
        if charges:
            task.bare, task.charges = task.template, tuple(charges)
            task.template = self.with_charges(task.template, charges)

    def with_charges(self, template: Template, charges: list[ClaimCharge]) -> Template:
        """The template of a pod whose devices take of its node's own resources."""
        return self._shared.template(Pod(Metadata(namespace=template.namespace), template.spec, PodStatus(charges=charges)))

    def forget_eviction(self, task: Task) -> None:
        """Treat a task that a session has evicted like any other that is being deleted: filters see it until it is gone."""
        task.disrupted = True
        was_hidden, task.evicted = task.evicted, False
        if was_hidden and task.node >= 0:
            self.nodes.show(task, task.node, 1.0)
            self._tell(task.node, task, 1)

    def start(self, task: Task, row: int, since: float, written: dict[str, str]) -> None:
        """Let a task run. `written`: annotations that its bind adds to the pod."""
        if written:
            self.annotate(task, written)
        task.started = task.placed_at = since
        if task.node == row and task.status == status.BINDING and not self.past_usage:
            self.revision += 1
            self._restate(task, status.RUNNING)
        else:
            self.move(task, status.RUNNING, row)

    def _restate(self, task: Task, to: int, pod: Pod | None = None) -> None:
        """Take over another status of a task that stays where it is, and holds its room before and after. `pod`: its new form, if any."""
        self._tell(task.node, task, -1)
        if pod is not None:
            task.read_state(pod)
        self._count_as(task, to)
        self._tell(task.node, task, 1)
        if task.job is not None:
            self.changed[task.job.uid] = self._stale[task.job.uid] = task.job

    def annotate(self, task: Task, more: dict[str, str]) -> None:
        """Add annotations to a task that were written to its pod."""
        task.annotations = self._shared.pairs({**task.annotations, **more}, task.annotations)

    def nominate(self, task: Task, node_name: str) -> None:
        task.nominated = node_name

    def decide(self, task: Task) -> None:
        """Change a task's status from Allocated to Binding. Its place and the sums of resources stay as they are."""
        self._count_as(task, status.BINDING)

    def _count_as(self, task: Task, to: int) -> None:
        """Change a task's status from one in which it holds its room to another."""
        if task.job is not None:
            task.job.count_one(task.status, -1)
            task.job.count_one(to, 1)
        task.status = to

    def _enter_node(self, task: Task, row: int) -> None:
        task.node = row
        task.node_name = self.nodes.names[row]
        self.nodes.add(task, row)
        self._tell(row, task, 1)

    def _remove_from_node(self, task: Task) -> None:
        row = task.node
        self.nodes.take(task, row)
        self._tell(row, task, -1)
        task.node = -1

    def _tell(self, row: int, task: Task, sign: int) -> None:
        """Note in the log that a task came to a row or left it. Followers are called unless it is evicted: filters do not see it then."""
        self.log.append(row_change((row, task, 0 if task.evicted else sign)))
        if not task.evicted:
            for follow in self._followers:
                follow(row, task, sign)

    def existing(self) -> Iterator[Task]:
        """All tasks on nodes, except those that filters do not see."""
        return (task for tasks in self.nodes.tasks for task in tasks.values() if not task.evicted)

    def _enter_job(self, task: Task) -> None:
        job = task.job
        if job is None:
            if task.status == status.PENDING and task.template.scheduler_name in self.schedulers:
                self.without_job[task.uid] = task
            return
        job.enter(task)
        self.changed[job.uid] = self._stale[job.uid] = job
        if task.status & status.HELD:
            if job.queue is not None:
                job.queue.hold(task.template.exactly)
            for usage in self.past_usage.values():
                usage.begins(task, job, self.clock)
        elif task.status == status.PENDING:
            self.waiting[job.uid] = job
            if job.queue is not None:
                job.queue.asking += task.template.exactly

    def _remove_from_job(self, task: Task) -> None:
        job = task.job
        if job is None:
            self.without_job.pop(task.uid, None)
            return
        job.leave(task)
        self.changed[job.uid] = self._stale[job.uid] = job
        if task.status & status.HELD:
            if job.queue is not None:
                job.queue.release(task.template.exactly)
            for usage in self.past_usage.values():
                usage.ends(task, self.clock)
        elif task.status == status.PENDING:
            if not job.pending:
                del self.waiting[job.uid]
            if job.queue is not None:
                job.queue.asking -= task.template.exactly

    def refresh_sums(self, *, anew: bool = False) -> None:
        """Bring the sums that depend on a job as a whole up to date, for the jobs that changed. `anew`: forget the parts of other jobs."""
        if anew:
            self._promises.clear()
        for job in self._stale.values():
            if job.queue is not None:
                refresh_promises(job, self._promises)
            if job.queue is not None and job.ready_count > job.min_member:
                self._elastic[job.uid] = job
            else:
                self._elastic.pop(job.uid, None)
        self._stale.clear()

    def elastic_jobs(self) -> Iterator[Job]:
        """The jobs of queues that have more ready pods than their minimum; some may come twice."""
        return (
            job for job in chain(self._elastic.values(), self._stale.values()) if job.queue is not None and job.ready_count > job.min_member
        )
