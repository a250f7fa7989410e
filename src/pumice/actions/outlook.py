"""How many of some tasks could at most find room in a HyperNode, by resources alone: saves dry runs that are bound to fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from pumice.framework.session import Session
from pumice.model.hypernodes import HyperNode
from pumice.model.job import Job
from pumice.model.nodes import Table
from pumice.model.resources import EPSILON
from pumice.model.subjob import SubJob
from pumice.model.task import Task
from pumice.model.template import Template


class Outlook:
    """As the nodes are when it is made."""

    def __init__(self, session: Session, tasks: Iterable[Task]) -> None:
        future = session.nodes.future_idle
        self._kinds = [(count, _copies(template, future)) for template, count in Counter(task.template for task in tasks).items()]

    def most(self, domain: HyperNode) -> int:
        """No more tasks than this find room there."""
        return sum(min(count, int(copies[domain.rows].sum())) for count, copies in self._kinds)


def _copies(template: Template, future: Table) -> Table:
    """Per node, how many copies fit in."""
    copies = np.full(future.shape[1], np.inf)
    for column, amount in template.needs:
        copies = np.minimum(copies, np.floor((future[column] + EPSILON) / amount))
    return np.maximum(copies, 0)


def missing(session: Session, job: Job, part: SubJob | None = None) -> int:
    """At least so many tasks must find a place for the job, or a part of it, to start or to wait; 1 if there is no telling."""
    if not session.keeps_gangs:
        return 1
    if part is not None and not job.has_one_part:
        return max(1, -part.pipelined_margin)
    return max(1, job.min_member - job.ready_count - job.waiting_count - job.pending_best_effort)
