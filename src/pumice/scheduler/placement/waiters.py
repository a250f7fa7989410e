"""The jobs that wait in a line, kept from cycle to cycle: only those that have changed are examined again.

All of them must be plain: jobs of one pod that needs only room. If one is not, that is remembered instead, until it has gone or changed.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.framework.job_classes import Member
from pumice.scheduler.framework.newcomer_cycle import givers_of_order, is_newcomer, turn_of
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster, Job, Queue, Task, Template
from pumice.scheduler.placement.planned_ends import stated_run

MEMORY = "line"  #: its key in the cluster's memory


class Waiter(NamedTuple):
    """A job that waits in the line."""

    turn: Any
    job: Job
    task: Task
    member: Member
    kind: Hashable  #: equal for tasks that the rules cannot tell apart
    length: float  #: the seconds that it is expected to run


_turn = itemgetter(0)


class Waiters:
    """The jobs that wait, in the order of their turns, as they were after the last cycle."""

    def __init__(self, basis: Hashable, policy: Policy, plugins: Sequence[Plugin], evaluations: Evaluations, unknown: float) -> None:
        self._basis = basis
        self._placer = policy.placer
        self._kind = evaluations.key
        self._unknown = unknown
        self._givers = givers_of_order(policy, plugins)
        self.by_uid: dict[str, Waiter] = {}
        self.in_order: list[Waiter] = []
        self.members: list[Member] = []  #: the oldest first
        self.templates = Counter[Template]()
        self.queues: dict[Queue, None] = {}  #: all in which any of them has waited
        self.odd = ""  #: the uid of a job because of which the line cannot be served the short way
        self.cycle = -1  #: the number of the last cycle
        self.settled = -1  #: the departures before all promises were found to be the earliest; -1 if they were not

    @classmethod
    def of(cls, cluster: Cluster, policy: Policy, plugins: Sequence[Plugin], evaluations: Evaluations, unknown: float) -> "Waiters | None":
        """The jobs that wait now; None if any of them is not plain. `unknown`: the seconds that a pod without an estimate is expected to
        run."""
        kept: Waiters | None = cluster.memory.get(MEMORY)
        basis, waiting, changed = (policy, evaluations, tuple(cluster.versions.items())), cluster.waiting, cluster.changed
        if kept is not None and kept._basis == basis and kept.odd in waiting and kept.odd not in changed:
            return None
        if kept is None or kept._basis != basis or kept.cycle != cluster.cycles or kept.odd:
            kept = cluster.memory[MEMORY] = Waiters(basis, policy, plugins, evaluations, unknown)
            changed = waiting
        kept._look_at(cluster, changed.values())
        return None if kept.odd else kept

    def _look_at(self, cluster: Cluster, changed: Iterable[Job]) -> None:
        for job in changed:
            if self.remove(job.uid):
                self.settled = -1  # it may need other room than it was promised
            if job.uid not in cluster.waiting:
                continue
            turn = turn_of(job, self._placer, self._givers) if is_newcomer(job) and job.min_member else None
            if turn is None:
                self.odd = job.uid
                return
            self._add(job, turn)

    def _add(self, job: Job, turn: Any) -> None:
        (task,) = job.tasks.values()
        assert job.queue is not None
        stated = stated_run(task)
        length = self._unknown if stated is None else stated
        waiter = self.by_uid[job.uid] = Waiter(turn, job, task, Member.of(job), self._kind(task), length)
        insort(self.in_order, waiter, key=_turn)
        insort(self.members, waiter.member)
        self.templates[task.template] += 1
        self.queues[job.queue] = None

    def remove(self, uid: str) -> bool:
        """Take a job off the line. Return whether it was there."""
        waiter = self.by_uid.pop(uid, None)
        if waiter is None:
            return False
        del self.in_order[bisect_left(self.in_order, waiter.turn, key=_turn)]
        del self.members[bisect_left(self.members, waiter.member)]
        self.templates[waiter.task.template] -= 1
        if not self.templates[waiter.task.template]:
            del self.templates[waiter.task.template]
        return True
