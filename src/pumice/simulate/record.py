"""The record of a simulation while it goes on: a row for each job, events, values over time."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heappush, heappushpop
from typing import Protocol

from pumice.scheduler.model import Cluster
from pumice.simulate.job_runs import Life
from pumice.simulate.rows_in_order import RowsInOrder
from pumice.simulate.spill import Row, Spill, Values
from pumice.simulate.time_series import Gauges, Series, SeriesKey, Signal, counted
from pumice.simulate.workload import Amounts, amounts_of

RESOURCES = Amounts._fields
SHORTEST_S = 10.0  #: shorter jobs count as this long in the bounded slowdown
LONGEST = 10  #: how many of the longest waits are kept
STATES = ("waiting", "running")
COUNTED, ONE = ("",), (1.0,)  #: of a series that counts jobs: the resource, and by how much one job changes it

Sink = Callable[[Row], None]


class Placed(Protocol):
    """A pod, and where it runs."""

    @property
    def name(self) -> str: ...
    @property
    def node_name(self) -> str: ...


def _ignore(row: Row) -> None:
    """Drop a row that is not wanted."""


class Longest:
    """Of all jobs that were added, the ten that waited longest; of jobs with equal waits, those that came first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Life]] = []

    def add(self, life: Life, wait: float) -> None:
        entry = (wait, -life.number, life)
        if len(self._heap) < LONGEST:
            heappush(self._heap, entry)
        else:
            heappushpop(self._heap, entry)

    def __iter__(self) -> Iterator[tuple[Life, float]]:
        return iter([(life, wait) for wait, _, life in sorted(self._heap, reverse=True)])


class Record:
    """Rows of jobs, events and values of one simulation.

    `job` and `event` are given each row as soon as it is complete, jobs in the order of arrival.
    """

    def __init__(self, job: Sink = _ignore, event: Sink = _ignore) -> None:
        self.given_up = ""  #: why the simulation was not played to its end
        self.turns = 0  #: how often the scheduler looked at a job that waits: the work that it had
        self.series = Series()
        self.longest = Longest()
        self.waits: dict[str, Values] = {}  #: by queue, of jobs that started
        self.turnarounds: dict[str, Values] = {}  #: by queue, of jobs that ended
        self.slowdowns: dict[str, Values] = {}
        self.states: Counter[tuple[str, str]] = Counter()  #: by queue and state at the end
        self.evictions: Counter[str] = Counter()  #: by queue
        self.goodput: dict[str, list[float]] = {}  #: by queue: resource-seconds of work that was kept
        self.lost: dict[str, list[float]] = {}  #: by queue: resource-seconds of work that was lost
        self.submitted_first: float | None = None
        self.ended_last = 0.0
        self.now = 0.0
        self._event = event
        self._rows = RowsInOrder(job)
        self._spill = Spill()
        self._signals: dict[tuple[str, str, str], tuple[Signal, Signal]] = {}  #: the signals of a queue, and of the cluster

    @property
    def queues(self) -> list[str]:
        return list(self.goodput)

    # -- time

    def begin(self, now: float, cluster: Cluster) -> None:
        """Begin the record, when the first job is about to come."""
        self.now = now
        self.series.begin(now)
        self.gauges = Gauges(cluster, self.series, now)
        self.capacity(cluster)

    def advance(self, now: float) -> None:
        if now >= self.series.next_step:
            self.look(now)
            self.move_on(now)
        self.now = now

    def look(self, until: float) -> None:
        """Read the gauges, which hold since the last event, if a step of the series is over by `until`."""
        if until >= self.series.next_step:
            self.gauges.read(self.now)

    def move_on(self, now: float) -> None:
        """Go on to `now`, when something happens."""
        self.now = now
        self.series.advance(now)

    def _add(self, series: str, queue: str, amounts: Iterable[float], sign: int = 1, resources: Iterable[str] = RESOURCES) -> None:
        """Increase the values of a series for some resources, of the queue and of the cluster."""
        for resource, amount in zip(resources, amounts, strict=True):
            if amount:
                signals = self._signals.get((series, resource, queue)) or self._new_signals(series, resource, queue)
                Signal.add_to_each(signals, self.now, sign * amount)

    def _new_signals(self, series: str, resource: str, queue: str) -> tuple[Signal, Signal]:
        keys = SeriesKey(series, resource, queue), SeriesKey(series, resource)
        found = self._signals[series, resource, queue] = self.series.signal(keys[0], self.now), self.series.signal(keys[1], self.now)
        return found

    def _count(self, life: Life, state: str) -> None:
        """Give the job another state, and count the jobs in each state."""
        queue = life.work.queue
        if life.state in STATES:
            self._add(life.state, queue, ONE, -1, COUNTED)
        life.state = state
        if state in STATES:
            self._add(state, queue, ONE, 1, COUNTED)

    def capacity(self, cluster: Cluster) -> None:
        for name, value in zip(RESOURCES, counted(cluster, cluster.nodes.total()), strict=True):
            self.series.signal(SeriesKey("capacity", name), self.now).set(self.now, value)

    def node(self, event: str, name: str, cluster: Cluster) -> None:
        """Record that a node has joined or failed. `cluster` already has the new nodes."""
        self._event((self.now, event, "", "", name, 0, ""))
        self.capacity(cluster)

    # -- jobs

    def submitted(self, life: Life) -> None:
        work = life.work
        if self.submitted_first is None and work.measured:
            self.submitted_first = self.now
        if work.queue not in self.goodput:
            self.goodput[work.queue], self.lost[work.queue] = [0.0] * 3, [0.0] * 3
            for values in (self.waits, self.turnarounds, self.slowdowns):
                values[work.queue] = Values(self._spill)
        self.gauges.came(work.queue, work.roles)
        life.state = ""
        self._count(life, "waiting")
        self._add("asked", work.queue, life.total)
        self._event((self.now, "submit", work.name, work.queue, "", life.pods, ""))

    def started(self, life: Life, tasks: Collection[Placed], *, first: bool) -> None:
        work = life.work
        if first and work.measured:
            wait = self.now - work.submit
            self.waits[work.queue].append(wait)
            self.longest.add(life, wait)
        self._count(life, "running")
        self._hold(life, tasks, 1)
        self._on_nodes("start", life, tasks)

    def stopped(self, life: Life, tasks: Collection[Placed], done: float, *, kept: float) -> None:
        """Record that pods which ran for `done` seconds hold nothing more; the work of `kept` seconds is not lost."""
        amounts = self._hold(life, tasks, -1)
        if not life.work.measured:
            return
        good, lost = self.goodput[life.work.queue], self.lost[life.work.queue]
        for index, amount in enumerate(amounts):
            good[index] += amount * kept
            lost[index] += amount * (done - kept)

    def _hold(self, life: Life, tasks: Collection[Placed], sign: int) -> list[float]:
        """Record that these pods hold their resources from now on (`sign` 1), or no longer (-1). Return the amounts of all together."""
        if len(life.work.roles) == 1:
            held = [amount * len(tasks) for amount in amounts_of(life.work.roles[0])]
        else:
            held = [sum(amounts) for amounts in zip(*(life.amount(int(task.name.rpartition("-")[2])) for task in tasks), strict=True)]
        self._add("held", life.work.queue, held, sign)
        return held

    def evicted(self, life: Life, tasks: Sequence[Placed], action: str, beneficiary: str = "") -> None:
        self.evictions[life.work.queue] += len(tasks) if life.work.measured else 0
        detail = f"{action} for {beneficiary}" if beneficiary else action
        self._on_nodes("evict", life, tasks, detail)

    def _on_nodes(self, event: str, life: Life, tasks: Iterable[Placed], detail: str = "") -> None:
        """Record an event for each node on which the pods are."""
        if self._event is not _ignore:
            counts: dict[str, int] = {}
            for task in tasks:
                counts[task.node_name] = counts.get(task.node_name, 0) + 1
            for node, count in counts.items():
                self._event((self.now, event, life.work.name, life.work.queue, node, count, detail))

    def returned(self, life: Life) -> None:
        """Record that evicted pods of the job wait again."""
        if not life.runs:
            self._count(life, "waiting")

    def ended(self, life: Life, state: str) -> None:
        work = life.work
        self._count(life, state)
        if work.measured:
            self.ended_last = self.now
            turnaround = self.now - work.submit
            self.turnarounds[work.queue].append(turnaround)
            self.slowdowns[work.queue].append(slowdown(turnaround, work.run))
        self._add("asked", work.queue, life.total, -1)
        self._event((self.now, "kill" if state == "killed" else "end", work.name, work.queue, "", life.pods, ""))
        self._finish(life)

    def close(self, left: Iterable[Life]) -> None:
        """End the record: nothing more will happen. The jobs `left` have not ended."""
        self.gauges.read(self.now)
        for life in left:
            if life.start is None and life.work.measured:
                self.longest.add(life, self.now - life.work.submit)
            self._finish(life)

    def _finish(self, life: Life) -> None:
        self.states[life.work.queue, life.state] += life.work.measured
        self._rows.add(life.number, row(life, self.now))


def slowdown(turnaround: float, run: float) -> float:
    return max(1.0, turnaround / max(run, SHORTEST_S))


def row(life: Life, now: float) -> Row:
    """The job's row of jobs.csv: see columns.JOBS."""
    work = life.work
    wait = (now if life.start is None else life.start) - work.submit
    turnaround = None if life.end is None else life.end - work.submit
    slow = None if turnaround is None else slowdown(turnaround, work.run)
    times = (work.submit, life.start, life.end, wait, turnaround, slow, work.run, work.estimate)
    return (
        work.name,
        work.queue,
        work.user,
        *times,
        life.pods,
        *life.total,
        work.priority,
        life.evictions,
        life.lost,
        life.state,
        life.reason,
    )
