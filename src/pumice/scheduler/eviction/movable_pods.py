"""Which running pods may be moved: ended where they run, and started anew elsewhere by their controller. And what that costs.

A pod whose gang has pods to spare moves alone; else its whole gang moves (`MovableUnit`). How many pods may go together is limited by gangs
and their roles, by PodDisruptionBudgets and by the action's arguments: each unit is charged to all the limits that concern it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from math import inf

from msgspec import Struct, field

from pumice.api.annotations import STAYS
from pumice.api.times import Duration
from pumice.scheduler.eviction.disruption_budgets import BudgetsByNamespace
from pumice.scheduler.framework.eviction_cost import at_risk_s, gpus
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Task, status
from pumice.scheduler.model.task import TRUE_WORDS

HOUR_S = 3600.0
ON_THEIR_NODE = ("DaemonSet", "Node", "Pod")  #: owners that make no new pod, or make it for the same node


class MoveRules(Struct, kw_only=True):
    """The arguments that say which pods may be moved, and how many. 0 stands for no limit."""

    moves_per_cycle: int = field(name="movesPerCycle", default=64)
    moves_per_hour: int = field(name="movesPerHour", default=0)
    moves_per_owner: int = field(name="movesPerOwner", default=0)  #: pods of one job in an hour
    minimum_run_time: Duration = field(name="minimumRunTime", default=Duration(300))
    maximum_lost_work: Duration = field(name="maximumLostWork", default=Duration(3600))  #: a pod that would lose more is not moved
    quiet_period: Duration = field(name="quietPeriod", default=Duration(1800))  #: for so long a pod is not moved again
    protected_queues: list[str] = field(name="protectedQueues", default_factory=list)
    protected_namespaces: list[str] = field(name="protectedNamespaces", default_factory=list)
    protected_annotation: str = field(name="protectedAnnotation", default=STAYS)  #: pods and PodGroups with it are not moved


class MovableUnit(Struct, frozen=True, eq=False):
    """Pods that move together: one pod, or all of a gang."""

    tasks: tuple[Task, ...]
    charges: Mapping[Hashable, int]  #: by limit: how much of it the unit uses up
    lost: tuple[float, float]  #: work that must be repeated, in seconds of GPUs and of pods
    priority: int  #: the sum of the pods' priorities


class PastMoves(Struct, frozen=True):
    """When pods of which job were moved in the last hour, or in the quiet period if that is longer."""

    moved: tuple[tuple[float, str], ...] = ()  #: time and uid of the job, for each pod

    def noting(self, now: float, tasks: list[Task], rules: MoveRules) -> PastMoves:
        after = now - max(HOUR_S, rules.quiet_period)
        fresh = ((now, task.job.uid) for task in tasks if task.job is not None)
        return PastMoves((*(each for each in self.moved if each[0] > after), *fresh))

    def count(self, after: float, job: str = "") -> int:
        return sum(at > after and job in ("", uid) for at, uid in self.moved)

    def last(self) -> dict[str, float]:
        """By job: when pods of it were last moved."""
        return {uid: at for at, uid in sorted(self.moved)}


class Movable:
    """The pods that may be moved for a job (or for no job in particular), in the present state of the session."""

    def __init__(self, session: Session, rules: MoveRules, past: PastMoves, beneficiary: Job | None = None) -> None:
        self._session = session
        self._rules = rules
        self._past = past
        self._last = past.last()
        self._least_s, self._quiet_s = rules.minimum_run_time, rules.quiet_period
        self._most_lost_s = rules.maximum_lost_work or inf
        self._beneficiary = beneficiary
        self._spared = (
            session.past_evictions.spared(next(iter(beneficiary.pending.values()))) if beneficiary is not None else frozenset[str]()
        )
        self._units: dict[Task, MovableUnit | None] = {}
        self._alone: dict[Job, bool] = {}
        self._budgets = BudgetsByNamespace(session.cluster)
        self.allowed: dict[Hashable, int] = {}  #: by limit: how much of it is left
        for eviction in session.decisions.evictions:
            for budget in self._budgets.charged(eviction.task):
                self.allowed[budget] = self.allowed.get(budget, budget.allowed) - 1

    def most(self, in_this_cycle: int) -> int:
        """How many pods may still be moved. `in_this_cycle`: how many the session has moved already."""
        rules, left = self._rules, 10**9
        if rules.moves_per_cycle:
            left = rules.moves_per_cycle - in_this_cycle
        if rules.moves_per_hour:
            left = min(left, rules.moves_per_hour - self._past.count(self._session.now - HOUR_S))
        return left

    def unit(self, task: Task) -> MovableUnit | None:
        """The pods that move if this one does; None if it may not be moved."""
        if task not in self._units:
            job = task.job
            if job is None or not self._may_lose(job):
                self._units[task] = None
            elif self._goes_alone(job):
                self._units[task] = self._made((task,), job) if self._may_move(task) else None
            else:
                gang = tuple(each for each in job.tasks.values() if each.status & status.ALLOCATED_ALL)
                whole = self._made(gang, job) if all(map(self._may_move, gang)) else None
                self._units |= dict.fromkeys(gang, whole)
                self._units.setdefault(task, None)
        return self._units[task]

    # -- whether

    def _may_lose(self, job: Job) -> bool:
        """Whether pods of the job may be moved, as far as the job is concerned."""
        rules = self._rules
        if not job.has_stored_group or job is self._beneficiary or job.queue is None or not job.queue.exists:
            return False
        if job.never_preempted or job.uid in self._spared or job.queue.name in rules.protected_queues:
            return False
        if job.annotations.get(rules.protected_annotation) in TRUE_WORDS or job.namespace in rules.protected_namespaces:
            return False
        return job.is_ready and (job.has_one_part or not job.asks_for_topology)

    def _may_move(self, task: Task) -> bool:
        session, template, job = self._session, task.template, task.job
        assert job is not None and job.group is not None
        if task.status != status.RUNNING or task.deleting or not task.preemptable or template.is_critical:
            return False
        if (
            template.scheduler_name not in session.cluster.schedulers
            or dict(task.annotations).get(self._rules.protected_annotation) in TRUE_WORDS
        ):
            return False
        if not _is_made_anew(task, job) or max(0.0, self._session.now - _since(task)) < self._least_s:
            return False
        return self._lost_s(task) <= self._most_lost_s and not self._is_quiet(task, job)

    def _lost_s(self, task: Task) -> float:
        """Seconds of work that a pod would have to repeat. Pods of services have none: they only start again."""
        return 0.0 if task.controller else at_risk_s(task, self._session.now)

    def _is_quiet(self, task: Task, job: Job) -> bool:
        last = self._last.get(job.uid)
        return last is not None and last <= _since(task) and self._session.now < last + self._quiet_s

    # -- with whom, and at what cost

    def _goes_alone(self, job: Job) -> bool:
        if job not in self._alone:
            self._alone[job] = job.ready_count > job.min_member and job.has_one_part
            self.allowed["gang", job.uid] = job.ready_count - job.min_member
            held = job.allocated_by_role if job.role_minimum else {}
            for role, least in job.role_minimum.items():
                self.allowed["role", job.uid, role] = held.get(role, 0) - least
            if self._rules.moves_per_owner:
                self.allowed["owner", job.uid] = self._rules.moves_per_owner - self._past.count(self._session.now - HOUR_S, job.uid)
        return self._alone[job]

    def _made(self, tasks: tuple[Task, ...], job: Job) -> MovableUnit:
        dimensions = self._session.cluster.dimensions
        charges: dict[Hashable, int] = {}

        def charge(limit: Hashable) -> None:
            charges[limit] = charges.get(limit, 0) + 1

        for task in tasks:
            for budget in self._budgets.charged(task):
                self.allowed.setdefault(budget, budget.allowed)
                charge(budget)
            if self._alone[job]:
                charge(("gang", job.uid))
                if task.role in job.role_minimum:
                    charge(("role", job.uid, task.role))
            if self._rules.moves_per_owner:
                charge(("owner", job.uid))
        lost = [self._lost_s(task) for task in tasks]
        of_gpus = sum(risk * gpus(task, dimensions) for risk, task in zip(lost, tasks, strict=True))
        return MovableUnit(tasks, charges, (of_gpus, sum(lost)), sum(task.pod_priority for task in tasks))


def _since(task: Task) -> float:
    """When the pod came to its node, as far as that is known."""
    return task.started or task.placed_at or task.created


def _is_made_anew(task: Task, job: Job) -> bool:
    """Whether a controller makes a new pod in place of an evicted one."""
    owner = job.group.metadata.controller if job.group is not None else None
    kind = task.owner.partition("/")[0] or (owner.kind if owner is not None else "")
    return bool(kind) and kind not in ON_THEIR_NODE
