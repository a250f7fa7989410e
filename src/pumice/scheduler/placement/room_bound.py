"""An upper bound of how many of some tasks find room in a HyperNode, by resources alone.

It saves dry runs that are bound to fail, and gives the reason where no placing was tried.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np

from pumice.scheduler.framework.fit_errors import FitErrors
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import HyperNode, Job, SubJob, Task, copies
from pumice.scheduler.model.hypernodes import BELOW_ALL, NO_SUCH_TIER


class RoomBound:
    """The upper bound for some tasks, by the state of the nodes when it is made."""

    def __init__(self, session: Session, tasks: Iterable[Task]) -> None:
        future = session.nodes.future_idle
        self._kinds = [(count, copies(template.needs, future)) for template, count in Counter(task.template for task in tasks).items()]

    def most(self, domain: HyperNode) -> int:
        """The greatest number of the tasks that could find room in the HyperNode."""
        return sum(min(count, int(fitting[domain.rows].sum())) for count, fitting in self._kinds)


def missing(session: Session, job: Job, part: SubJob | None = None) -> int:
    """The least number of tasks that must find a node so that the job, or a part of it, is ready or pipelined; 1 if that is unknown."""
    if not session.keeps_gangs:
        return 1
    if part is not None and not job.has_one_part:
        return max(1, -part.pipelined_margin)
    return max(1, job.min_member - job.ready_count - job.waiting_count - job.pending_best_effort)


class NoDomain(FitErrors):
    """The error that no HyperNode can hold a job or a part of it, whatever filters would say of its nodes."""

    def __init__(self, session: Session, why: str) -> None:
        super().__init__(session.nodes.count, Counter(), np.zeros(len(session.nodes), bool))
        self._why = why

    def __str__(self) -> str:
        return self._why


def shortage(session: Session, tasks: list[Task], limit: int) -> str:
    """Why there is no room for tasks that must stay within a HyperNode of this tier or lower; empty if room is not what is short."""
    if limit == BELOW_ALL:
        return NO_SUCH_TIER
    if (unknown := session.cluster.absent("HyperNode", "")) and len(session.topology.tree.all) == 1:
        return unknown
    domains = [domain for domain in session.topology.tree.all if domain.tier <= limit]
    if not domains:
        return ""
    room_bound = RoomBound(session, tasks)
    roomiest = max(domains, key=room_bound.most)
    most = room_bound.most(roomiest)
    if most >= len(tasks):
        return ""
    return (
        f"no HyperNode of tier {limit} or lower has room for all {len(tasks)} pending pods: "
        f"the roomiest, {roomiest.name}, has room for {most}, {len(tasks) - most} too few"
    )


def strayed(occupied: HyperNode | None, limit: int) -> str:
    """The reason if the job's running tasks are already further apart than the limit allows; empty if they are not."""
    if occupied is None or occupied.tier <= limit:
        return ""
    least = f"the lowest that does, {occupied.name}, is of tier {occupied.tier}"
    return f"no HyperNode of tier {limit} or lower holds all of its pods that run: {least}"
