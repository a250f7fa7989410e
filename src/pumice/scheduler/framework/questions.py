"""The questions of actions in a session: which job or queue is first, what it may have, which tasks are evicted, and which node is best.

A hook whose answers are folded is an attribute here, made from the open plugins (`hooks.py` names the folds). Hooks without a fold, and
questions that need more than the folded answer, are methods.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, cmp_to_key, reduce
from operator import or_
from typing import Any, cast

import numpy as np

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.framework.fit_errors import Shortage
from pumice.scheduler.framework.gathering import Gathering
from pumice.scheduler.framework.hook_answers import NOT_ENOUGH_RESOURCES, Refusal
from pumice.scheduler.framework.kept_evaluations import evaluations_for
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.framework.past_evictions import PastEvictions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.topology import Purpose
from pumice.scheduler.model import Cluster, HyperNode, Job, Mask, Queue, SubJob, Task, Vector

Key = tuple[Any, ...]
Victims = list[Task]


class Asked:
    """The hook that has the name of the attribute, with its answers folded. It is put together when a session first reads it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._hook = name

    def __get__(self, session: Questions, owner: type) -> Callable[..., Any]:
        question = session.__dict__[self._hook] = session.plugins.questions[self._hook]
        return question


def asked() -> Any:
    return Asked()


class Questions:
    """The questions of actions to plugins, as the base class of `Session`."""

    cluster: Cluster
    policy: Policy
    observer: Observer
    gathering: Gathering
    past_evictions: PastEvictions
    refused_by_queue: dict[str, str]  #: by task uid: why its queue refuses it
    shortages: dict[str, tuple[Shortage, ...]]  #: by task or job uid: the numbers behind its refusal
    changes: int  #: grows with each change that is not undone before the session closes
    refuse_admission: Callable[[Job, str], None]

    job_enqueued: Callable[[Job], None] = asked()
    job_ready: Callable[[Job], bool] = asked()
    job_pipelined: Callable[[Job], bool] = asked()
    overused: Callable[[Queue], bool] = asked()
    preemptive: Callable[[Queue, Sequence[Task]], bool] = asked()
    queue_room: Callable[[Queue], Vector | None] = asked()  #: an upper bound of what the queue may be given now; None if no plugin knows
    preemptive_room: Callable[[Queue], Vector | None] = asked()  #: an upper bound of all that tasks for which the queue evicts may request
    explain_not_allocatable: Callable[[Queue, Task], str] = asked()  #: why the queue refuses the task; empty if no plugin knows
    pre_predicate: Callable[[Task], Refusal | None] = asked()
    hyper_node_order: Callable[[SubJob, list[HyperNode]], list[float]] = asked()  #: a score of each HyperNode for a sub-job
    victim_tasks: Callable[[Iterable[Task]], Victims] = asked()
    on_gate_removed: Callable[[Task], None] = asked()

    def _ask(self, plugins: OpenPlugins) -> None:
        """Ask these plugins from now on."""
        self.plugins = plugins
        self._folded = plugins.questions
        self._refused: tuple[Task, tuple[Queue, int, int]] | None = None  #: the task that its queue refused last, and the state then
        self._kinds: dict[str, list[Callable[[Task], Hashable]]] = {}
        self._sparing: dict[str, list[list[Callable[[Task, Task], bool]]]] = {}
        self._permitting: dict[Task, list[Callable[..., Any]]] = {}  #: by victim: the methods that let it go when they were last asked
        self._evaluations = evaluations_for(self)  # type: ignore[arg-type]

    # -- orders

    def job_key(self, job: Job) -> Key:
        return (*self.job_plugin_key(job), job.created, job.uid)

    def job_plugin_key(self, job: Job) -> Key:
        """The part of a job's sort key that plugins decide, without age and name."""
        return tuple([method(job) for method in self.plugins.flat["job_order"]])

    def task_key(self, task: Task) -> Key:
        return (*[method(task) for method in self.plugins.flat["task_order"]], task.index, task.created, task.number)

    def sub_job_key(self, subjob: SubJob) -> Key:
        return (*[method(subjob) for method in self.plugins.flat["sub_job_order"]], subjob.match_index, subjob.uid)

    def queue_key(self, queue: Queue) -> Key:
        return (*[method(queue) for method in self.plugins.flat["queue_order"]], queue.created, queue.name)

    @cached_property
    def queues(self) -> list[Queue]:
        """The existing queues, the oldest first."""
        return sorted((queue for queue in self.cluster.queues.values() if queue.exists), key=lambda queue: (queue.created, queue.name))

    @property
    def queues_need_comparing(self) -> bool:
        """Whether queues cannot be ordered by a key: in a hierarchy two queues are compared where their paths part."""
        return bool(self.plugins.flat["compare_queues"])

    @property
    def compares_by_state(self) -> bool:
        """Whether queues that need comparing are compared only by the kept state, which no refused try changes."""
        plugins = [method.__self__ for method in self.plugins.flat["compare_queues"]]  # type: ignore[attr-defined]
        return all(plugin.compares_by_state for plugin in plugins)

    @cached_property
    def _queue_rules(self) -> list[tuple[str, Callable[..., Any]]]:
        rules = self.plugins.in_order("compare_queues", "queue_order")
        comparing = {method.__self__ for hook, method in rules if hook == "compare_queues"}  # type: ignore[attr-defined]
        return [(hook, method) for hook, method in rules if hook == "compare_queues" or method.__self__ not in comparing]  # type: ignore[attr-defined]

    def queue_before(self, left: Queue, right: Queue) -> bool:
        """Whether the left queue is served first. The first plugin that does not rank them equal decides, by a comparison or by keys."""
        for hook, method in self._queue_rules:
            if hook == "compare_queues":
                order = method(left, right)
            else:
                one, other = method(left), method(right)
                order = (one > other) - (one < other)
            if order:
                return bool(order < 0)
        return (left.created, left.name) < (right.created, right.name)

    def in_queue_order(self, queues: Iterable[Queue]) -> list[Queue]:
        """The queues sorted, the queue that is served first in front. Where they are compared, their order is that among all queues with
        jobs, and depends not on which of them are asked for: where branches are equal there may be circles of queues."""
        if not self.queues_need_comparing:
            return sorted(queues, key=self.queue_key)
        wanted = set(queues)

        def compare(left: Queue, right: Queue) -> int:
            return -1 if self.queue_before(left, right) else 1

        if len(wanted) < 2:
            return [*wanted]
        return [queue for queue in sorted(filter(_has_jobs, self.queues), key=cmp_to_key(compare)) if queue in wanted]

    def victim_queue_before(self, left: Queue, right: Queue, preemptor: Queue) -> bool:
        """Whether the left queue's tasks are evicted first."""
        order = self._folded["victim_queue_order"](left, right, preemptor)
        return order < 0 if order else self.queue_before(right, left)

    # -- jobs

    @cached_property
    def job_tellers(self) -> list[Callable[[Job], Hashable]]:
        """The methods `class_key` of all actions and plugins: what each of them reads of a job besides what all do."""
        actions, plugins = self.policy.actions, self.plugins.everyone
        return [*(action.class_key for action in actions), *(plugin.class_key for plugin in plugins)]

    def task_kind(self, task: Task) -> tuple[Hashable, ...]:
        """The kind of a task: equal for tasks for which filters and scorers give the same answers."""
        return self._evaluations.key(task)

    def job_valid(self, job: Job) -> Refusal | None:
        """Why the job cannot start, whatever the nodes; None if it can."""
        if job.beyond:
            return Refusal(NOT_ENOUGH_RESOURCES, _too_much(job))
        refusal: Refusal | None = self._folded["job_valid"](job)
        return refusal

    def job_enqueueable(self, job: Job) -> bool:
        if job.beyond:
            self.refuse_admission(job, _too_much(job))
            return False
        return bool(self._folded["job_enqueueable"](job))

    @cached_property
    def _admission_rooms(self) -> list[Callable[[Queue], Vector]]:
        """The methods that say how much may be let in, in the first tier that decides: it may let in whom later ones would refuse."""
        first = next(filter(None, self.plugins.tiers["job_enqueueable"]), []) if self.plugins.are_trusted else []
        plugins = [method.__self__ for method in first]  # type: ignore[attr-defined]
        return [plugin.admission_room for plugin in plugins if hasattr(plugin, "admission_room")]

    @property
    def limits_admission(self) -> bool:
        """Whether there is an upper bound of what may be let in, so that jobs outside may be at rest."""
        return self.policy.has_action("enqueue") and bool(self._admission_rooms)

    def admission_room(self, queue: Queue) -> Vector:
        """An upper bound of what a job of the queue may ask for to be let in now."""
        return reduce(np.minimum, [method(queue) for method in self._admission_rooms])

    def job_starving(self, job: Job) -> bool:
        return self._folded["job_starving"](job) and not self.holds_back(job)

    def holds_back(self, job: Job) -> bool:
        """Whether the rest of the job is held back: others who are just arriving may want the room, or it was in an eviction loop."""
        waits = self.gathering.goes_on and job.is_ready and self.job_ready(job) and self.gathering.is_wanted_by_others(job)
        return waits or bool(self.past_evictions.why_held(job))

    def sub_job_ready(self, job: Job, subjob: SubJob) -> bool:
        return bool(self._folded["sub_job_ready"](subjob)) if job.subjobs.has_policies else self.job_ready(job)

    def sub_job_pipelined(self, job: Job, subjob: SubJob) -> bool:
        return bool(self._folded["sub_job_pipelined"](subjob)) if job.subjobs.has_policies else self.job_pipelined(job)

    @cached_property
    def keeps_gangs(self) -> bool:
        """Whether no job or sub-job starts or waits for room below its minimum: the first tier that decides this has the plugin gang."""
        hooks = ("job_ready", "job_pipelined", "sub_job_ready", "sub_job_pipelined")
        first = (next((tier for tier in self.plugins.tiers[hook] if tier), []) for hook in hooks)
        return all(any(method.__self__.name == "gang" for method in tier) for tier in first)  # type: ignore[attr-defined]

    # -- queues and victims

    def allows(self, queue: Queue, task: Task) -> bool:
        """Whether the queue may have the task too. A refusal leaves no reason: it may be due to evictions that are only tried."""
        return bool(self._folded["allocatable"](queue, task))

    def allocatable(self, queue: Queue, task: Task) -> bool:
        before, position = self._refused, (queue, len(self.cluster.log), self.changes)
        if before is not None and before[1] == position and self._is_refused_like(before[0], task):
            return False
        if self.allows(queue, task):
            return True
        self.refused_by_queue[task.uid] = self.explain_not_allocatable(queue, task)
        self._refused = task, position
        return False

    def _is_refused_like(self, before: Task, task: Task) -> bool:
        """Whether the queue refuses a task as it has just refused another one of the job, which differs only in its name. Noted, if so."""
        alike = task.template is before.template and task.job is before.job and task.annotations is before.annotations
        if not (alike and not task.claims and self.plugins.are_trusted and self.policy.shortcuts):
            return False
        self.refused_by_queue[task.uid] = self.refused_by_queue[before.uid]
        self.shortages[task.uid] = self.shortages.get(before.uid, ())
        return True

    def preemptable(self, evictor: Task, candidates: Victims) -> Victims:
        return self._let_go("preemptable", evictor, candidates)

    def reclaimable(self, evictor: Task, candidates: Victims) -> Victims:
        return self._let_go("reclaimable", evictor, candidates)

    def unified_evictable(self, context: Any, candidates: Victims) -> Victims:
        return self._let_go("unified_evictable", context, candidates)

    def _let_go(self, hook: str, evictor: Any, candidates: Victims) -> Victims:
        """The victims that plugins let go. Which plugins these are is remembered."""
        victims, accepting = self._folded[hook](evictor, candidates)
        self._permitting.update(dict.fromkeys(victims, accepting))
        return cast("Victims", victims)

    def permitted_by(self, victim: Task) -> tuple[str, ...]:
        """The names of the plugins that let a victim go, when they were last asked about it."""
        return tuple(method.__self__.name for method in self._permitting.get(victim, ()))  # type: ignore[attr-defined]

    def eviction_cache_key(self, hook: str, evictor: Task) -> Hashable:
        """Equal for evictors for which plugins permit the same victims; different for each evictor if a plugin lacks this hook."""
        if hook not in self._kinds:
            plugins = [method.__self__ for method in self.plugins.flat[hook]]  # type: ignore[attr-defined]
            self._kinds[hook] = [
                self.plugins.hook(p, "eviction_cache_key") if hasattr(p, "eviction_cache_key") else _by_itself for p in plugins
            ]
        return *(kind(evictor) for kind in self._kinds[hook]), self.past_evictions.spared(evictor)

    def exposed(self, hook: str) -> set[Job]:
        """The jobs that may lose tasks in the action that begins now, by the hook that says which: in some tier all plugins expose them."""
        exposed = set[Job]()
        for named in map(self._named_by, filter(None, self.plugins.tiers[hook])):
            exposed |= set.intersection(*map(set, named)) if named else set(self.cluster.jobs.values())
        return exposed

    def exposes_any(self, hook: str) -> bool:
        """Whether any job may lose tasks now."""
        tiers = map(self._named_by, filter(None, self.plugins.tiers[hook]))
        return any(all(next(iter(jobs), None) is not None for jobs in named) for named in tiers)

    def _named_by(self, tier: list[Callable[..., Any]]) -> list[Iterable[Job]]:
        """The jobs that plugins of a tier expose, of those plugins that do not expose all."""
        if not (self.plugins.are_trusted and self.policy.shortcuts):
            return []
        answers = [method.__self__.exposes() for method in tier]  # type: ignore[attr-defined]
        return [jobs for jobs in answers if jobs is not None]

    def unspared(self, hook: str, evictor: Task, tasks: Victims) -> Victims:
        """Those of these tasks that might go now: in some tier no plugin spares them."""
        if hook not in self._sparing:
            known = self.plugins.are_trusted and self.policy.shortcuts
            tiers = filter(None, self.plugins.tiers[hook])
            self._sparing[hook] = [[method.__self__.spares for method in tier] if known else [] for tier in tiers]  # type: ignore[attr-defined]
        return [task for task in tasks if any(not any(spares(evictor, task) for spares in tier) for tier in self._sparing[hook])]

    def spared_rows(self, hook: str, evictor: Task) -> Mask | bool:
        """The nodes where certainly no task may go now for this one, True for all: in each tier some plugin spares all tasks there."""
        spared: Mask | bool = self.plugins.are_trusted and self.policy.shortcuts
        for tier in filter(None, self.plugins.tiers[hook]):
            if spared is not False:
                spared = spared & reduce(or_, [method.__self__.spares_rows(evictor) for method in tier])  # type: ignore[attr-defined]
        return spared

    # -- where

    def evaluation(self, task: Task) -> Evaluation:
        """The up-to-date answers of all filters and scorers for a task."""
        found = self.evaluation_of(task)
        found.refresh()
        return found

    def evaluation_of(self, task: Task) -> Evaluation:
        """The evaluation of a task, as it was when last refreshed."""
        self.observer.turn(task)
        return self._evaluations.of(task)

    @property
    def has_best_node(self) -> bool:
        """Whether a plugin chooses nodes itself, so that scores alone do not decide the node of a task."""
        return bool(self.plugins.flat["best_node"])

    def best_node(self, task: Task, evaluation: Evaluation, candidates: Mask) -> int:
        """The row of the node that a plugin chooses, else of the node with the best score; -1 for none."""
        if not self.has_best_node or not candidates.any():
            return evaluation.best(candidates)
        totals = evaluation.totals(candidates)
        chosen = (row for method in self.plugins.flat["best_node"] if (row := method(task, totals.copy())) is not None)
        return -1 if evaluation.rejected else int(next(chosen, totals.argmax()))

    def gradients(self, job: Job, within: HyperNode, purpose: Purpose) -> list[list[HyperNode]]:
        """Groups of HyperNodes to try for a job, the best group first. The first plugin with the hook decides."""
        method = next(iter(self.plugins.flat["hyper_node_gradient_for_job"]), None)
        return method(job, within, purpose) if method else [[within]]

    def sub_gradients(self, job: Job, subjob: SubJob, within: HyperNode, purpose: Purpose) -> list[list[HyperNode]]:
        """Groups of HyperNodes to try for a sub-job, the best group first. The first plugin with the hook decides."""
        method = next(iter(self.plugins.flat["hyper_node_gradient_for_sub_job"]), None)
        return method(job, subjob, within, purpose) if method else [[within]]


def _too_much(job: Job) -> str:
    return f"minResources asks for {job.beyond}, more than a cluster can ever have"


def _has_jobs(queue: Queue) -> bool:
    return bool(queue.jobs)


def _by_itself(evictor: Task) -> Hashable:
    return evictor.uid
