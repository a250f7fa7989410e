"""Placing the tasks of a job, or of a part of it, one after the other, until it is ready.

Equal tasks in a row are planned together. Within a HyperNode only its nodes count. On nodes where an earlier action of the session evicts
tasks, tasks that need more than room are pipelined until the evicted ones have left.
"""

from collections.abc import Iterator

from pumice.scheduler.engine import Evaluation, Reason
from pumice.scheduler.engine.plan_equal_tasks import plan
from pumice.scheduler.engine.view import any_of
from pumice.scheduler.framework.fit_errors import FitErrors, everywhere, explain
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import Job, Mask, Queue, SubJob, Task
from pumice.scheduler.placement.pending_tasks import PendingTasks

MIN_RUN = 4  #: shorter runs of equal tasks are placed one by one


class TaskPlacer:
    """The search for nodes for tasks. One for each action that places."""

    def __init__(self, session: Session, *, cache_errors: bool) -> None:
        self.session = session
        self.cluster = session.cluster
        self._cache_errors = cache_errors
        self._clearing = session.clearing()
        self._clears = bool(self._clearing.any())
        self._plan: tuple[Evaluation, Mask | None, Iterator[int], int] | None = None

    def place(
        self, queue: Queue, pending: PendingTasks, statement: Statement, part: SubJob | None = None, within: Mask | None = None
    ) -> bool:
        """Place pending tasks until the job (or the part of it) is ready, or can no longer become ready. Return whether the last
        task made it ready."""
        session, job = self.session, pending.job
        uid = job.uid if part is None else part.uid
        while pending:
            task = pending.pop()
            fits_somewhere = not task.template.beyond  # if not, the refusal follows below
            if fits_somewhere and not session.allocatable(queue, task):
                continue
            if fits_somewhere and task.gated:
                session.ungate(task)
                continue
            if task.role and self._cache_errors and task.role in session.failed_roles.get(uid, ()):
                continue
            errors = self._place_task(task, pending, statement, within)
            if errors is not None:
                session.fit_errors[task.uid] = errors
                if task.role:
                    session.failed_roles.setdefault(uid, set()).add(task.role)
                if not self._worth_continuing(job, part):
                    return False
            elif session.job_ready(job) if part is None else session.sub_job_ready(job, part):
                return True
        return False

    def place_nominated(self, queue: Queue, task: Task, statement: Statement, within: Mask) -> bool:
        """Place a task on its nominated node, if that is among the rows `within`. Return whether it was possible."""
        row = self.session.nodes.rows.get(task.nominated, -1)
        if row < 0 or not within[row] or not self.session.allocatable(queue, task) or self.session.pre_predicate(task) is not None:
            return False
        evaluation = self.session.evaluation(task)
        if evaluation.rejected is not None or not (evaluation.admitted[row] and evaluation.fits_future[row]):
            return False
        self._take(task, row, evaluation, statement)
        return True

    def _place_task(self, task: Task, pending: PendingTasks, statement: Statement, within: Mask | None) -> FitErrors | None:
        evaluation = self.session.evaluation_of(task)
        refusal = evaluation.rejected
        if refusal is None and (stopped := self.session.pre_predicate(task)) is not None:
            refusal = Reason(stopped.message)
        if refusal is not None:
            return everywhere(evaluation, refusal)
        row = -1 if task.nominated else self._planned(evaluation, within)
        if row < 0 and within is None:
            row = self._best_of_all(task, pending, evaluation)
        if row >= 0:
            statement.allocate(task, row)
            return None
        evaluation.refresh()
        feasible = evaluation.admitted & evaluation.fits_future
        if within is not None:
            feasible &= within
        row = self._nominated(task, feasible)
        if row < 0:
            row = self._search(task, pending, evaluation, feasible, within)
        if row < 0:
            return evaluation.remember(explain) if within is None else explain(evaluation, within)
        self._take(task, row, evaluation, statement)
        return None

    def _best_of_all(self, task: Task, pending: PendingTasks, evaluation: Evaluation) -> int:
        """The row of the best node, if it is known without finding all candidates; else -1."""
        chosen = task.nominated or self._clears or self.session.has_best_node
        return -1 if chosen or pending.run_length(task, MIN_RUN) == MIN_RUN else evaluation.best_of_all()

    def _take(self, task: Task, row: int, evaluation: Evaluation, statement: Statement) -> None:
        if evaluation.fits_idle[row] and not (self._clears and not self.session.may_bind(task, evaluation, self._clearing)[row]):
            statement.allocate(task, row)
        else:
            statement.pipeline(task, row)

    def _nominated(self, task: Task, feasible: Mask) -> int:
        row = self.session.nodes.rows.get(task.nominated, -1) if task.nominated else -1
        return row if row >= 0 and feasible[row] else -1

    def _search(self, task: Task, pending: PendingTasks, evaluation: Evaluation, feasible: Mask, within: Mask | None) -> int:
        idle = feasible & evaluation.fits_idle
        if self._clears:
            idle &= self.session.may_bind(task, evaluation, self._clearing)
        if not any_of(idle):
            return self.session.best_node(task, evaluation, feasible)
        is_run = pending.run_length(task, MIN_RUN) == MIN_RUN and self.session.policy.shortcuts
        if is_run and evaluation.steady_among(idle) and not self.session.has_best_node:
            rows = plan(evaluation, idle, pending.run_length(task))
            self._plan = (evaluation, within, rows, len(self.cluster.log))
            return next(rows)
        return self.session.best_node(task, evaluation, idle)

    def _planned(self, evaluation: Evaluation, within: Mask | None) -> int:
        """The next row of the plan, if only the plan's own placements have happened since it was made; else -1."""
        if self._plan is None:
            return -1
        planned, domain, rows, position = self._plan
        if planned is not evaluation or domain is not within or len(self.cluster.log) != position + 1:
            self._plan = None
            return -1
        self._plan = (planned, domain, rows, position + 1)
        return next(rows, -1)

    def _worth_continuing(self, job: Job, subjob: SubJob | None) -> bool:
        """Whether the gang may still become ready by its other tasks, after one task found no node."""
        if job.min_member == len(job.tasks) or (subjob or job).min_member >= len((subjob or job).tasks):
            return False
        if job.subjobs.has_policies:
            return True
        failed = self.session.failed_roles.get(job.uid if subjob is None else subjob.uid, set())
        if job.min_member < job.role_minimum_total:
            return job.ready_count + sum(task.role not in failed for task in job.pending.values()) >= job.min_member
        allocated = job.allocated_by_role
        return all(allocated.get(role, 0) >= job.role_minimum.get(role, 0) for role in failed)
