"""tdm: nodes of a revocable zone are lent to preemptable pods in a daily window of time, and given back at its end.

A zone is a node label; `tdm.revocable-zone.<zone>: "22:00-06:00"` gives it its window, in the time zone of `tdm.time-zone` (UTC
unless said otherwise). A window may run past midnight. Outside of it nobody is placed there, and preemptable pods that still run
there are the victims that the action shuffle asks for, job by job within the job's disruption budget.
"""

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
from msgspec import Struct, field

from pumice.api.annotations import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, REVOCABLE_ZONE
from pumice.api.integers import integer
from pumice.api.times import Duration
from pumice.scheduler.engine import MAX_SCORE, Filter, Reach, Reason, Refused, Scorer, Scores, View
from pumice.scheduler.framework.hook_answers import Vote
from pumice.scheduler.framework.plugin import Plugin
from pumice.scheduler.framework.session import Session
from pumice.scheduler.model import Job, Mask, Task, status

EVICTIONS_WITHOUT_BUDGET = 1

INACTIVE = Reason("node(s) are in a revocable zone that is not active now", final=True)
NOT_REVOCABLE = Reason("task is not allow to dispatch to revocable node", final=True)

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)-([01]?\d|2[0-3]):([0-5]\d)\Z")


class TdmArgs(Struct):
    evict_period: Duration = field(name="tdm.evict.period", default=Duration(60))
    time_zone: str = field(name="tdm.time-zone", default="UTC")
    named: dict[str, str] = field(default_factory=dict)  #: tdm.revocable-zone.<zone>


class Window(NamedTuple):
    """A daily stretch of time; `end` not after `start` is on the next day."""

    start: time
    end: time

    def contains(self, now: float, zone: tzinfo) -> bool:
        """Whether the window is open, to the second, both ends included. The window that began yesterday counts too."""
        today = datetime.fromtimestamp(now, zone).date()
        return any(begin <= int(now) <= end for begin, end in (self.on(today - timedelta(days=ago), zone) for ago in (0, 1)))

    def on(self, day: Any, zone: tzinfo) -> tuple[float, float]:
        """When the window that begins on this day is open."""
        last = day + timedelta(days=1) if self.end <= self.start else day
        return datetime.combine(day, self.start, zone).timestamp(), datetime.combine(last, self.end, zone).timestamp()


def window(text: str) -> Window | None:
    """The window in a text such as "22:00-6:00"; None if the text has another form."""
    match = _CLOCK.match(text.strip())
    if match is None:
        return None
    hour, minute, last_hour, last_minute = map(int, match.groups())
    return Window(time(hour, minute), time(last_hour, last_minute))


def time_zone(name: str) -> tzinfo:
    """The zone of this IANA name; UTC if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        return UTC


class Tdm(Plugin):
    name = "tdm"
    Args = TdmArgs
    wildcard_args = ("tdm.revocable-zone.",)

    def open(self, session: Session) -> None:
        super().open(session)
        zone = time_zone(self.args.time_zone)
        windows = {name: window(text) for name, text in self.args.named.items()}
        self._active = {name for name, daily in windows.items() if daily is not None and daily.contains(session.now, zone)}

    def filters(self) -> list[Filter]:
        return [ZoneFilter(self._active)]

    def scorers(self) -> list[Scorer]:
        return [ZoneScorer(self._active)]

    def job_order(self, job: Job) -> bool:
        return job.preemptable

    def job_pipelined(self, job: Job) -> Vote:
        return Vote.PERMIT if job.is_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return not job.preemptable and bool(job.pending)

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task] | Vote:
        """The revocable pods on nodes outside the zones, within their budgets. Revocable pods never preempt one another."""
        if preemptor.preemptable or preemptor.zone:
            return Vote.REJECT
        return within_budgets(task for task in candidates if self._movable(task) and not self._zone(task))

    def eviction_cache_key(self, evictor: Task) -> bool:
        return evictor.preemptable or bool(evictor.zone)

    def victim_tasks(self, candidates: Iterable[Task]) -> list[Task]:
        """The revocable pods in zones whose window is over, within their budgets; none until the period since the last answer is over."""
        memory = self.session.memory(self.name)
        if self.session.now - memory.get("evicted_at", -math.inf) < self.args.evict_period:
            return []
        memory["evicted_at"] = self.session.now
        over = self.args.named.keys() - self._active
        return within_budgets(task for task in candidates if self._movable(task) and self._zone(task) in over)

    @staticmethod
    def _movable(task: Task) -> bool:
        return task.preemptable and task.status == status.RUNNING and task.node >= 0

    def _zone(self, task: Task) -> str:
        return self.session.nodes.labels(task.node).get(REVOCABLE_ZONE, "")


def within_budgets(tasks: Iterable[Task]) -> list[Task]:
    """The tasks in order, of each job no more than it can spare; tasks without a job are left out."""
    left: dict[str, int] = {}
    chosen = []
    for task in tasks:
        job = task.job
        if job is not None and left.setdefault(job.uid, spare(job)) > 0:
            left[job.uid] -= 1
            chosen.append(task)
    return chosen


def spare(job: Job) -> int:
    """How many running tasks the job's disruption budget lets go. A budget that cannot be read lets none go."""
    running = job.counts[status.RUNNING]
    if text := job.annotations.get(JDB_MIN_AVAILABLE):
        least = _amount(text, len(job.tasks))
        return 0 if least is None else max(0, running - least)
    if text := job.annotations.get(JDB_MAX_UNAVAILABLE):
        most = _amount(text, len(job.tasks))
        unavailable = len(job.tasks) - job.count(status.FINISHED) - running
        return 0 if most is None else max(0, most - unavailable)
    return EVICTIONS_WITHOUT_BUDGET


def _amount(text: str, whole: int) -> int | None:
    """The amount that a number or a percentage gives; a percentage is of the whole, rounded up. None if the text is neither."""
    number = integer(text.removesuffix("%"), -1)
    if number < 0:
        return None
    return -(-number * whole // 100) if text.endswith("%") else number


class _ZoneRule:
    """A rule whose answer depends on the node's zone and on whether the task may be revoked."""

    reach = Reach.NODE
    plannable = True

    def __init__(self, active: set[str]) -> None:
        self.name = "tdm"
        self.active = active

    def prepare(self, task: Task) -> Any:
        return task

    def key(self, task: Task) -> Hashable:
        return task.zone

    def lookup(self, nodes: View) -> tuple[Mask, Mask]:
        """Two masks: nodes in any zone, and nodes in an active zone."""
        codes, zones = nodes.codes(REVOCABLE_ZONE)
        return np.array([*(bool(z) for z in zones), False])[codes], np.array([*(z in self.active for z in zones), False])[codes]


class ZoneFilter(_ZoneRule, Filter):
    """Admits only revocable tasks to nodes of a zone, and only while the zone is active."""

    def refuse(self, state: Any, nodes: View) -> Sequence[Refused]:
        zoned, active = self.lookup(nodes)
        refused = [Refused(zoned & ~active, INACTIVE)]
        return refused if state.zone else [*refused, Refused(zoned & active, NOT_REVOCABLE)]


class ZoneScorer(_ZoneRule, Scorer):
    """The score: a revocable task prefers an active zone, to leave other nodes to tasks that may not use the zone."""

    def prepare(self, task: Task) -> Any:
        return task if task.zone else None

    def score(self, state: Any, nodes: View) -> Scores:
        zoned, active = self.lookup(nodes)
        return np.where(zoned & active, MAX_SCORE, 0.0)
