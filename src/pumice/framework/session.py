"""One cycle's transaction on the kept state, and the place where plugins' answers are combined.

At opening each hook is flattened to tuples of bound methods, by tier; asking is a loop over them with one of the folds. At closing
everything undecided is undone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, cmp_to_key
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from pumice.engine.evaluation import Evaluation
from pumice.engine.evaluations import Evaluations
from pumice.engine.rules import Filter, Rule, Scorer
from pumice.framework import closing, folds
from pumice.framework.containment import Broken, Failure, Guard, is_ours
from pumice.framework.decisions import Condition, Decisions, Event
from pumice.framework.gathering import Gathering
from pumice.framework.observer import SILENT, Observer, Stage
from pumice.framework.plugin import HOOKS, Plugin
from pumice.framework.policy import Choice, Policy
from pumice.framework.reasons import FitErrors
from pumice.framework.rules import filters_of, scorers_of
from pumice.framework.scheduling_queue import EVERYBODY, SchedulingQueue
from pumice.framework.statement import LastTry, Operation, Statement
from pumice.framework.topology import Purpose, Topology
from pumice.framework.verdict import NOT_ENOUGH_RESOURCES, UNSCHEDULABLE, Refusal
from pumice.framework.world import NOWHERE, World
from pumice.model import status
from pumice.model.cluster import Cluster
from pumice.model.hypernodes import HyperNode
from pumice.model.job import INQUEUE, Job
from pumice.model.queue import Queue
from pumice.model.resources import Mask, Vector
from pumice.model.subjob import SubJob
from pumice.model.task import Task

Key = tuple[Any, ...]
R = TypeVar("R", bound=Rule)


class Session:
    """See the module. Use it as a context manager."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        now: float,
        world: World = NOWHERE,
        scheduling_queue: SchedulingQueue = EVERYBODY,
        observer: Observer = SILENT,
        *,
        guarded: bool = False,
    ) -> None:
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
        self.origins: dict[Task, tuple[int, int]] = {}  #: status and row before the session, of the tasks that were moved
        self.phases: dict[Job, str] = {}  #: before the session, of the jobs that were given one
        self.annotations: dict[str, dict[str, str]] = {}  #: by task uid: what its bind shall write
        self.refused_by_queue: dict[str, str] = {}  #: by task uid: why its queue may not take it
        self.taken_in_thought: dict[str, tuple[tuple[int, int], Vector]] = {}  #: by job uid: kept until anybody moves
        self.not_admitted: dict[str, str] = {}  #: by job uid: why enqueue did not let it in
        self.fit_errors: dict[str, FitErrors] = {}  #: by task uid
        self.failed_roles: dict[str, set[str]] = {}  #: by job or sub-job uid: roles that found no node
        self.last_try: dict[str, LastTry] = {}  #: by task uid
        self.conditions: dict[str, Condition] = {}  #: by job uid
        self.touched: dict[str, Job] = {}  #: jobs whose status must be looked at when closing
        self.gathering = Gathering(cluster, policy.gathering_s, now)
        cluster.settle()
        self.total: Vector = self.nodes.total()  #: what all nodes can give
        self._guarded = guarded  #: Pumice's own plugins as well
        self._open_plugins()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._restore()
            return
        bound = {bind.task.uid for bind in self.decisions.binds}
        for operation in reversed(self.undecided):
            if operation.task.uid not in bound:
                self.undo(operation)
        self.undecided.clear()
        for eviction in self.decisions.evictions:
            self.cluster.forget_eviction(eviction.task)
        self.cluster.forget_changes()

    def _restore(self) -> None:
        """Nothing was decided: all is put back as it was, without asking anybody."""
        for task, (before, row) in self.origins.items():
            self.cluster.move(task, before, row)
        for job, phase in self.phases.items():
            self.cluster.set_phase(job, phase)
        self.cluster.settle()
        self.cluster.log.clear()

    def close(self) -> Decisions:
        """Let the plugins have their last word, and say how every job stands."""
        self.observer.ends(Stage.SESSION, self)
        for method in self._flat("close"):
            plugin = method.__self__  # type: ignore[attr-defined]
            self.observer.begins(Stage.CLOSE, plugin)
            method(self)
            self.observer.ends(Stage.CLOSE, plugin)
        closing.conclude(self)
        return self.decisions

    # -- plugins

    def _open_plugins(self) -> None:
        self._plugins = [[(choice, choice.plugin(choice.args, choice.hierarchy)) for choice in tier] for tier in self.policy.tiers]
        self._methods: dict[str, list[list[Callable[..., Any]]]] = {}
        self._flat_methods: dict[str, tuple[Callable[..., Any], ...]] = {}
        self._kinds: dict[str, list[Callable[[Task], Hashable]]] = {}
        everyone = [plugin for tier in self._plugins for _, plugin in tier]
        self._guards = {id(p): Guard(p, self._failed) for p in everyone if self._guarded or not is_ours(p)}
        broken = [failure for plugin in everyone if (failure := self._open_plugin(plugin)) is not None]
        for hook in HOOKS:
            tiers = [[self._hook(p, hook) for choice, p in tier if hasattr(p, hook) and choice.enabled(hook)] for tier in self._plugins]
            self._methods[hook] = tiers
            self._flat_methods[hook] = tuple(method for tier in tiers for method in tier)
        self._queue_rules = [
            (hook == "compare_queues", self._hook(plugin, hook))
            for tier in self._plugins
            for choice, plugin in tier
            for hook in ("compare_queues", "queue_order")
            if hasattr(plugin, hook) and choice.enabled(hook)
        ]
        self.filters: list[Filter] = [Broken(failure) for failure in broken]
        self.scorers: list[Scorer] = []
        for choice, plugin in (pair for tier in self._plugins for pair in tier):
            self._add_rules(choice, plugin)
        self._evaluations = Evaluations(self.cluster, self.filters, self.scorers, self.observer.asking)

    def _open_plugin(self, plugin: Plugin) -> Failure | None:
        """Open it; one that fails has no part in the session."""
        guard = self._guards.get(id(plugin))
        self.observer.begins(Stage.OPEN, plugin)
        try:
            plugin.open(self)
            self.observer.ends(Stage.OPEN, plugin)
        except Exception as error:
            if guard is None:
                raise
            self._plugins = [[pair for pair in tier if pair[1] is not plugin] for tier in self._plugins]
            return guard.note("open", error, plugin.open)
        return None

    def _failed(self, failure: Failure, about: Any) -> None:
        """The first time it is also told to those who look at the job."""
        if failure not in self.decisions.failures:
            self.decisions.failures[failure] = None
            job = about if isinstance(about, Job) else about.job if isinstance(about, Task) else None
            if job is not None:
                self.event(job, "Warning", "PluginFailed", str(failure))

    def _hook(self, plugin: Plugin, hook: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(plugin, hook)
        guard = self._guards.get(id(plugin))
        return method if guard is None else guard.hook(hook, method)

    def _add_rules(self, choice: Choice, plugin: Plugin) -> None:
        guard = self._guards.get(id(plugin))
        if guard is None:
            self.filters += filters_of(plugin, choice.enabled)
            self.scorers += scorers_of(plugin, choice.enabled)
            return
        self.filters += self._rules(guard, "filters", lambda: list(map(guard.filter, filters_of(plugin, choice.enabled))))
        self.scorers += self._rules(guard, "scorers", lambda: list(map(guard.scorer, scorers_of(plugin, choice.enabled))))

    def _rules(self, guard: Guard, hook: str, give: Callable[[], list[R]]) -> list[R]:
        """The plugin's rules; one that cannot give them refuses all tasks."""
        try:
            return give()
        except Exception as error:
            self.filters.append(Broken(guard.note(hook, error, getattr(guard.plugin, hook))))
            return []

    def _flat(self, hook: str) -> Sequence[Callable[..., Any]]:
        return self._flat_methods[hook]

    def plugin(self, name: str) -> Any:
        """The session's plugin of this name, or None."""
        return next((plugin for tier in self._plugins for _, plugin in tier if plugin.name == name), None)

    def memory(self, plugin: str) -> dict[str, Any]:
        """What a plugin keeps from cycle to cycle."""
        kept: dict[str, Any] = self.cluster.memory.setdefault(plugin, {})
        return kept

    # -- what there is

    def jobs(self, among: Iterable[Job]) -> list[Job]:
        """Those of the jobs that have a PodGroup and an existing queue, in a fixed order."""
        return sorted((job for job in among if job.queue is not None and job.queue.exists), key=lambda job: (job.created, job.uid))

    @cached_property
    def queues(self) -> list[Queue]:
        """Existing queues, in a fixed order."""
        return sorted((queue for queue in self.cluster.queues.values() if queue.exists), key=lambda queue: (queue.created, queue.name))

    @cached_property
    def topology(self) -> Topology:
        """HyperNodes, and what jobs ask of them."""
        return Topology(self.cluster)

    # -- orders

    def job_key(self, job: Job) -> Key:
        return (*[method(job) for method in self._flat("job_order")], job.created, job.uid)

    def job_plugin_key(self, job: Job) -> Key:
        """The part of the order that plugins decide, without age and name."""
        return tuple(method(job) for method in self._flat("job_order"))

    def task_key(self, task: Task) -> Key:
        index = task.index if task.index is not None else -1
        return (*[method(task) for method in self._flat("task_order")], index, task.created, task.number)

    def sub_job_key(self, subjob: SubJob) -> Key:
        return (*[method(subjob) for method in self._flat("sub_job_order")], subjob.match_index, subjob.uid)

    def queue_key(self, queue: Queue) -> Key:
        return (*[method(queue) for method in self._flat("queue_order")], queue.created, queue.name)

    @property
    def queues_need_comparing(self) -> bool:
        """Whether the order of queues is no key: a hierarchy compares two queues where their paths part."""
        return bool(self._flat("compare_queues"))

    def queue_before(self, left: Queue, right: Queue) -> bool:
        """Whether the left queue is served first. The first plugin that tells them apart decides, by a comparison or by keys."""
        for is_comparison, method in self._queue_rules:
            if is_comparison:
                order = method(left, right)
            else:
                one, other = method(left), method(right)
                order = (one > other) - (one < other)
            if order:
                return bool(order < 0)
        return (left.created, left.name) < (right.created, right.name)

    def in_queue_order(self, queues: Iterable[Queue]) -> list[Queue]:
        """The queue to be served first in front."""
        if not self.queues_need_comparing:
            return sorted(queues, key=self.queue_key)

        def compare(left: Queue, right: Queue) -> int:
            return -1 if self.queue_before(left, right) else 1

        return sorted(queues, key=cmp_to_key(compare))

    def victim_queue_before(self, left: Queue, right: Queue, preemptor: Queue) -> bool:
        """Whether the left queue's tasks are evicted first."""
        order = folds.first_decided(self._flat("victim_queue_order"), left, right, preemptor)
        return order < 0 if order else self.queue_before(right, left)

    # -- questions about jobs

    def job_valid(self, job: Job) -> Refusal | None:
        """None, or why the job cannot start whatever the nodes."""
        if job.beyond:
            return Refusal(NOT_ENOUGH_RESOURCES, _too_much(job))
        return folds.first_refusal(self._flat("job_valid"), job)

    def job_enqueueable(self, job: Job) -> bool:
        if job.beyond:
            self.refuse_admission(job, _too_much(job))
            return False
        return folds.vote_by_tier(self._methods["job_enqueueable"], job)

    def job_enqueued(self, job: Job) -> None:
        for method in self._flat("job_enqueued"):
            method(job)

    def job_ready(self, job: Job) -> bool:
        return folds.all_agree(self._flat("job_ready"), job)

    def job_pipelined(self, job: Job) -> bool:
        return folds.vote_by_tier(self._methods["job_pipelined"], job)

    def job_starving(self, job: Job) -> bool:
        return folds.agree_in_first_tier(self._methods["job_starving"], job) and not self.holds_back(job)

    def holds_back(self, job: Job) -> bool:
        """Whether what is left of the job waits, since it has its minimum and others are only just coming for theirs."""
        return self.gathering.goes_on and job.is_ready and self.job_ready(job)

    def sub_job_ready(self, job: Job, subjob: SubJob) -> bool:
        if not job.subjobs.has_policies:
            return self.job_ready(job)
        return folds.all_agree(self._flat("sub_job_ready"), subjob)

    def sub_job_pipelined(self, job: Job, subjob: SubJob) -> bool:
        if not job.subjobs.has_policies:
            return self.job_pipelined(job)
        return folds.vote_by_tier(self._methods["sub_job_pipelined"], subjob)

    @cached_property
    def keeps_gangs(self) -> bool:
        """Whether no job, nor part of one, starts or waits for room below its minimum: gang has the first word on it."""
        hooks = ("job_ready", "job_pipelined", "sub_job_ready", "sub_job_pipelined")
        first = (next((tier for tier in self._methods[hook] if tier), []) for hook in hooks)
        return all(any(method.__self__.name == "gang" for method in tier) for tier in first)  # type: ignore[attr-defined]

    # -- questions about queues

    def overused(self, queue: Queue) -> bool:
        return folds.anyone(self._flat("overused"), queue)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        if folds.all_agree(self._flat("allocatable"), queue, task):
            return True
        self.refused_by_queue[task.uid] = self.queue_shortfall(queue, task)
        return False

    def queue_shortfall(self, queue: Queue, task: Task) -> str:
        """Why its queue may not take the task, with numbers; empty if no plugin can tell."""
        return next((text for method in self._flat("queue_shortfall") if (text := method(queue, task))), "")

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        return folds.all_agree(self._flat("preemptive"), queue, tasks)

    # -- questions about victims

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        return folds.intersect_by_tier(self._methods["preemptable"], preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        return folds.intersect_by_tier(self._methods["reclaimable"], reclaimer, candidates)

    def evictor_kind(self, hook: str, evictor: Task) -> Hashable:
        """Equal for tasks for whose sake plugins let the same tasks go; each by itself where one of them does not tell."""
        if hook not in self._kinds:
            plugins = [method.__self__ for method in self._flat(hook)]  # type: ignore[attr-defined]
            self._kinds[hook] = [self._hook(p, "evictor_kind") if hasattr(p, "evictor_kind") else _by_itself for p in plugins]
        return tuple(kind(evictor) for kind in self._kinds[hook])

    def unified_evictable(self, context: Any, candidates: list[Task]) -> list[Task]:
        return folds.intersect_by_tier(self._methods["unified_evictable"], context, candidates)

    def victim_tasks(self, candidates: Iterable[Task]) -> list[Task]:
        return folds.union_in_first_tier(self._methods["victim_tasks"], candidates)

    # -- where

    def pre_predicate(self, task: Task) -> Refusal | None:
        return folds.first_refusal(self._flat("pre_predicate"), task)

    def evaluation(self, task: Task) -> Evaluation:
        """The up-to-date answers of all filters and scorers for a task."""
        found = self.evaluation_of(task)
        found.refresh()
        return found

    def evaluation_of(self, task: Task) -> Evaluation:
        """The same, as it was when last refreshed."""
        self.observer.turn(self, task)
        return self._evaluations.of(task)

    @property
    def has_best_node(self) -> bool:
        """Whether a plugin chooses nodes itself, so that scores do not tell where a task goes."""
        return bool(self._flat("best_node"))

    def best_node(self, task: Task, evaluation: Evaluation, candidates: Mask) -> int:
        """The row that a plugin chose, else the best by score; -1 for none."""
        for method in self._flat("best_node"):
            row = method(task, evaluation.totals(candidates))
            if row is not None:
                return int(row)
        return evaluation.best(candidates)

    def clearing(self) -> Mask:
        """Nodes that lose tasks by this very session: filters see those no more, but they keep what they have until they have gone."""
        mask = np.zeros(len(self.nodes), bool)
        mask[[eviction.task.node for eviction in self.decisions.evictions]] = True
        return mask

    def may_bind(self, task: Task, evaluation: Evaluation, clearing: Mask) -> Mask:
        """Where the task need not wait for those who leave: on nodes being cleared, only if it takes nothing but idle room."""
        return ~clearing | evaluation.fits_idle if task.template.needs_only_room else ~clearing

    # -- where, in the network

    def gradients(self, job: Job, within: HyperNode, purpose: Purpose) -> list[list[HyperNode]]:
        """Groups of HyperNodes to try for a job, the best group first. The first plugin with the hook decides."""
        method = next(iter(self._flat("hyper_node_gradient_for_job")), None)
        return method(job, within, purpose) if method else [[within]]

    def sub_gradients(self, job: Job, subjob: SubJob, within: HyperNode, purpose: Purpose) -> list[list[HyperNode]]:
        """The same for a part of a job."""
        method = next(iter(self._flat("hyper_node_gradient_for_sub_job")), None)
        return method(job, subjob, within, purpose) if method else [[within]]

    def hyper_node_scores(self, subjob: SubJob, candidates: list[HyperNode]) -> list[float]:
        """How good each HyperNode is for a part of a job."""
        answers = [method(subjob, candidates) for method in self._flat("hyper_node_order")]
        return [sum(scores) for scores in zip(*answers, strict=True)] if answers else [0.0] * len(candidates)

    # -- changes

    def statement(self) -> Statement:
        return Statement(self)

    def moved(self, task: Task, before: int) -> None:
        """Tell the plugins of a task that came to hold a place, or ceased to. Tasks of no queue are none of theirs."""
        holds = bool(task.status & status.HELD)
        if task.job is not None and task.job.queue is not None and task.job.queue.exists and holds != bool(before & status.HELD):
            for method in self._flat("on_allocate" if holds else "on_deallocate"):
                method(task)

    def ungate(self, task: Task) -> None:
        """Decide that a task's queue has room for it: once the gate is gone it may be placed."""
        if task.uid in self.decisions.ungated:
            return
        self.decisions.ungated[task.uid] = task
        for method in self._flat("on_ungate"):
            method(task)

    def undo(self, operation: Operation) -> None:
        """Put a task back where it was."""
        task, undone = operation.task, operation.task.status
        if task.status & (status.ALLOCATED | status.PIPELINED):
            self.last_try[task.uid] = LastTry(task.status, task.node_name, operation.evicted)
        self.cluster.move(task, operation.before, operation.row)
        self.moved(task, undone)

    def set_phase(self, job: Job, phase: str) -> None:
        self.phases.setdefault(job, job.phase)
        if job.is_pending and phase == INQUEUE:
            self.gathering.let_in(job)
        self.cluster.set_phase(job, phase)

    def refuse_admission(self, job: Job, why: str) -> None:
        """Say why the job is not let in: with the REJECT of the hook job_enqueueable."""
        self.not_admitted[job.uid] = why
        self.event(job, "Normal", UNSCHEDULABLE, why)

    def event(self, job: Job, kind: str, reason: str, message: str) -> None:
        self.decisions.events.append(Event(job, kind, reason, message))


def _too_much(job: Job) -> str:
    return f"minResources asks for {job.beyond}, more than a cluster can ever have"


def _by_itself(evictor: Task) -> Hashable:
    return evictor.uid
