"""The record of a simulation while it goes on: a row for each job, events, values over time."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heappush, heappushpop
from typing import Any, Protocol

from pumice.scheduler.model import Cluster
from pumice.simulate.job_runs import Life
from pumice.simulate.rows_in_order import RowsInOrder
from pumice.simulate.spill import Row, Spill, SpilledValues
from pumice.simulate.time_series import Gauges, Series, SeriesKey, Signal, counted
from pumice.simulate.workload import Amounts, amounts_of

RESOURCES = Amounts._fields
SHORTEST_S = 10.0  #: shorter jobs count as this long in the bounded slowdown
LONGEST = 10  #: how many of the longest waits are kept
STATES = ("waiting", "running")  #: of jobs that are counted over time
MOST_CHANGES = 4096  #: changes of signals that are remembered

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
        self.waits: dict[str, SpilledValues] = {}  #: by queue, of jobs that started
        self.turnarounds: dict[str, SpilledValues] = {}  #: by queue, of jobs that ended
        self.slowdowns: dict[str, SpilledValues] = {}
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
        self._changes: dict[tuple[Any, ...], list[tuple[Signal, float]]] = {}  #: what one event changes, by what it depends on

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

    def _change(self, life: Life, state: str, *more: tuple[str, Amounts], sign: int = 1) -> None:
        """Give the job another state, and increase series by these amounts: in the signals of its queue and of the cluster."""
        case = life.work.queue, life.state, state, more, sign
        changes = self._changes.get(case)
        if changes is None:
            if len(self._changes) >= MOST_CHANGES:
                self._changes.clear()
            changes = self._changes[case] = [*self._changed(*case)]
        Signal.change_each(changes, self.now)
        life.state = state

    def _changed(
        self, queue: str, before: str, after: str, more: tuple[tuple[str, Amounts], ...], sign: int
    ) -> Iterator[tuple[Signal, float]]:
        states = [(state, "", by) for state, by in ((before, -1.0), (after, 1.0)) if state in STATES and before != after]
        parts = [(series, name, sign * part) for series, amounts in more for name, part in zip(RESOURCES, amounts, strict=True)]
        for name, resource, by in states + parts:
            if by:
                for key in (SeriesKey(name, resource, queue), SeriesKey(name, resource)):
                    yield self.series.signal(key, self.now), by

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
                values[work.queue] = SpilledValues(self._spill)
        self.gauges.came(work.queue, work.roles)
        life.state = ""
        self._change(life, "waiting", ("asked", life.total))
        self._event((self.now, "submit", work.name, work.queue, "", life.pods, ""))

    def started(self, life: Life, tasks: Collection[Placed], *, first: bool) -> None:
        work = life.work
        if first and work.measured:
            wait = self.now - work.submit
            self.waits[work.queue].append(wait)
            self.longest.add(life, wait)
        self._change(life, "running", ("held", self._held(life, tasks)))
        self._on_nodes("start", life, tasks)

    def stopped(self, life: Life, tasks: Collection[Placed], done: float, *, kept: float, ends: str = "") -> None:
        """Record that pods which ran for `done` seconds hold nothing more; the work of `kept` seconds is not lost. `ends`: the state of
        the job if it has ended with them."""
        amounts = self._held(life, tasks)
        if ends:
            self._change(life, ends, ("held", amounts), ("asked", life.total), sign=-1)
        else:
            self._change(life, life.state, ("held", amounts), sign=-1)
        if not life.work.measured:
            return
        good, lost = self.goodput[life.work.queue], self.lost[life.work.queue]
        for index, amount in enumerate(amounts):
            good[index] += amount * kept
            lost[index] += amount * (done - kept)

    def _held(self, life: Life, tasks: Collection[Placed]) -> Amounts:
        """The resources that these pods hold together."""
        roles = life.work.roles
        if len(roles) > 1:
            return Amounts(*map(sum, zip(*(life.amount(int(task.name.rpartition("-")[2])) for task in tasks), strict=True)))
        return life.total if len(tasks) == life.pods else Amounts(*(amount * len(tasks) for amount in amounts_of(roles[0])))

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
            self._change(life, "waiting")

    def ended(self, life: Life) -> None:
        work = life.work
        if work.measured:
            self.ended_last = self.now
            turnaround = self.now - work.submit
            self.turnarounds[work.queue].append(turnaround)
            self.slowdowns[work.queue].append(slowdown(life, turnaround))
        self._event((self.now, "kill" if life.state == "killed" else "end", work.name, work.queue, "", life.pods, ""))
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


def slowdown(life: Life, turnaround: float) -> float:
    """The bounded slowdown of a job that has ended. One that was killed at its estimate ran no longer than that."""
    run, estimate = life.work.run, life.work.estimate
    ran = min(run, estimate) if life.state == "killed" and estimate is not None else run
    return max(1.0, turnaround / max(ran, SHORTEST_S))


def row(life: Life, now: float) -> Row:
    """The job's row of jobs.csv: see columns.JOBS."""
    work = life.work
    wait = (now if life.start is None else life.start) - work.submit
    turnaround = None if life.end is None else life.end - work.submit
    slow = None if turnaround is None else slowdown(life, turnaround)
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
