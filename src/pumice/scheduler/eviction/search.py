"""The search of preempt and reclaim: a node where a task fits once others are gone, and that made so in a statement.

A job gets room for as many tasks as it lacks to start, or nothing is evicted. The two actions say for whom room is made, who may go,
and in which order nodes are tried.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Set

from pumice.scheduler.engine.evaluation import Evaluation
from pumice.scheduler.eviction.make_room import EvictionCandidates, EvictionDryRun, fits_now, is_worth_it, make_room, pipeline_if_it_fits
from pumice.scheduler.eviction.pick_node import Candidate, cost
from pumice.scheduler.eviction.victims import Budget, PermittedVictims, VictimCache, needed
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Operation, Statement
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.resources import EPSILON, Mask
from pumice.scheduler.model.task import Task


class Search:
    """For the tasks of one queue or job. It lives as long as who may go for them stays the same."""

    action: str

    def __init__(self, session: Session, candidates: EvictionCandidates, budget: Budget) -> None:
        self.session = session
        self.candidates = candidates
        self.budget = budget
        self.cache = VictimCache(session)

    # -- what the two differ in

    def may_evict(self, task: Task) -> bool:
        """Whether pods may be evicted for the task now."""
        raise NotImplementedError

    def evictor_class(self, task: Task) -> Hashable:
        """Equal for tasks that have the same victims."""
        raise NotImplementedError

    def victims(self, task: Task, row: int) -> list[Task]:
        """Tasks on a node that may go for this one, the least important first."""
        raise NotImplementedError

    def in_order(self, evaluation: Evaluation, feasible: Mask, hopeful: Mask) -> Iterable[int]:
        """The hopeful ones of the feasible nodes, as they are tried."""
        raise NotImplementedError

    # -- a job

    def serve(self, job: Job) -> bool:
        """Whether the job got the room that it lacks; else nothing has changed."""
        session, before = self.session, self.cache.now()
        with session.statement() as statement:
            hopeless: set[Hashable] = set()  #: classes of tasks that found nothing since the last success
            for task in in_task_order(session, job):
                if not session.job_starving(job):
                    break
                alike = task_class(session, task)
                if alike in hopeless:
                    continue
                if self.find(task, statement):
                    hopeless.clear()
                else:
                    hopeless.add(alike)
            if session.job_pipelined(job) and is_worth_it(statement, self.action):
                if self.budget.spare:
                    put_back(statement)
                statement.commit()
                return True
        self.cache.undone_to(before)
        return False

    # -- a task

    def find(self, task: Task, statement: Statement) -> bool:
        """Whether the task now waits on a node."""
        session = self.session
        if not self.may_evict(task) or session.pre_predicate(task) is not None:
            return False
        evaluation = session.evaluation(task)
        if evaluation.rejected is not None:
            return False
        if pipeline_if_it_fits(statement, task, self.action, evaluation):
            return True
        before, known = self.cache.now(), self.cache.of(self.evictor_class(task))
        feasible, hopeful = self._feasible(task, evaluation), self.candidates.rows(task) & known.hopeful(task)
        if self.try_nodes(task, statement, evaluation, self.in_order(evaluation, feasible, hopeful), known):
            return True
        self.cache.undone_to(before)
        return False

    def _feasible(self, task: Task, evaluation: Evaluation) -> Mask:
        """Nodes that evictions might open, as far as the filters go."""
        errors = self.session.fit_errors.get(task.uid)
        return evaluation.resolvable & ~errors.final if errors is not None else evaluation.resolvable

    def try_nodes(self, task: Task, statement: Statement, evaluation: Evaluation, rows: Iterable[int], known: PermittedVictims) -> bool:
        """Make room on the first node where that can be done, or where it costs least."""
        if self.budget.spare:
            return self.try_cheapest(task, statement, evaluation, rows, known)
        for row in rows:
            victims = self.victims(task, row)
            known.note(row, victims)
            evicted = make_room(statement, task, row, victims, self.action, evaluation)
            if evicted >= 0:
                statement.pipeline(task, row, evicted=evicted > 0)
                return True
        return False

    def try_cheapest(
        self,
        task: Task,
        statement: Statement,
        evaluation: Evaluation,
        rows: Iterable[int],
        known: PermittedVictims,
        *,
        without_victims: bool = True,
    ) -> bool:
        """Make room on the node, of those that are compared, whose victims cost least. `without_victims`: one that needs none will do."""
        run = EvictionDryRun(statement, task, self.action, evaluation)
        enough = self.budget.enough(len(self.session.nodes))
        found: list[Candidate] = []
        for row in rows:
            permitted = self.victims(task, row)
            known.note(row, permitted)
            victims = run.victims(row, permitted)
            if victims or (victims is not None and without_victims):
                found.append(Candidate(row, victims))
            if len(found) == enough or (found and not found[-1].victims):
                break
        if not found:
            return False
        self.session.went_by_clock = True
        best = min(found, key=lambda each: cost(each, self.session.now)) if found[-1].victims else found[-1]
        for victim in reversed(best.victims):
            statement.evict(victim, self.action, task.key)
        statement.pipeline(task, best.row, evicted=bool(best.victims))
        return True


def in_task_order(session: Session, job: Job) -> list[Task]:
    """The job's tasks that wait for a place, the most important first."""
    return sorted((task for task in job.pending.values() if not task.gated), key=session.task_key)


def task_class(session: Session, task: Task) -> Hashable:
    """Equal for tasks to whom every node and every victim looks the same: where one of them found nothing, the next will not either."""
    return session.evaluation_of(task), task.nominated, task.priority, task.zone


# Victims whom nobody needs gone any more are put back: what was cleared for one task of a gang may since have become too much.

Step = tuple[Operation, int]  #: and the row that its task waits on, if it is no eviction


def put_back(statement: Statement) -> None:
    """All that wait in the statement keep their places."""
    steps = [(operation, operation.task.node) for operation in statement.operations]
    victims = [operation for operation, _ in steps if operation.action]
    room = statement.session.nodes.future_idle
    asked = {(column, row) for operation, row in steps if not operation.action for column, _ in operation.task.template.needs}

    def has_room(victim: Operation) -> bool:
        needs = victim.task.template.needs
        return all(amount < room[column, victim.row] + EPSILON for column, amount in needs if (column, victim.row) in asked)

    doubtful = [victim for victim in victims if has_room(victim)]
    others = set(victims).difference(doubtful)
    if doubtful:
        must_go = needed(doubtful, lambda left: _retraced(statement, steps, others.union(left)))
        _retraced(statement, steps, others.union(must_go))


def _retraced(statement: Statement, steps: list[Step], victims: Set[Operation]) -> bool:
    """Do it all again with only these victims, who go first; whether all who wait find their places good."""
    session, good = statement.session, True
    statement.rollback()
    for operation, _ in steps:
        if operation in victims:
            statement.evict(operation.task, operation.action, operation.beneficiary)
    for operation, row in steps:
        if not operation.action:
            task = operation.task
            good = good and fits_now(session, task, row, session.evaluation(task))
            statement.pipeline(task, row, evicted=operation.evicted)
    return good
