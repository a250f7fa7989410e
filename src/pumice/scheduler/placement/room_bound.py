"""How many of some tasks could at most find room in a HyperNode, by resources alone.

Saves dry runs that are bound to fail, and tells what is short where nothing was even tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from pumice.scheduler.framework.reasons import FitErrors
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model.hypernodes import HyperNode
from pumice.scheduler.model.job import Job
from pumice.scheduler.model.lacking import absent
from pumice.scheduler.model.nodes import Table
from pumice.scheduler.model.resources import EPSILON, Vector
from pumice.scheduler.model.subjob import SubJob
from pumice.scheduler.model.task import Task
from pumice.scheduler.model.template import Template


class RoomBound:
    """As the nodes are when it is made."""

    def __init__(self, session: Session, tasks: Iterable[Task]) -> None:
        future = session.nodes.future_idle
        self._kinds = [(count, _copies(template, future)) for template, count in Counter(task.template for task in tasks).items()]

    def most(self, domain: HyperNode) -> int:
        """No more tasks than this find room there."""
        return sum(min(count, int(copies[domain.rows].sum())) for count, copies in self._kinds)


def _copies(template: Template, future: Table) -> Vector:
    """Per node, how many copies fit in."""
    copies: Vector = np.full(future.shape[1], np.inf)
    for column, amount in template.needs:
        copies = np.minimum(copies, np.floor((future[column] + EPSILON) / amount))
    most: Vector = np.maximum(copies, 0)
    return most


def missing(session: Session, job: Job, part: SubJob | None = None) -> int:
    """At least so many tasks must find a place for the job, or a part of it, to start or to wait; 1 if there is no telling."""
    if not session.keeps_gangs:
        return 1
    if part is not None and not job.has_one_part:
        return max(1, -part.pipelined_margin)
    return max(1, job.min_member - job.ready_count - job.waiting_count - job.pending_best_effort)


class NoDomain(FitErrors):
    """No HyperNode will do for a part of a job, whatever its nodes would say."""

    def __init__(self, session: Session, why: str) -> None:
        super().__init__(session.nodes.count, Counter(), np.zeros(len(session.nodes), bool))
        self._why = why

    def __str__(self) -> str:
        return self._why


def shortage(session: Session, tasks: list[Task], limit: int) -> str:
    """What is short for tasks that must stay within a HyperNode of that tier; empty if it is not room."""
    if unknown := absent(session.cluster, "HyperNode", ""):
        return unknown
    domains = [domain for domain in session.topology.tree.all if domain.tier <= limit]
    if not domains:
        return ""
    outlook = RoomBound(session, tasks)
    roomiest = max(domains, key=outlook.most)
    most = outlook.most(roomiest)
    if most >= len(tasks):
        return ""
    return (
        f"no HyperNode of tier {limit} or lower has room for all {len(tasks)} pending pods: "
        f"the roomiest, {roomiest.name}, has room for {most}, {len(tasks) - most} too few"
    )


def strayed(occupied: HyperNode | None, limit: int) -> str:
    """What is wrong if tasks that run already are further apart than they may be; empty if they are not."""
    if occupied is None or occupied.tier <= limit:
        return ""
    least = f"the lowest that does, {occupied.name}, is of tier {occupied.tier}"
    return f"no HyperNode of tier {limit} or lower holds all of its pods that run: {least}"
