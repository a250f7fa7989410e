"""The questions of actions in a session: what a job or queue may have, and which node is best for a task.

A hook whose answers are folded is an attribute here, made from the open plugins (`hooks.py` names the folds). Hooks without a fold, and
questions that need more than the folded answer, are methods. Who is first is in `orders.py`, who may be evicted in `evictable_tasks.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.engine.view import any_of
from pumice.scheduler.framework.evictable_tasks import EvictableTasks
from pumice.scheduler.framework.gathering import Gathering
from pumice.scheduler.framework.hook_answers import NOT_ENOUGH_RESOURCES, Refusal
from pumice.scheduler.framework.kept_evaluations import evaluations_for
from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.framework.orders import Orders
from pumice.scheduler.framework.past_evictions import PastEvictions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session_notes import SessionNotes
from pumice.scheduler.model import Cluster, HyperNode, Job, Mask, Queue, SubJob, Task, Vector


class FoldedHook:
    """The hook that has the name of the attribute, with its answers folded. It is put together when a session first reads it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._hook = name

    def __get__(self, session: Questions, owner: type) -> Callable[..., Any]:
        question = session.__dict__[self._hook] = session.plugins.questions[self._hook]
        return question


def asked() -> Any:
    return FoldedHook()


class Questions(SessionNotes):
    """The questions of actions to plugins, as the base class of `Session`."""

    cluster: Cluster
    policy: Policy
    observer: Observer
    gathering: Gathering
    past_evictions: PastEvictions
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
    victim_tasks: Callable[[Iterable[Task]], list[Task]] = asked()
    on_gate_removed: Callable[[Task], None] = asked()

    def _ask(self, plugins: OpenPlugins) -> None:
        """Ask these plugins from now on."""
        self.plugins = plugins
        self._folded = plugins.questions
        self.orders = Orders(self.cluster, plugins)
        self.evictable = EvictableTasks(self.cluster, plugins, self.past_evictions, shortcuts=self.policy.shortcuts)
        # for actions of others, as docs/plugins.md has them
        self.job_key, self.task_key, self.queue_key = self.orders.job_key, self.orders.task_key, self.orders.queue_key
        self.preemptable = partial(self.evictable.permitted, "preemptable")
        self.reclaimable = partial(self.evictable.permitted, "reclaimable")
        self.unified_evictable = partial(self.evictable.permitted, "unified_evictable")
        self._refused: tuple[Task, tuple[Queue, int, int]] | None = None  #: the task that its queue refused last, and the state then
        self._evaluations = evaluations_for(self)  # type: ignore[arg-type]

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
        if not self.has_best_node or not any_of(candidates):
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
