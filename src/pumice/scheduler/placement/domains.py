"""Placing a job in parts, or within a limit of the network topology.

HyperNodes are tried in groups, the best group first: for the job, then within the job's HyperNode for each part. In a group they are tried
by falling score, and the first that holds the job or the part is taken. A job in parts has a score only when all its parts are placed: so
several HyperNodes are tried for it, each trial is undone exactly, and the moves of the best trial are made again. HyperNodes that a gang
eviction has cleared for the job come before all others.
"""

from collections.abc import Iterator

from msgspec import Struct

from pumice.scheduler.framework.network_topology import Purpose
from pumice.scheduler.framework.session import Session
from pumice.scheduler.framework.statement import Statement
from pumice.scheduler.model import HyperNode, Job, Mask, Queue, SubJob, Task, status
from pumice.scheduler.placement.pending_tasks import PendingParts, PendingTasks
from pumice.scheduler.placement.place_tasks import TaskPlacer
from pumice.scheduler.placement.room_bound import NoDomain, RoomBound, missing, shortage, strayed

MOST_TRIED = 8  #: HyperNodes of one group that are tried for a job in parts

Choice = tuple[SubJob, HyperNode]
Move = tuple[Task, int, bool]  #: task, row, and whether the task is pipelined there (not allocated)


class DomainTrial(Struct, frozen=True):
    """The outcome of placing a job in one HyperNode."""

    score: float
    moves: list[Move]
    choices: list[Choice]  #: the parts that were placed, each with its HyperNode
    rest: PendingParts  #: the parts and tasks that are left


class Domains:
    """The search for a HyperNode that holds a job, or a part of one. Lives for one action."""

    def __init__(self, session: Session, placing: TaskPlacer) -> None:
        self.session = session
        self.placing = placing
        self.topology = session.topology

    def place(self, queue: Queue, parts: PendingParts, statement: Statement) -> list[Choice]:
        """Place what the job needs to be ready, or else pipelined. Return the placed parts with their HyperNodes; empty if impossible."""
        return self._nominated(queue, parts, statement) or self._searched(queue, parts, statement)

    def _will_do(self, job: Job) -> bool:
        return self.session.job_ready(job) or self.session.job_pipelined(job)

    # -- a job

    def _searched(self, queue: Queue, parts: PendingParts, statement: Statement) -> list[Choice]:
        job = parts.job
        room_bound, least = RoomBound(self.session, parts.tasks), missing(self.session, job)
        groups = self.session.gradients(job, self.topology.tree.root, Purpose.ALLOCATE)
        hopeful = [[domain for domain in group if room_bound.most(domain) >= least] for group in groups]
        if not any(hopeful):
            hopeful = [group[-1:] for group in groups[-1:]]  # one that is tried only to learn why nodes refuse
        for group in hopeful:
            if (trial := self._best(queue, parts, group, statement)) is not None:
                parts.take(trial.rest)
                return trial.choices
        self._complain(parts)
        return []

    def _complain(self, parts: PendingParts) -> None:
        """Record why the job was not placed, if no node refused any task because no node was asked."""
        errors = self.session.fit_errors
        if any(task.uid in errors for task in parts.tasks):
            return
        job, (part, pending) = parts.job, parts.copy().pop()
        given = (
            (self.topology.sub_occupied(job, part), self.topology.sub_limit(job, part)),
            (self.topology.occupied(job), self.topology.limit(job)),
        )
        limits = [(occupied, limit) for occupied, limit in given if limit is not None]
        reasons = [
            *(strayed(occupied, limit) for occupied, limit in limits),
            *(shortage(self.session, pending.tasks, limit) for _, limit in limits[:1]),
        ]
        why = next(filter(None, reasons), "")
        if why:
            errors[pending.tasks[-1].uid] = NoDomain(self.session, why)

    def _best(self, queue: Queue, parts: PendingParts, group: list[HyperNode], statement: Statement) -> DomainTrial | None:
        """Place the job in the HyperNode of a group that scores best; None if no HyperNode of the group holds it."""
        if parts.job.has_one_part:
            ranked = self._ranked(next(iter(parts.job.subjobs)), group)
            trials = (self._try(queue, parts, domain, statement) for domain, _ in ranked)
            return next((trial for trial in trials if trial is not None), None)
        mark = statement.mark()
        best: DomainTrial | None = None
        for domain in self._likeliest(parts.job, group):
            trial = self._try(queue, parts, domain, statement)
            if trial is not None and (best is None or trial.score > best.score):
                best = trial
            statement.rollback(mark)
        for task, row, waits in best.moves if best is not None else ():
            if waits:
                statement.pipeline(task, row)
            else:
                statement.allocate(task, row)
        return best

    def _likeliest(self, job: Job, group: list[HyperNode]) -> list[HyperNode]:
        """The HyperNodes of a group to try for a job in parts: all, or of many those with the highest sum of the scores of its parts."""
        if len(group) <= MOST_TRIED:
            return group
        scores = [self.session.hyper_node_order(part, group) for part in job.subjobs]
        order = sorted(range(len(group)), key=lambda number: sum(score[number] for score in scores), reverse=True)
        return [group[number] for number in order[:MOST_TRIED]]

    def _try(self, queue: Queue, parts: PendingParts, domain: HyperNode, statement: Statement) -> DomainTrial | None:
        """Place a job within a HyperNode. None, and all is undone, if it does not get what it needs."""
        job, rest, mark = parts.job, parts.copy(), statement.mark()
        before = [(part, part.allocated_hypernode) for part in job.subjobs]
        score = 0.0
        choices: list[Choice] = []
        while rest:
            part, pending = rest.pop()
            placed = self._place_part(queue, part, pending, domain, statement)
            if placed is None:
                continue
            choices.append((part, placed[0]))
            score += placed[1]
            self.topology.enter(part, placed[0])
            if pending:
                rest.push(part)
            if self.session.job_ready(job):
                break
        for part, name in before:
            part.allocated_hypernode = name
        if choices and self._will_do(job):
            moves = [(op.task, op.task.node, op.task.status == status.PIPELINED) for op in statement.operations[mark:]]
            return DomainTrial(score, moves, choices, rest)
        statement.rollback(mark)
        return None

    # -- a part of a job

    def _place_part(
        self, queue: Queue, part: SubJob, pending: PendingTasks, within: HyperNode, statement: Statement
    ) -> tuple[HyperNode, float] | None:
        """Place a part in the best HyperNode within the given one. Return that HyperNode and its score; None if none holds the part."""
        job, mark = pending.job, statement.mark()
        for group in self.session.sub_gradients(job, part, within, Purpose.ALLOCATE):
            for domain, score in self._ranked(part, self._hopeful(part, pending, group)):
                rest = pending.copy()
                self._forget_errors(part, rest)
                self.placing.place(queue, rest, statement, part, self._rows(domain))
                if statement.mark() > mark and self._part_will_do(job, part):
                    pending.tasks = rest.tasks
                    return domain, score
                statement.rollback(mark)
        return None

    def _hopeful(self, part: SubJob, pending: PendingTasks, group: list[HyperNode]) -> list[HyperNode]:
        if len(group) == 1:
            return group
        room_bound, least = RoomBound(self.session, pending.tasks), missing(self.session, pending.job, part)
        return [domain for domain in group if room_bound.most(domain) >= least]

    def _ranked(self, part: SubJob, group: list[HyperNode]) -> Iterator[tuple[HyperNode, float]]:
        """The HyperNodes with their scores, the best first. Those already taken have failed, so ties are scored again among the others."""
        left = list(group)
        scores = self.session.hyper_node_order(part, left) if left else []
        while left:
            number = scores.index(max(scores))
            yield left.pop(number), scores.pop(number)
            if len(left) > 1 and scores.count(max(scores)) > 1:
                scores = self.session.hyper_node_order(part, left)

    def _part_will_do(self, job: Job, part: SubJob) -> bool:
        return self.session.sub_job_ready(job, part) or self.session.sub_job_pipelined(job, part)

    def _forget_errors(self, part: SubJob, pending: PendingTasks) -> None:
        self.session.failed_roles.pop(part.uid, None)
        for task in pending.tasks:
            self.session.fit_errors.pop(task.uid, None)

    def _rows(self, domain: HyperNode) -> Mask | None:
        return None if domain is self.topology.tree.root else domain.rows

    # -- HyperNodes that were cleared for the job

    def _nominated(self, queue: Queue, parts: PendingParts, statement: Statement) -> list[Choice]:
        """Place parts on the nodes nominated for their tasks until the job has what it needs. If that fails, drop its nominations."""
        job = parts.job
        if not job.nominated_hypernodes:
            return []
        rest, mark = parts.copy(), statement.mark()
        choices: list[Choice] = []
        while rest:
            part, pending = rest.pop()
            domain = self.topology.tree.by_name.get(job.nominated_hypernodes.get(part.uid, ""))
            if domain is None or not all(self.placing.place_nominated(queue, t, statement, domain.rows) for t in reversed(pending.tasks)):
                break
            choices.append((part, domain))
            if self._will_do(job):
                parts.take(rest)
                return choices
        statement.rollback(mark)
        job.nominated_hypernodes = {}
        self.session.cluster.revision += 1
        return []
