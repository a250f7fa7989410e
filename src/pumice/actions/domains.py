"""Placing a job in parts, or within a limit of the network topology.

HyperNodes are tried in groups, the best group first: for the job, and within the job's for each part. A try is a dry run on the
session's state, undone exactly; of the HyperNodes of a group that do, the one with the highest score is taken and its moves are
made again. HyperNodes that a gang eviction has cleared for the job come before all others.
"""

from __future__ import annotations

from typing import NamedTuple

from pumice.actions.placing import Placing
from pumice.actions.worksheet import Parts, Worksheet
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.framework.topology import Purpose
from pumice.model import status
from pumice.model.hypernodes import HyperNode
from pumice.model.job import Job
from pumice.model.queue import Queue
from pumice.model.resources import Mask
from pumice.model.subjob import SubJob
from pumice.model.task import Task

Choice = tuple[SubJob, HyperNode]
Move = tuple[Task, int, bool]  #: task, row, and whether it waits there for room


class PartTrial(NamedTuple):
    """A part of a job placed in one HyperNode."""

    domain: HyperNode
    moves: list[Move]
    rest: Worksheet  #: what is left of it


class JobTrial(NamedTuple):
    """A job placed in one HyperNode."""

    score: float
    moves: list[Move]
    choices: list[Choice]  #: where its parts went
    rest: Parts  #: what is left of it


class Domains:
    """See the module. Lives for one action."""

    def __init__(self, session: Session, placing: Placing) -> None:
        self.session = session
        self.placing = placing
        self.topology = session.topology

    def place(self, queue: Queue, parts: Parts, statement: Statement) -> list[Choice]:
        """Place what the job needs to be ready, or else to wait for room; where its parts went, nothing if there is no way."""
        return self._nominated(queue, parts, statement) or self._searched(queue, parts, statement)

    def _will_do(self, job: Job) -> bool:
        return self.session.job_ready(job) or self.session.job_pipelined(job)

    # -- a job

    def _searched(self, queue: Queue, parts: Parts, statement: Statement) -> list[Choice]:
        for group in self.session.gradients(parts.job, self.topology.tree.root, Purpose.ALLOCATE):
            trials = [trial for domain in group if (trial := self._try(queue, parts, domain, statement)) is not None]
            if trials:
                best = max(trials, key=lambda trial: trial.score)
                _make(statement, best.moves)
                parts.take(best.rest)
                return best.choices
        return []

    def _try(self, queue: Queue, parts: Parts, domain: HyperNode, statement: Statement) -> JobTrial | None:
        job, rest, mark = parts.job, parts.copy(), statement.mark()
        before = [(part, part.allocated_hypernode) for part in job.subjobs]
        score = 0.0
        choices: list[Choice] = []
        while rest:
            part, sheet = rest.pop()
            placed = self._place_part(queue, part, sheet, domain, statement)
            if placed is None:
                continue
            choices.append((part, placed[0]))
            score += placed[1]
            self.topology.enter(part, placed[0])
            if sheet:
                rest.push(part)
            if self.session.job_ready(job):
                break
        moves = _moves(statement, mark) if self._will_do(job) else []
        statement.rollback(mark)
        for part, name in before:
            part.allocated_hypernode = name
        return JobTrial(score, moves, choices, rest) if moves else None

    # -- a part of a job

    def _place_part(
        self, queue: Queue, part: SubJob, sheet: Worksheet, within: HyperNode, statement: Statement
    ) -> tuple[HyperNode, float] | None:
        """Place a part in the best HyperNode below the given one, and say which and how good it is."""
        for group in self.session.sub_gradients(sheet.job, part, within, Purpose.ALLOCATE):
            trials = [trial for domain in group if (trial := self._try_part(queue, part, sheet, domain, statement)) is not None]
            if trials:
                scores = self.session.hyper_node_scores(part, [trial.domain for trial in trials])
                best = trials[scores.index(max(scores))]
                _make(statement, best.moves)
                sheet.tasks = best.rest.tasks
                return best.domain, max(scores)
        return None

    def _try_part(self, queue: Queue, part: SubJob, sheet: Worksheet, domain: HyperNode, statement: Statement) -> PartTrial | None:
        session, job, rest, mark = self.session, sheet.job, sheet.copy(), statement.mark()
        session.failed_roles.pop(part.uid, None)
        for task in rest.tasks:
            session.fit_errors.pop(task.uid, None)
        self.placing.place(queue, rest, statement, part, self._rows(domain))
        does = session.sub_job_ready(job, part) or session.sub_job_pipelined(job, part)
        moves = _moves(statement, mark) if does else []
        statement.rollback(mark)
        return PartTrial(domain, moves, rest) if moves else None

    def _rows(self, domain: HyperNode) -> Mask | None:
        return None if domain is self.topology.tree.root else domain.rows

    # -- what was cleared for it

    def _nominated(self, queue: Queue, parts: Parts, statement: Statement) -> list[Choice]:
        """Place every part on the nodes nominated for its tasks. Nominations that do not hold are forgotten."""
        job = parts.job
        if not job.nominated_hypernodes:
            return []
        rest, mark = parts.copy(), statement.mark()
        choices: list[Choice] = []
        while rest:
            part, sheet = rest.pop()
            domain = self.topology.tree.by_name.get(job.nominated_hypernodes.get(part.uid, ""))
            if domain is None or not all(self.placing.place_nominated(queue, t, statement, domain.rows) for t in reversed(sheet.tasks)):
                break
            choices.append((part, domain))
            if self._will_do(job):
                parts.take(rest)
                return choices
        statement.rollback(mark)
        job.nominated_hypernodes.clear()
        return []


def _moves(statement: Statement, mark: int) -> list[Move]:
    return [(op.task, op.task.node, op.task.status == status.PIPELINED) for op in statement.operations[mark:]]


def _make(statement: Statement, moves: list[Move]) -> None:
    """Do again what a trial did."""
    for task, row, waits in moves:
        if waits:
            statement.pipeline(task, row)
        else:
            statement.allocate(task, row)
