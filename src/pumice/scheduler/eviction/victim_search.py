"""The search of preempt and reclaim: find a node where a task fits once other tasks are gone, and evict these in a statement.

A job gets room for as many tasks as it lacks to start, or nothing is evicted. The two actions say for which jobs room is made, which tasks
may be evicted, and in which order nodes are tried.

Victims that need not go any more are put back: room made for one task of a gang may have become too much through later evictions.
"""

from collections.abc import Hashable, Iterable, Set
from typing import Literal

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.eviction.candidate_nodes import EvictionCandidates
from pumice.scheduler.eviction.make_room import could_fit, fits_now, is_worth_it, make_room, pipeline_if_it_fits
from pumice.scheduler.eviction.pick_node import Candidate, cost
from pumice.scheduler.eviction.topology_aware_dry_run import EvictionDryRun
from pumice.scheduler.eviction.victim_cache import PermittedVictims, VictimCache
from pumice.scheduler.eviction.victims import Budget, needed, permitted_victims
from pumice.scheduler.framework.journal import Operation
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import EPSILON, Job, Mask, Task


class Search:
    """The search for the tasks of one queue or job. It is used as long as the same tasks may be evicted for them."""

    action: str
    hook: Literal["preemptable", "reclaimable"]

    def __init__(self, session: Session, candidates: EvictionCandidates, budget: Budget) -> None:
        self.session = session
        self.candidates = candidates
        self.budget = budget
        self.cache = VictimCache(session)

    # -- what differs between preempt and reclaim

    def may_evict(self, task: Task) -> bool:
        raise NotImplementedError

    def evictor_class(self, task: Task) -> Hashable:
        """A key that is equal for tasks with the same possible victims."""
        raise NotImplementedError

    def eligible(self, task: Task, row: int) -> list[Task]:
        """Tasks on a node that may go for this one, if plugins permit it."""
        raise NotImplementedError

    def unspared(self, task: Task, row: int) -> list[Task]:
        """Those of them that plugins might let go."""
        return self.session.evictable.unspared(self.hook, task, self.eligible(task, row))

    def in_order(self, evaluation: Evaluation, feasible: Mask, hopeful: Mask) -> Iterable[int]:
        """The rows that are feasible and hopeful, in the order in which they are tried."""
        raise NotImplementedError

    # -- a job

    def serve(self, job: Job) -> bool:
        """Make room for a job. Return whether it got the room that it lacks; if not, nothing has changed."""
        session, before = self.session, self.cache.now()
        with session.statement() as statement:
            hopeless: set[Hashable] = set()  #: classes of tasks that found no node since the last success
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
        """Find a node for a task, with evictions if needed. Return whether the task is now pipelined on a node."""
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
        """The nodes that evictions might open: no filter refuses them for a reason that is final."""
        errors = self.session.fit_errors.get(task.uid)
        return evaluation.resolvable & ~errors.final if errors is not None else evaluation.resolvable

    def try_nodes(self, task: Task, statement: Statement, evaluation: Evaluation, rows: Iterable[int], known: PermittedVictims) -> bool:
        """Make room on the first node where that is possible, or with `spareVictims` where it costs least. Return whether room was made."""
        if self.budget.spare:
            return self.try_cheapest(task, statement, evaluation, rows, known)
        for row in rows:
            victims = self.victims(task, row, known)
            evicted = -1 if victims is None else make_room(statement, task, row, victims, self.action, evaluation)
            if evicted >= 0:
                statement.pipeline(task, row, evicted=evicted > 0)
                return True
        return False

    def victims(self, task: Task, row: int, known: PermittedVictims) -> list[Task] | None:
        """Tasks on a node that may go for this one, the least important first. None, without asking all that plugins know, if there is too
        little room even when all are gone that might go."""
        victims = self.unspared(task, row)
        is_enough = could_fit(self.session, task, row, victims)
        if victims and is_enough:
            victims = permitted_victims(self.session, task, self.eligible(task, row), self.hook)
        known.note(row, victims)
        return victims if is_enough else None

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
        """Make room on that of the compared nodes whose victims cost least. `without_victims`: one that needs no eviction may be taken."""
        run = EvictionDryRun(statement, task, self.action, evaluation)
        enough = self.budget.enough(len(self.session.nodes))
        found: list[Candidate] = []
        for row in rows:
            permitted = self.victims(task, row, known)
            victims = None if permitted is None else run.victims(row, permitted)
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
    """The job's pending tasks without gates, the most important first."""
    return sorted((task for task in job.pending.values() if not task.gated), key=session.orders.task_key)


def task_class(session: Session, task: Task) -> Hashable:
    """A key that is equal for tasks with the same answers about every node and victim: if one found no node, the next will not either."""
    return session.task_kind(task), task.nominated, task.priority, task.zone


Step = tuple[Operation, int]  #: an operation, and the row on which its task is pipelined if it is no eviction


def put_back(statement: Statement) -> None:
    """Put back the victims of a statement that need not go. All tasks that are pipelined in it keep their nodes."""
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
    """Repeat the statement with only these victims, which go first. Return whether all pipelined tasks still fit on their nodes."""
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
