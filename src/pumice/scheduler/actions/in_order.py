"""in-order: jobs start in the order in which they came, or in the one that plugins give. The first that does not fit waits, and so does
everybody behind it.

`backfill: greedy` lets whoever fits start; nobody is promised anything, and small jobs may keep a large one waiting for ever.

`backfill: easy` lets later jobs go before where that does not delay the first: it is promised the earliest instant at which it fits (its
shadow time), by the times at which running jobs are expected to end, and the nodes that it then takes. A later job starts if it is expected
to end before, or needs no more than what is left beside the promise. `backfill: conservative` promises to every waiting job, and keeps it:
a promise may be bettered, never put off.

How long a job is expected to run stands in the annotation pumice.io/estimate of its PodGroup, else in activeDeadlineSeconds of its pods,
else it is `defaultEstimate`; without any it never ends. With `estimates: history` it is what was usual of those of its owner that have
ended and are most like it (`placement/past_runs.py`), if that is less. A job for which there is room, but no quota of its queue, stands in
nobody's way.
"""

from collections.abc import Hashable, Iterable, Sequence
from functools import cached_property
from math import inf
from operator import attrgetter
from typing import Annotated, Literal, get_args

from msgspec import Struct, field

from pumice.api.times import Duration, rfc3339
from pumice.scheduler.engine import Evaluation
from pumice.scheduler.framework.job_class_turns import Turns, apart
from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.orders import Key
from pumice.scheduler.framework.policy import Action
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import EPSILON, INQUEUE, Job, Mask, OneOf, Task, Template
from pumice.scheduler.model.half_placed_gangs import cut_short_at
from pumice.scheduler.placement.past_runs import PastRuns, owner_of, without_numbers
from pumice.scheduler.placement.pending_tasks import PendingTasks
from pumice.scheduler.placement.place_tasks import TaskPlacer
from pumice.scheduler.placement.planned_ends import FIRST_STEP_S, PlannedByHistory, PlannedEnds
from pumice.scheduler.placement.timetable import PodSet, Promise, Timetable, places

MOST_NAMED = 8  #: nodes that an event names


Backfill = Literal["none", "greedy", "easy", "conservative"]
Estimates = Literal["told", "history"]


class InOrderArgs(Struct):
    backfill: Annotated[Backfill, OneOf(*get_args(Backfill))] = "none"
    default_estimate: Annotated[Duration, OneOf("1h", "4h", "12h", "48h")] = field(name="defaultEstimate", default=Duration(0))
    estimates: Annotated[Estimates, OneOf(*get_args(Estimates))] = "told"


_came = attrgetter("created", "number")


class InOrder(Action):
    name = "in-order"
    reads_only_state = True
    plain_for_newcomers = True
    Args = InOrderArgs
    settles = True
    places_gangs = True
    serves_by_queue = False

    def run(self, session: Session) -> None:
        ends: type[PlannedEnds] = PlannedEnds
        if self.args.estimates == "history":
            ends = PlannedByHistory
            session.cluster.index(PastRuns)  # made now: it knows only pods that end after this
        line = Line(session, ends, self.args.default_estimate or inf)
        first = line.start_in_order(strict=self.args.backfill != "greedy")
        if first is None:
            return
        if self.args.backfill == "conservative":
            line.promise_all(first, line.one_by_one(first))
            return
        line.tell_behind(first, (alike.first for alike in line.behind))
        if self.args.backfill == "easy":
            line.backfill(first)

    def turn_of_newcomer(self, job: Job) -> Key:
        return job.created, next(iter(job.tasks.values())).number

    def class_key(self, job: Job) -> Hashable:
        return job.estimate if self.args.estimates == "told" else (job.estimate, owner_of(job), without_numbers(job.name))


class Line:
    """The jobs that wait, in their order."""

    def __init__(self, session: Session, ends: type[PlannedEnds], unknown: float) -> None:
        self.session = session
        self.behind: list[JobClass] = []  #: the jobs behind the first one that does not fit
        self._kind_of_ends = ends
        self._unknown = unknown
        self._known_nodes: dict[Evaluation, tuple[int, Mask]] = {}  #: by evaluation: the position in the log, and `resolvable` then
        self._most_idle: tuple[int, list[float]] = (
            -1,
            [],
        )  #: the session's changes, and of each resource the most that a node has idle then
        self._no_room: dict[Hashable, float] = {}  #: by queue and kind of pod: the shortest run for which no room was found
        self.placing = TaskPlacer(session, cache_errors=True)

    @cached_property
    def _ends(self) -> PlannedEnds:
        return self.session.cluster.index(self._kind_of_ends)

    def _may_start(self, job: Job) -> bool:
        if job.is_pending:  # the action enqueue has not let it in
            if cut_short_at(job) is None:
                return False
            self.session.set_phase(job, INQUEUE)
        return self.session.job_valid(job) is None

    def _key(self, job: Job) -> Key:
        return (*self.session.orders.job_plugin_key(job), job.created, next(iter(job.tasks.values())).number)

    def start_in_order(self, *, strict: bool) -> Job | None:
        """Start jobs in order. Return the first that does not fit and holds up the others, or None; `behind` has all jobs after it."""
        self.session.admit_all()
        groups = [alike for alike in self.session.waiting() if self._may_start(alike.first)]
        for alike in groups:
            if len(alike.members) > 1:
                alike.members.sort(key=_came)
        turns = Turns(self.session, groups, self._key)
        while (job := turns.pop()) is not None:
            if not self._start(job) and strict and not self._is_beyond_quota(job):
                self.behind = turns.rest()
                return job
        return None

    def _is_beyond_quota(self, job: Job) -> bool:
        """Whether only the quota of its queue stops the job: nodes have room. In a full cluster queues have no quota left either."""
        is_refused = any(uid in self.session.refused_by_queue for uid in job.pending)
        return is_refused and places(self.session.nodes.idle, self._pod_sets(job)) is not None

    def one_by_one(self, first: Job) -> list[Job]:
        """The jobs behind the first, each by itself, in order. For each it is recorded that it waits behind the first."""
        jobs = sorted((job for alike in self.behind for job in apart(self.session, alike)), key=self._key)
        self.tell_behind(first, jobs)
        return jobs

    def tell_behind(self, first: Job, others: Iterable[Job]) -> None:
        for job in others:
            self.session.refused_by_queue[next(uid for uid in job.tasks if uid in job.pending)] = f"It waits behind {first.name}"

    def _start(self, job: Job) -> bool:
        """Place the pods that the job needs to start, on any nodes with room. Return whether the job starts."""
        assert job.queue is not None
        with self.session.statement() as statement:
            self.placing.place(job.queue, PendingTasks.of(self.session, job, job.pending.values()), statement)
            if self.session.job_ready(job):
                statement.commit()
                return True
        return False

    # -- backfill

    def backfill(self, first: Job) -> None:
        """Start later jobs before the first where that does not delay it (EASY): only the first job gets a promise."""
        timetable = self._timetable()
        promise = timetable.earliest(self._pod_sets(first), self._length(first))
        if promise is not None:
            self._tell_promise(first, promise)
        if not any(self._may_fit(alike.first) for alike in self.behind):
            return
        if promise is not None:
            timetable.change(promise, self._length(first), -1)
        turns = Turns(self.session, self.behind, self._key)
        while (job := turns.pop()) is not None:
            if self._may_fit(job) and not self._has_no_room(job):
                self._start_beside(job, timetable)

    def _timetable(self, promised: Sequence[tuple[Promise, float]] = ()) -> Timetable:
        self.session.went_by_clock = True
        self._ends.refresh()
        return Timetable(self.session, self._ends, self._unknown, promised)

    def _may_fit(self, job: Job) -> bool:
        """Whether, resource by resource, some node has enough idle for the job's first pod. For most jobs of a long line none has."""
        if self._most_idle[0] != self.session.changes:
            self._most_idle = self.session.changes, self.session.nodes.idle.max(axis=1).tolist()
        most = self._most_idle[1]
        return all(most[column] + EPSILON > amount for column, amount in next(iter(job.pending.values())).template.needs)

    def _has_no_room(self, job: Job) -> bool:
        """Whether no room was found for equal pods with a run no longer than this job's, and no job has started since."""
        task = next(iter(job.pending.values()))
        shortest = self._no_room.get(self._kind(job, task))
        if shortest is None or self._length(job) < shortest or not self.session.policy.shortcuts:
            return False
        return all(other.template is task.template for other in job.pending.values())

    def _kind(self, job: Job, task: Task) -> Hashable:
        assert job.queue is not None
        return (job.queue.name, *self.session.task_kind(task))

    def promise_all(self, first: Job, others: list[Job]) -> None:
        """Start jobs or promise them room (conservative). Earlier promises are kept, or improved in the order of the jobs."""
        jobs = [first, *others]
        kept, lengths = self._kept(jobs), list(map(self._length, jobs))
        timetable = self._timetable([(kept[job.uid], length) for job, length in zip(jobs, lengths, strict=True) if job.uid in kept])
        for job, length in zip(jobs, lengths, strict=True):
            pod_sets = self._pod_sets(job)
            if job.uid in kept:
                if self.session.policy.shortcuts and timetable.is_earliest(kept[job.uid], pod_sets, length):
                    continue
                timetable.change(kept[job.uid], length, 1)
            promise = timetable.earliest(pod_sets, length)
            if promise is None or (promise.start <= self.session.now and not self._has_quota(job, next(iter(job.pending.values())))):
                continue
            if promise.start > self.session.now or not self._start_beside(job, timetable):
                timetable.change(promise, length, -1)
                kept[job.uid] = promise

    def _kept(self, jobs: list[Job]) -> dict[str, Promise]:
        """The promises made to these jobs in earlier cycles, except those whose time has come; none if the nodes have changed."""
        memory, nodes = self.session.memory(InOrder.name), self.session.nodes
        version = (nodes.static_version, nodes.idle.shape, nodes.allocatable.sum())
        promises: dict[str, Promise] = memory["promises"] if memory.get("version") == version else {}
        waiting = {job.uid for job in jobs}
        kept = {uid: promise for uid, promise in promises.items() if uid in waiting and promise.start > self.session.now}
        memory["version"], memory["promises"] = version, kept
        return kept

    def _start_beside(self, job: Job, timetable: Timetable) -> bool:
        """Start the job if it takes no promised room for as long as it is expected to run. Return whether it starts."""
        length = self._length(job)
        free, usage = timetable.free_now(length), list[tuple[int, int, float]]()
        with self.session.statement() as statement:
            for number, task in enumerate(reversed(PendingTasks.of(self.session, job, job.pending.values()).tasks)):
                if self.session.job_ready(job):
                    break
                if not self._has_quota(job, task):
                    return False
                evaluation = self.session.evaluation(task)
                if evaluation.rejected is not None:
                    return False
                columns, amounts = task.template.columns, task.template.amounts
                fits = (free[columns] + EPSILON > amounts[:, None]).all(axis=0)
                row = self.session.best_node(task, evaluation, evaluation.admitted & evaluation.fits_idle & fits)
                if row < 0:
                    if not number:
                        self._no_room[self._kind(job, task)] = length
                    return False
                statement.allocate(task, row)
                free[columns, row] -= amounts
                usage += ((column, row, amount) for column, amount in task.template.needs)
            if not self.session.job_ready(job):
                return False
            statement.commit()
        self._no_room.clear()
        timetable.change(Promise(self.session.now, tuple(usage)), length, -1)
        return True

    def _has_quota(self, job: Job, task: Task) -> bool:
        assert job.queue is not None
        return self.session.allocatable(job.queue, task)

    def _tell_promise(self, job: Job, promise: Promise) -> None:
        """Write an event about the promise: once, and again when its job or nodes change, or its start by FIRST_STEP_S or more."""
        nodes = ", ".join(self.session.nodes.names[row] for row in sorted({row for _, row, _ in promise.usage})[:MOST_NAMED])
        memory = self.session.memory(InOrder.name)
        who, start = memory.get("told", (("", ""), 0.0))
        if who != (job.uid, nodes) or abs(start - promise.start) >= FIRST_STEP_S:
            memory["told"] = (job.uid, nodes), promise.start
            self.session.event(job, "Normal", "Reserved", f"It is promised room on {nodes} from {rfc3339(promise.start)} on")

    def _pod_sets(self, job: Job) -> list[PodSet]:
        """The pods that the job still needs to start, grouped by template."""
        missing = max(1, job.min_member - job.ready_count)
        counts: dict[Template, int] = {}
        where = {}
        for task in PendingTasks.of(self.session, job, job.pending.values()).tasks[::-1][:missing]:
            counts[task.template] = counts.get(task.template, 0) + 1
            if task.template not in where:
                where[task.template] = self._resolvable(task)
        return [PodSet(template.request, count, where[template]) for template, count in counts.items()]

    def _resolvable(self, task: Task) -> Mask:
        """The nodes that may take the task, if there is room. Most jobs of a long line ask for the same nodes."""
        evaluation, position = self.session.evaluation(task), self.session.cluster.log.position
        known = self._known_nodes.get(evaluation)
        if known is None or known[0] != position:
            known = self._known_nodes[evaluation] = position, evaluation.resolvable
        return known[1]

    def _length(self, job: Job) -> float:
        return self._ends.run(next(iter(job.pending.values())), self._unknown)
