"""in-order: jobs start in the order in which they came, or in the one that plugins give. The first that does not fit waits, and so does
everybody behind it.

`backfill: greedy` lets whoever fits start; nobody is promised anything, and small jobs may keep a large one waiting for ever.

`backfill: easy` lets later jobs go before where that does not delay the first: it is promised the earliest instant at which it fits (its
shadow time), by the times at which running jobs are expected to end, and the nodes that it then takes. A later job starts if it is expected
to end before, or needs no more than what is left beside the promise. `backfill: conservative` promises to every waiting job. A promise may
be bettered, and is put off by nobody but jobs before it: the first in the line starts as soon as it fits.

How long a job is expected to run stands in the annotation pumice.io/estimate of its PodGroup, else in activeDeadlineSeconds of its pods,
else it is `defaultEstimate`; without any it never ends. With `estimates: history` it is what was usual of those of its owner that have
ended and are most like it (`placement/past_runs.py`), if that is less. A job for which there is room, but no quota of its queue, stands in
nobody's way.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from math import inf
from operator import attrgetter
from typing import Annotated, Literal, get_args

from msgspec import Struct, field

from pumice.api.times import Duration
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.job_class_turns import Turns, apart
from pumice.scheduler.framework.job_classes import JobClass
from pumice.scheduler.framework.observer import Observer
from pumice.scheduler.framework.orders import OrderKey
from pumice.scheduler.framework.policy import Action, Policy
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import INQUEUE, Cluster, Job, OneOf, Task, Template
from pumice.scheduler.model.half_placed_gangs import cut_short_at
from pumice.scheduler.placement.growing_room import GrowingRoom
from pumice.scheduler.placement.line import Line, candidates
from pumice.scheduler.placement.past_runs import PastRuns, owner_of, without_numbers
from pumice.scheduler.placement.pending_tasks import PendingTasks
from pumice.scheduler.placement.place_tasks import TaskPlacer
from pumice.scheduler.placement.plain_line import serve
from pumice.scheduler.placement.planned_ends import PlannedByHistory, PlannedEnds
from pumice.scheduler.placement.timetable import PodSet, Promise, Timetable, places

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
        line = LineInSession(session, ends, self.args.default_estimate or inf)
        first = line.start_in_order(strict=self.args.backfill != "greedy")
        if first is None:
            return
        if self.args.backfill == "conservative":
            line.promise_all([first, *line.one_by_one(first)])
            return
        line.tell_behind(first, (alike.first for alike in line.behind))
        if self.args.backfill == "easy":
            line.backfill(first)

    def decide(self, cluster: Cluster, policy: Policy, now: float, observer: Observer) -> Decisions | None:
        """The decisions about a line of jobs of one pod."""
        if self.args.backfill == "greedy" or self.args.estimates != "told":
            return None
        return serve(cluster, policy, now, observer, self.args.backfill, self.args.default_estimate or inf)

    def turn_of_newcomer(self, job: Job) -> OrderKey:
        return job.created, next(iter(job.tasks.values())).number

    def class_key(self, job: Job) -> Hashable:
        return job.estimate if self.args.estimates == "told" else (job.estimate, owner_of(job), without_numbers(job.name))


class LineInSession(Line):
    """The jobs that wait, in their order."""

    def __init__(self, session: Session, ends: type[PlannedEnds], unknown: float) -> None:
        super().__init__(session.cluster, session.now, ends, unknown)
        self.session, self.moves, self.shortcuts = session, session.moves, session.policy.shortcuts
        self.behind: list[JobClass] = []  #: the jobs behind the first one that does not fit
        self.placing = TaskPlacer(session, cache_errors=True)

    def _may_start(self, job: Job) -> bool:
        if job.is_pending:  # the action enqueue has not let it in
            if cut_short_at(job) is None:
                return False
            self.session.set_phase(job, INQUEUE)
        return self.session.job_valid(job) is None

    def _key(self, job: Job) -> OrderKey:
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
        return is_refused and places(self.session.nodes.idle, self.pod_sets(job)) is not None

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

    def _templates_behind(self) -> Iterable[Template]:
        return (next(iter(alike.first.pending.values())).template for alike in self.behind)

    def _turns_behind(self) -> Iterator[Job]:
        turns = Turns(self.session, self.behind, self._key)
        while (job := turns.pop()) is not None:
            yield job

    def _timetable(self, promised: Sequence[tuple[Promise, float]] = ()) -> Timetable:
        self.session.went_by_clock = True
        return super()._timetable(promised)

    def _event(self, job: Job, message: str) -> None:
        self.session.event(job, "Normal", "Reserved", message)

    def _kind(self, job: Job, task: Task) -> Hashable:
        assert job.queue is not None
        return (job.queue.name, *self.session.task_kind(task))

    def _start_beside(self, job: Job, timetable: Timetable | GrowingRoom) -> bool:
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
                row = self.session.best_node(task, evaluation, candidates(evaluation, free))
                if row < 0:
                    if not number:
                        self._no_room[self._kind(job, task)] = length
                    return False
                statement.allocate(task, row)
                free[task.template.columns, row] -= task.template.amounts
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

    def pod_sets(self, job: Job) -> list[PodSet]:
        """The pods that the job still needs to start, grouped by template."""
        missing = max(1, job.min_member - job.ready_count)
        counts: dict[Template, int] = {}
        where = {}
        for task in PendingTasks.of(self.session, job, job.pending.values()).tasks[::-1][:missing]:
            counts[task.template] = counts.get(task.template, 0) + 1
            if task.template not in where:
                where[task.template] = self._resolvable(self.session.evaluation(task))
        return [PodSet(template.request, count, where[template]) for template, count in counts.items()]
