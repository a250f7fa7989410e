"""What becomes of a job if things go on: several rehearsed cycles, with what happens between them, until nothing changes any more.

Between two cycles controllers make the pods of jobs that were admitted, as far as ResourceQuotas allow; bound pods run; evicted pods, and
pods that are leaving already, are gone and wait again if their job goes on. Nothing ends by itself: running pods run on. The state itself
is changed, and then restored.
"""

from collections import Counter
from collections.abc import Callable

import numpy as np
from msgspec import Struct

from pumice.answers.pod_quota import count_used, namespaces_with_quotas, promise_rest, refused_pods
from pumice.answers.pods_to_come import is_promised, promise
from pumice.answers.subject import Subject, WaitingPart, as_they_came, owner_of, waiter, who_waits
from pumice.answers.trial_cluster import TrialCluster, pod_of
from pumice.api.pod import Pod
from pumice.scheduler.framework.carry_out import carry_out
from pumice.scheduler.framework.cycle import Rehearsal
from pumice.scheduler.framework.decisions import Bind, Decisions
from pumice.scheduler.framework.journal import Otherwise
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import World
from pumice.scheduler.model import INQUEUE, Cluster, Job, Task, status

MOST_CYCLES = 8
PERIOD_S = 1.0

Counts = dict[str, int]


class Course(Struct, frozen=True):
    """What became of the subject, and of all others: numbers of pods by owner (their PodGroup, or the pod itself)."""

    places: dict[str, str]  #: the nodes of the subject's pods that started
    admitted: bool  #: the subject's PodGroup was admitted on the way
    cycles: int  #: how many cycles went by until the subject started
    made_room: bool  #: pods had to leave for it
    starts: Counts
    evicted: Counts
    waits: Counts


class _Run:
    """One rehearsal of several cycles. `run` is called once."""

    def __init__(self, cluster: Cluster, policy: Policy, now: float, world: World, subject: Subject | None, short: bool) -> None:
        self._cluster, self._now, self._subject, self._short = cluster, now, subject, short
        self._rehearsal = Rehearsal(cluster, policy, world)
        self._places: dict[str, str] = {}
        self._starts: Counter[str] = Counter()
        self._evicted: Counter[str] = Counter()
        self._admitted = self._made_room = False
        self._cycles = 0
        self._withheld: list[Pod] = []

    def run(self, otherwise: Callable[[], None]) -> Course:
        with self._rehearsal, TrialCluster(self._cluster) as self._trial:
            waits = who_waits(self._cluster, self._subject) if self._subject is not None else waiter(None, ())
            promise_rest(self._trial)
            self._withhold(waits)
            if not _is_rationed(self._cluster, waits):
                self._pods_come(waits)
            self._make_pods(waits)
            for number in range(MOST_CYCLES):
                goes_on = self._cycle(number, waits) or self._pods_come(waits)
                if not goes_on or (self._short and self._places):
                    break
            if not self._places:
                self._give_back()
                otherwise()
            return self._outcome()

    def _withhold(self, waits: WaitingPart) -> None:
        """Take the promised pods of the subject's job away: no controller makes them before it is admitted, and others may come first."""
        if waits.job is not None and waits.job.group is not None:
            self._take_away([task for task in waits.job.tasks.values() if is_promised(task)])

    def _take_away(self, tasks: list[Task]) -> None:
        """Take pods away, to be made again in the order in which they came: it is that of placing them."""
        for task in as_they_came(tasks):
            self._withheld.append(pod_of(task))
            self._trial.remove("Pod", task.key)

    def _give_back(self) -> None:
        for pod in self._withheld:
            self._trial.put("Pod", pod)
        self._withheld.clear()

    def _pods_come(self, waits: WaitingPart) -> bool:
        """Let the controller of the subject's job make its pods if it is admitted. Return whether any comes. Where a quota may refuse pods,
        this is when nothing else changes any more: others may be before it, as controllers try again at moments of their own."""
        if waits.job is None or waits.job.is_pending or not self._withheld:
            return False
        before = len(self._withheld)
        self._give_back()
        self._make_pods(waits)
        return len(self._withheld) < before

    def _make_pods(self, waits: WaitingPart) -> None:
        """Let ResourceQuotas refuse promised pods, and count the others. Those of the subject are kept in mind."""
        refused = refused_pods(self._cluster, waits.job)
        self._take_away([task for task in refused if _is_own(task, waits)])
        for task in refused:
            if task.key in self._cluster.tasks:
                self._trial.remove("Pod", task.key)
        count_used(self._trial)

    def _cycle(self, number: int, waits: WaitingPart) -> bool:
        """Run one cycle, and let happen what follows from it. Return whether anything has changed."""
        not_admitted = list(self._cluster.not_enqueued.values())
        decisions, take_back = self._rehearsal.cycle(self._now + number * PERIOD_S)
        self._trial.note(Otherwise(take_back))
        if not self._places:
            self._cycles = number + 1
        admitted = [job for job in not_admitted if job.phase == INQUEUE]
        goes_on = self._admit(admitted, waits) or bool(decisions.binds)
        victims: dict[Task, None] = {}
        carry_out(self._trial, decisions, self._now, lambda eviction: victims.update(dict.fromkeys(with_gang(eviction.task))))
        self._count_starts(decisions.binds, waits)
        return self._take_off(decisions, victims, waits) or goes_on

    def _admit(self, admitted: list[Job], waits: WaitingPart) -> bool:
        """Let controllers make the pods of jobs that were admitted, the oldest job first."""
        before = len(self._cluster.tasks)
        for job in admitted:
            if job is waits.job:
                self._admitted = True
                self._give_back()
            else:
                promise(self._trial, job)
        if len(self._cluster.tasks) > before:
            self._make_pods(waits)
        return bool(admitted)

    def _count_starts(self, binds: list[Bind], waits: WaitingPart) -> None:
        for bind in binds:
            self._starts[owner_of(bind.task)] += 1
            if _is_own(bind.task, waits):
                self._places[bind.task.key] = bind.node

    def _take_off(self, decisions: Decisions, victims: dict[Task, None], waits: WaitingPart) -> bool:
        """Let the victims go, and all who are leaving anyway."""
        for task in victims:
            self._evicted[owner_of(task)] += 1
        table = self._cluster.nodes
        rows = np.flatnonzero((table.releasing > 0).any(axis=0)).tolist()
        leaving = [task for row in rows for task in table.tasks[row].values() if task.status == status.RELEASING]
        rooms = any(_is_own(place.task, waits) for place in decisions.pipelined)
        rooms |= any(node and _is_own(task, waits) for task, node in decisions.nominations.items())
        self._made_room |= rooms and bool(victims or leaving)
        gone = dict.fromkeys([*victims, *leaving])
        for task in gone:
            if not task.owner and (task.job is None or task.job.group is None or task.job.group.metadata.controller is None):
                self._trial.remove("Pod", task.key)
            else:
                self._trial.move(task, status.PENDING, -1)
                self._trial.set(task, disrupted=False, deleting=False, started=None, placed_at=None)
        return bool(gone)

    def _outcome(self) -> Course:
        cluster = self._cluster
        tasks = [*(task for job in cluster.waiting.values() for task in job.pending.values()), *cluster.without_job.values()]
        waits = Counter(owner_of(task) for task in tasks if task.status == status.PENDING)
        found = dict(self._starts), dict(self._evicted), dict(waits)
        return Course(self._places, self._admitted, self._cycles, self._made_room, *found)


def course(
    cluster: Cluster,
    policy: Policy,
    now: float,
    subject: Subject | None,
    world: World,
    *,
    short: bool = False,
    otherwise: Callable[[], None] = lambda: None,
) -> Course:
    """What becomes of the subject, if there is one, and of all others. `short`: end as soon as it has started. If it does not start,
    `otherwise` is called at the end, while the cluster is as it is then."""
    return _Run(cluster, policy, now, world, subject, short).run(otherwise)


def _is_rationed(cluster: Cluster, waits: WaitingPart) -> bool:
    return waits.job is not None and waits.job.namespace in namespaces_with_quotas(cluster)


def _is_own(task: Task, waits: WaitingPart) -> bool:
    """Whether a pod is of the subject: one of its pods, or one that was made since for its job."""
    return task in waits.members or (waits.job is not None and waits.job.group is not None and task.job is waits.job)


def with_gang(victim: Task) -> list[Task]:
    """The pods that leave with a victim: those of its gang that cannot go on without it."""
    job = victim.job
    placed = status.BINDING | status.BOUND | status.RUNNING
    if job is None or job.min_member < job.count(placed | status.PENDING | status.PIPELINED | status.RELEASING):
        return [victim]
    return [victim, *(task for task in job.tasks.values() if task.status & placed)]
