"""Placing a job in parts, or within a limit of the network topology.

HyperNodes are tried in groups, the best group first: for the job, and within the job's for each part. In a group the first that
does is taken, from the highest score down. Only for a job in parts, whose score is known when all its parts are placed, every
HyperNode is tried, each time undone exactly, and the moves of the best are made again. HyperNodes that a gang eviction has cleared
for the job come before all others.
"""

from __future__ import annotations

from collections.abc import Iterator
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


class Trial(NamedTuple):
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
        job = parts.job
        for group in self.session.gradients(job, self.topology.tree.root, Purpose.ALLOCATE):
            if job.has_one_part:
                for domain, _ in self._ranked(next(iter(job.subjobs)), group):
                    if (trial := self._try(queue, parts, domain, statement)) is not None:
                        parts.take(trial.rest)
                        return trial.choices
            elif (trial := self._best(queue, parts, group, statement)) is not None:
                parts.take(trial.rest)
                return trial.choices
        return []

    def _best(self, queue: Queue, parts: Parts, group: list[HyperNode], statement: Statement) -> Trial | None:
        """The HyperNode of a group in which the parts together score best; the moves are made."""
        mark, trials = statement.mark(), []
        for domain in group:
            if (trial := self._try(queue, parts, domain, statement)) is not None:
                trials.append(trial)
                statement.rollback(mark)
        if not trials:
            return None
        best = max(trials, key=lambda trial: trial.score)
        for task, row, waits in best.moves:
            if waits:
                statement.pipeline(task, row)
            else:
                statement.allocate(task, row)
        return best

    def _try(self, queue: Queue, parts: Parts, domain: HyperNode, statement: Statement) -> Trial | None:
        """Place a job within a HyperNode; undone if it does not get what it needs."""
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
        for part, name in before:
            part.allocated_hypernode = name
        if choices and self._will_do(job):
            moves = [(op.task, op.task.node, op.task.status == status.PIPELINED) for op in statement.operations[mark:]]
            return Trial(score, moves, choices, rest)
        statement.rollback(mark)
        return None

    # -- a part of a job

    def _place_part(
        self, queue: Queue, part: SubJob, sheet: Worksheet, within: HyperNode, statement: Statement
    ) -> tuple[HyperNode, float] | None:
        """Place a part in the best HyperNode below the given one, and say which and how good it is."""
        job, mark = sheet.job, statement.mark()
        for group in self.session.sub_gradients(job, part, within, Purpose.ALLOCATE):
            for domain, score in self._ranked(part, group):
                rest = sheet.copy()
                self._forget_errors(part, rest)
                self.placing.place(queue, rest, statement, part, self._rows(domain))
                if statement.mark() > mark and self._part_will_do(job, part):
                    sheet.tasks = rest.tasks
                    return domain, score
                statement.rollback(mark)
        return None

    def _ranked(self, part: SubJob, group: list[HyperNode]) -> Iterator[tuple[HyperNode, float]]:
        """HyperNodes with their scores, the best first. Since some are already found useless, ties are judged among the others."""
        left = list(group)
        scores = self.session.hyper_node_scores(part, left)
        while left:
            number = scores.index(max(scores))
            yield left.pop(number), scores.pop(number)
            if len(left) > 1 and scores.count(max(scores)) > 1:
                scores = self.session.hyper_node_scores(part, left)

    def _part_will_do(self, job: Job, part: SubJob) -> bool:
        return self.session.sub_job_ready(job, part) or self.session.sub_job_pipelined(job, part)

    def _forget_errors(self, part: SubJob, sheet: Worksheet) -> None:
        self.session.failed_roles.pop(part.uid, None)
        for task in sheet.tasks:
            self.session.fit_errors.pop(task.uid, None)

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
