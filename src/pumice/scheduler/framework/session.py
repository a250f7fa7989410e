"""The session: one cycle's transaction on the kept state. What was decided stays; everything else is undone when the session closes.

The questions that actions put to plugins are in `questions.py`, `orders.py` and `evictable_tasks.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.framework import job_status
from pumice.scheduler.framework.at_rest import AtRest, Needs
from pumice.scheduler.framework.decisions import Decisions, GroupCondition, GroupEvent, Unsaid, Waiting
from pumice.scheduler.framework.feature_gates import DEVICE_GATES
from pumice.scheduler.framework.fit_errors import Shortage
from pumice.scheduler.framework.gathering import Gathering
from pumice.scheduler.framework.job_classes import MEMORY as KINDS, JobClass, JobClasses, blanks
from pumice.scheduler.framework.journal import Operation, SavedPhase, StateJournal
from pumice.scheduler.framework.kept_evaluations import keep_evaluations
from pumice.scheduler.framework.network_topology import Topology
from pumice.scheduler.framework.observer import SILENT, Observer, Stage
from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.framework.past_evictions import PastEvictions, note, past_eviction
from pumice.scheduler.framework.plugin_guard import Guard, is_ours
from pumice.scheduler.framework.pods_to_try import EVERYBODY, WaitingPods
from pumice.scheduler.framework.policy import Action, Policy
from pumice.scheduler.framework.questions import Questions
from pumice.scheduler.framework.session_notes import LastTry
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.framework.world import NOWHERE, World
from pumice.scheduler.model import INQUEUE, Cluster, Job, Mask, Queue, Task, Template, Vector, status

Shortfalls = dict[tuple[str, str, Template], tuple[str, tuple[Shortage, ...]]]  #: by queue, kind of limit and template


class Session(Questions):
    """A transaction on the kept state. Use it as a context manager."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        now: float,
        world: World = NOWHERE,
        scheduling_queue: WaitingPods = EVERYBODY,
        observer: Observer = SILENT,
        *,
        guarded: bool = False,
    ) -> None:
        super().__init__()
        self.cluster = cluster
        self.nodes = cluster.nodes
        self.policy = policy
        self.now = now
        self.world = world
        self.scheduling_queue = scheduling_queue
        self.observer = observer
        observer.begins(Stage.SESSION, self)
        self.decisions = Decisions()
        self.undecided: list[Operation] = []
        self.evicted: list[Task] = []  #: at the end
        self.before = StateJournal(cluster)  #: whatever the session changes but places, as it was
        self.pretended = StateJournal(cluster)  #: what lasts only while actions run
        self.moves: dict[Task, Operation] = {}  #: by task: its first move
        self.phases: dict[Job, str] = {}  #: phase before the session, of the jobs whose phase was set
        self.conditions: dict[str, GroupCondition] = {}  #: by job uid
        self.refused: list[Waiting] = []  #: pods for which the action schedule found no node
        self._shortfalls: tuple[int, Shortfalls] = (-1, {})
        self.gathering = Gathering(cluster, policy.gathering_s, now)
        self.past_evictions = PastEvictions(cluster, now)
        self._changed = frozenset(cluster.changed)  #: the uids of the jobs that had changed before
        _adopt(policy, cluster)
        for action in policy.actions:
            action.enter(self)
        cluster.refresh_sums(anew=not policy.shortcuts)
        self._ask(OpenPlugins.of(self, guarded=guarded))
        in_full = observer.needs_full_cycles or guarded or not policy.shortcuts
        one_by_one = in_full or not self.orders.compares_by_state or not policy.places_gangs
        self.job_classes: JobClasses | None = JobClasses.of(self) if policy.reads_only_state and not one_by_one else None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            if kind is None:
                self._end()
        except BaseException:
            self.restore()
            raise
        if kind is not None:
            self.restore()

    def _end(self) -> None:
        bound = {bind.task.uid for bind in self.decisions.binds}
        for operation in reversed(self.undecided):
            if operation.task.uid not in bound:
                self.undo(operation)
        self.undecided.clear()
        self.evicted = [eviction.task for eviction in self.decisions.evictions]
        for task in self.evicted:
            self.cluster.forget_eviction(task)
        if self.job_classes is not None:
            self.job_classes.close(self)
        else:
            self.cluster.memory.pop(KINDS, None)
        keep_evaluations(self, self._evaluations)
        self.cluster.forget_changes()

    def forget_all_but(self, names: Iterable[str]) -> None:
        """Keep only these attributes: nobody asks about the session any more. The rest refers back to it, and would wait for the collector
        of garbage, with arrays of all nodes."""
        self.__dict__ = {name: vars(self)[name] for name in names}

    def restore(self) -> None:
        """Put everything back as it was before the session, without calling plugins: nothing was decided."""
        self.pretended.rollback()
        self.before.rollback()  # first of all: indexes read what tells that a task is leaving
        for operation in self.moves.values():  # the first first, so that jobs have their Pending tasks in the order of before
            operation.undo(self.cluster)
        self.cluster.memory.pop(KINDS, None)
        self.cluster.refresh_sums()
        self.cluster.log.clear()

    def run(self, action: Action) -> None:
        """Run an action. What an action from outside has not committed when it fails is undone, and the decisions name the failure."""
        self.observer.begins(Stage.ACTION, action)
        self.rest_again()
        try:
            action.run(self)
        except Exception as error:
            if is_ours(type(action)):
                raise
            Guard(action, self.plugins.failed, "action").note("run", error, action.run)
        self.observer.ends(Stage.ACTION, action)

    def close(self) -> Decisions:
        """Call the hook `close` of the plugins, conclude the status of every job, and return the decisions."""
        self.observer.ends(Stage.SESSION, self)
        self.pretended.rollback()
        self._forget_tries()
        for alike in self.alike:
            if len(alike.members) > 1:
                self.blanks |= blanks(alike)
        for method in self.plugins.flat["close"]:
            plugin = method.__self__  # type: ignore[attr-defined]
            self.observer.begins(Stage.CLOSE, plugin)
            method(self)
            self.observer.ends(Stage.CLOSE, plugin)
        self.past_evictions.close(self)
        if self.decisions.evictions:
            note(self.cluster, [past_eviction(each, self.cluster, self.now) for each in self.decisions.evictions])
        self.decisions.tell(job_status.conclude(self))
        return self.decisions

    def _forget_tries(self) -> None:
        """Jobs whose tasks were moved only in tries that were undone have not changed."""
        moved = {task.job: False for task in self.moves}
        moved |= {task.job: True for task, first in self.moves.items() if (task.status, task.node) != (first.before, first.row)}
        for job, is_elsewhere in moved.items():
            if job is not None and not is_elsewhere and job not in self.phases and job.uid not in self._changed:
                self.cluster.changed.pop(job.uid, None)

    # -- what the session knows

    def plugin(self, name: str) -> Any:
        return self.plugins.named(name)

    def memory(self, plugin: str) -> dict[str, Any]:
        """The dictionary in which a plugin keeps what it needs in later cycles."""
        kept: dict[str, Any] = self.cluster.memory.setdefault(plugin, {})
        return kept

    @cached_property
    def queues(self) -> list[Queue]:
        """The existing queues, the oldest first."""
        return sorted((queue for queue in self.cluster.queues.values() if queue.exists), key=lambda queue: (queue.created, queue.name))

    def jobs(self, among: Iterable[Job]) -> list[Job]:
        """The jobs among these that have a PodGroup and an existing queue, the oldest first."""
        return sorted((job for job in among if job.queue is not None and job.queue.exists), key=lambda job: (job.created, job.uid))

    @cached_property
    def alike(self) -> list[JobClass]:
        """The jobs that waited when the session began and are not at rest, in groups of jobs that have been treated alike so far."""
        if self.job_classes is not None:
            return self.job_classes.awake()
        return [JobClass.alone(job) for job in self.jobs(self.cluster.waiting.values())]

    def waiting(self) -> list[JobClass]:
        """All groups whose first job still has Pending tasks, by age of that job, the oldest first. No job is at rest after this call."""
        if self.job_classes is not None:
            self.alike += self.job_classes.wake_all()
        return self.awake()

    @cached_property
    def resting(self) -> AtRest:
        """The jobs that are not looked at, unless they are woken."""
        return self.job_classes.at_rest if self.job_classes is not None else AtRest(self, Needs(self.cluster.dimensions.width), ())

    def rest_again(self) -> None:
        """Let jobs rest again that were woken in vain."""
        if self.job_classes is not None:
            self.job_classes.at_rest.rest_again(self)

    def at_rest(self) -> Unsaid:
        """The jobs that were not looked at."""
        return Unsaid(self.resting.groups(), self.resting.waiting)

    def awake(self) -> list[JobClass]:
        """The groups of `alike` whose first job still has Pending tasks, by age of that job, the oldest first."""
        return sorted((alike for alike in self.alike if alike.first.pending), key=lambda alike: alike.members[0])

    def together(self, others: dict[str, Job]) -> list[JobClass]:
        """The groups of `alike`, and each of the other jobs (given by uid) that is in none of them as a group of one."""
        if self.job_classes is not None and self.job_classes.at_rest:
            for job in others.values():
                if job in self.job_classes:
                    self.alike += self.job_classes.wake_job(job)
        return self.looked_at(others)

    def looked_at(self, others: dict[str, Job]) -> list[JobClass]:
        """The groups of `alike`, and each of the other jobs that is in none of them, nor at rest, as a group of one."""
        known = self.job_classes if self.job_classes is not None else {alike.first for alike in self.alike}
        return [*self.alike, *(JobClass.alone(job) for job in self.jobs(job for job in others.values() if job not in known))]

    def is_alone(self, groups: list[JobClass]) -> bool:
        """Whether these are a single job that is not at rest, so that there is no order of queues and jobs to find."""
        return len(groups) == 1 and len(groups[0].members) == 1 and groups[0].wakes is None and self.policy.shortcuts

    @cached_property
    def total(self) -> Vector:
        """The sum of what all nodes have allocatable."""
        return self.nodes.total()

    @cached_property
    def topology(self) -> Topology:
        """The HyperNodes, and the limits and places of jobs in them."""
        return Topology(self.cluster, self.before)

    @property
    def shortfalls_now(self) -> Shortfalls:
        """The shortfalls of queues that were computed since a task last moved."""
        position = len(self.cluster.log)
        if self._shortfalls[0] != position or not self.policy.shortcuts:
            self._shortfalls = (position, {})
        return self._shortfalls[1]

    def clearing(self) -> Mask:
        """The nodes on which this session evicts tasks. Filters no longer see the tasks, which keep what they use until they are gone."""
        mask = np.zeros(len(self.nodes), bool)
        for eviction in self.decisions.evictions:
            mask[eviction.task.node] = True
        return mask

    def may_bind(self, task: Task, evaluation: Evaluation, clearing: Mask) -> Mask:
        """The nodes on which the task need not wait for evicted tasks: those not in `clearing`, and if it needs only room, those where
        idle room is enough."""
        return ~clearing | evaluation.fits_idle if task.template.needs_only_room else ~clearing

    # -- changes

    def statement(self) -> Statement:
        return Statement(self)

    def begins(self, operation: Operation) -> None:
        """Note where the task is before its first move."""
        self.moves.setdefault(operation.task, operation)

    def moved(self, task: Task, before: int) -> None:
        """Call `on_allocate` or `on_deallocate` of the plugins if a task began or ceased to hold a place, unless it has no queue."""
        job = task.job
        if job is None or job.queue is None or not job.queue.exists:
            return
        holds = bool(task.status & status.HELD)
        if holds != bool(before & status.HELD):
            for method in self.plugins.flat["on_allocate" if holds else "on_deallocate"]:
                method(task)

    def ungate(self, task: Task) -> None:
        """Decide to remove the queue's scheduling gate from a task, as its queue has room for it. Without the gate it may be placed."""
        if task.uid in self.decisions.ungated:
            return
        self.changes += 1
        self.decisions.ungated[task.uid] = task
        self.on_gate_removed(task)

    def undo(self, operation: Operation) -> None:
        """Give a task the status and place again that it had before the operation."""
        task, undone = operation.task, operation.task.status
        if task.status & (status.ALLOCATED | status.PIPELINED):
            self.last_try[task.uid] = LastTry(task.status, task.node_name, operation.evicted)
        self.cluster.move(task, operation.before, operation.row)
        self.moved(task, undone)

    def set_phase(self, job: Job, phase: str) -> None:
        self.changes += job.phase != phase
        if job not in self.phases:
            self.phases[job] = job.phase
            self.before.note(SavedPhase(job, job.phase))
        if job.is_pending and phase == INQUEUE:
            self.gathering.let_in(job)
        self.cluster.set_phase(job, phase)

    def admit_all(self) -> None:
        """Admit every job (phase Inqueue), also those without pods, for which their controllers wait; unless the action enqueue does so."""
        if not self.policy.has_action("enqueue"):
            for job in self.jobs(self.cluster.not_enqueued.values()):
                self.set_phase(job, INQUEUE)

    def refuse_admission(self, job: Job, why: str) -> None:
        """Note why the job is not let in. A plugin calls this when its hook `job_enqueueable` answers Vote.REJECT."""
        self.not_admitted[job.uid] = why

    def event(self, job: Job, kind: str, reason: str, message: str) -> None:
        self.decisions.events.append(GroupEvent(job, kind, reason, message))


def _adopt(policy: Policy, cluster: Cluster) -> None:
    """Let the kept state follow the rules of the policy's release and gates."""
    cluster.log.tells_rows = policy.shortcuts
    cluster.shares_claims, cluster.needs_drivers = map(policy.has_gate, ("DRAWorkloadResourceClaims", "VolumeLimitScaling"))
    cluster.device_gates = frozenset(filter(policy.has_gate, DEVICE_GATES))
    cluster.nodes.numeric_taints = policy.has_gate("TaintTolerationComparisonOperators")
    cluster.newer = policy.profiles is not None and policy.profiles.release.minor >= 37
