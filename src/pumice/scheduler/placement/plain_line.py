"""The short way of a line: jobs of one pod that wait in one line are served without a session.

Each needs only room, and plugins do nothing but order them and say that they wait (`plain_in_line`). The line is kept from cycle to cycle
(`waiters.py`). If anything is not that plain, a session decides. Both decide the same (`tests/properties/test_plain_line.py`).
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Iterator, Sequence

from pumice.scheduler.engine import Evaluation
from pumice.scheduler.engine.evaluations import Evaluations
from pumice.scheduler.framework.decisions import Bind, Conclusion, Decisions, GroupEvent, JobOutcome
from pumice.scheduler.framework.fit_errors import explain
from pumice.scheduler.framework.job_classes import MEMORY as JOB_CLASSES, Member, age
from pumice.scheduler.framework.job_status import fit_error, not_ready, phase_of, scheduling_reason
from pumice.scheduler.framework.journal import StateJournal
from pumice.scheduler.framework.kept_evaluations import evaluations_left
from pumice.scheduler.framework.newcomer_cycle import outcomes_of, plainly_changed, sees_no_session
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.open_plugins import OpenPlugins
from pumice.scheduler.framework.past_evictions import PAST_EVICTIONS
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.session_notes import SessionNotes
from pumice.scheduler.model import INQUEUE, Cluster, Job, Task, Template, status
from pumice.scheduler.placement.growing_room import GrowingRoom
from pumice.scheduler.placement.line import PROMISES, Line, candidates
from pumice.scheduler.placement.planned_ends import PlannedEnds
from pumice.scheduler.placement.timetable import PodSet, Promise, Timetable
from pumice.scheduler.placement.waiters import MEMORY, Waiter, Waiters

MOST = 10_000  #: jobs in a line that is served the short way: in longer ones those that are alike are better served as one


class Unknown(Exception):
    """No session has asked the rules about such a task yet."""


class PlainLine(Line):
    """The jobs that wait, in their order, in one cycle."""

    def __init__(
        self, cluster: Cluster, now: float, unknown: float, waiters: Waiters, evaluations: Evaluations, observer: Observer
    ) -> None:
        super().__init__(cluster, now, PlannedEnds, unknown)
        self._before = dict(self._memory)
        self.started: list[Waiter] = []
        self.events: list[GroupEvent] = []
        self.tries = StateJournal(cluster)
        self.notes = SessionNotes()
        self._waiters = waiters
        self._evaluations = evaluations
        self._observer = observer
        self._sets: dict[Hashable, tuple[int, list[PodSet]]] = {}  #: by kind of task: the position in the log, and what it asks for then

    def start_in_order(self) -> Waiter | None:
        """Start jobs in order. Return the first that does not fit; None if all fit."""
        for job in [*self.cluster.not_enqueued.values()]:
            self.tries.phase(job, INQUEUE)
        while self._waiters.in_order:
            waiter = self._waiters.in_order[0]
            evaluation = self._evaluation(waiter.task)
            row = evaluation.best_with_room()
            if row < 0:
                evaluation.refresh()
                self.notes.fit_errors[waiter.task.uid] = evaluation.remember(explain)
                return waiter
            self._start(waiter, row)
        return None

    def _evaluation(self, task: Task) -> Evaluation:
        self._observer.turn(task)
        found = self._evaluations.lasting(task)
        if found is None:
            raise Unknown
        return found

    def _start(self, waiter: Waiter, row: int) -> None:
        self.tries.move(waiter.task, status.ALLOCATED, row)
        self.started.append(waiter)
        self._waiters.remove(waiter.job.uid)

    # -- backfill

    def _templates_behind(self) -> Iterable[Template]:
        return self._waiters.templates

    def _turns_behind(self) -> Iterator[Job]:
        return (waiter.job for waiter in self._waiters.in_order[1:])

    def _room_to_come(self) -> GrowingRoom:
        self._ends.refresh()
        return GrowingRoom(self, self._ends, self._unknown)

    def _start_beside(self, job: Job, timetable: Timetable | GrowingRoom) -> bool:
        waiter, length = self._waiters.by_uid[job.uid], self._length(job)
        evaluation = self._evaluation(waiter.task)
        evaluation.refresh()
        row = evaluation.best(candidates(evaluation, timetable.free_now(length)))
        if row < 0:
            self._no_room[waiter.kind] = length
            return False
        self._start(waiter, row)
        self._no_room.clear()
        usage = tuple((column, row, amount) for column, amount in waiter.task.template.needs)
        timetable.change(Promise(self.now, usage), length, -1)
        return True

    def pod_sets(self, job: Job) -> list[PodSet]:
        waiter, position = self._waiters.by_uid[job.uid], self.cluster.log.position
        known = self._sets.get(waiter.kind)
        if known is None or known[0] != position:
            evaluation = self._evaluation(waiter.task)
            evaluation.refresh()
            known = self._sets[waiter.kind] = position, [PodSet(waiter.task.template.request, 1, evaluation.resolvable)]
        return known[1]

    def _length(self, job: Job) -> float:
        return self._waiters.by_uid[job.uid].length

    def _has_quota(self, job: Job, task: Task) -> bool:
        return True

    def _kind(self, job: Job, task: Task) -> Hashable:
        return self._waiters.by_uid[job.uid].kind

    def _event(self, job: Job, message: str) -> None:
        self.events.append(GroupEvent(job, "Normal", "Reserved", message))

    def promise_all(self, jobs: Sequence[Job]) -> None:
        waiters, departures = self._waiters, self._ends.departures
        self.settled = waiters.settled == departures
        super().promise_all(jobs)
        waiters.settled = departures if self.settled else -1

    # -- the end

    def take_back(self) -> None:
        """Undo what was tried."""
        self.tries.rollback()
        self.cluster.memory[PROMISES] = self._before
        del self.cluster.memory[MEMORY]

    def waiting(self, first: Waiter | None) -> list[JobOutcome]:
        """Why the others wait. `first`: the first job that did not fit."""
        if first is None:
            return []
        behind = self._waiters.members.copy()
        del behind[bisect_left(behind, first.member)]
        for member in behind[:1]:
            self.notes.refused_by_queue[member.tasks[0].uid] = f"It waits behind {first.job.name}"
        return [self._outcome(members) for members in ([first.member], behind) if members]

    def _outcome(self, members: list[Member]) -> JobOutcome:
        job, task = members[0].job, members[0].tasks[0]
        state = fit_error(self.notes, job)
        pods = [(0, *scheduling_reason(self.notes, task, None, state))]
        return JobOutcome(members, phase_of(job, unschedulable=True), not_ready(job, 0, state), "", pods)


def serve(cluster: Cluster, policy: Policy, now: float, observer: Observer, backfill: str, unknown: float) -> Decisions | None:
    """The decisions of a cycle in which jobs wait in one line. None: a session decides, and nothing has changed."""
    if not policy.keeps_line or not sees_no_session(observer) or not observer.reads_reasons or not 0 < len(cluster.waiting) <= MOST:
        return None
    if cluster.without_job or cluster.nodes.moving or cluster.memory.get(PAST_EVICTIONS):
        return None
    plugins, evaluations, others = OpenPlugins.left(cluster, policy), evaluations_left(cluster, policy), plainly_changed(cluster)
    if plugins is None or evaluations is None or others is None or not cluster.not_enqueued.keys() <= cluster.waiting.keys():
        return None
    waiters = Waiters.of(cluster, policy, plugins.everyone, evaluations, unknown)
    if waiters is None or not all(queue.open for queue in waiters.queues):
        return None
    line = PlainLine(cluster, now, unknown, waiters, evaluations, observer)
    try:
        first = line.start_in_order()
        if first is not None and backfill == "easy":
            line.backfill(first.job)
        elif first is not None and backfill == "conservative":
            line.promise_all([waiter.job for waiter in waiters.in_order])
    except Unknown:
        line.take_back()
        return None
    for waiter in line.started:
        cluster.decide(waiter.task)
    decisions = Decisions([Bind(waiter.task, waiter.task.node_name, {}) for waiter in line.started], events=line.events)
    started = sorted([*(waiter.job for waiter in line.started), *others], key=age)
    decisions.tell(Conclusion([*outcomes_of(cluster, policy, started), *line.waiting(first)], [], []))
    cluster.memory.pop(JOB_CLASSES, None)
    cluster.forget_changes()
    waiters.cycle = cluster.cycles
    return decisions
