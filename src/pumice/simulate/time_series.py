"""Values over time, in a memory that does not grow with the time.

A `Signal` holds a value and its integral. The integrals are noted at equal steps. When there are too many notes, every other note is
dropped, and steps become twice as long. Between two notes, the mean is known.

`Gauges` are read from the cluster at each step: fragments of its GPUs, and how far its queues are from what they deserve. Both hold from
the last event before the step. Typical pods are the most frequent kinds among the jobs that have come so far. A queue deserves its
`deserved`; where no queue has one, its part of the cluster's capacity by weight, and what other queues do not request.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from pumice.api.quantity import is_gpu
from pumice.scheduler.model import CPU, MEMORY, Cluster, Vector
from pumice.scheduler.model.fragmentation import Column, PodShape, TypicalPods
from pumice.scheduler.model.gpu_cards import GPU_MILLI_NAME, WHOLE, Ask, GpuCards
from pumice.simulate.workload import Amounts, Role, amounts_of

MOST_NOTES = 1024


class SeriesKey(NamedTuple):
    series: str
    resource: str = ""
    queue: str = ""


class Signal:
    """A value that changes at instants."""

    __slots__ = ("_integral", "_since", "notes", "peak", "value")

    def __init__(self, now: float) -> None:
        self.value = 0.0
        self.peak = 0.0
        self._since = now
        self._integral = 0.0
        self.notes: list[float] = []  #: the integral at each step

    def set(self, now: float, value: float) -> None:
        self._integral += self.value * (now - self._since)
        self._since, self.value = now, value
        if value > self.peak:
            self.peak = value

    @staticmethod
    def change_each(changes: Iterable[tuple["Signal", float]], now: float) -> None:
        """Increase the value of each of these signals by its number."""
        for signal, more in changes:
            before = signal.value
            signal._integral += before * (now - signal._since)
            signal._since, signal.value = now, (value := before + more)
            if value > signal.peak:
                signal.peak = value

    def integral(self, now: float) -> float:
        return self._integral + self.value * (now - self._since)


class Series:
    """All signals of a simulation, by key, noted together."""

    def __init__(self) -> None:
        self.signals: dict[SeriesKey, Signal] = {}
        self._start = 0.0
        self._step = 1.0
        self._steps = 0  #: how many steps are over
        self.next_step = 1.0

    def begin(self, now: float) -> None:
        """Begin at `now`: there were no values before."""
        self._start = now
        self._went_on()

    def _went_on(self) -> None:
        self.next_step = self._start + (self._steps + 1) * self._step

    def signal(self, key: SeriesKey, now: float) -> Signal:
        signal = self.signals.get(key)
        if signal is None:
            signal = self.signals[key] = Signal(now)
            signal.notes = [0.0] * self._steps
        return signal

    def value(self, key: SeriesKey) -> float:
        """The present value of a signal; 0 if there is no such signal."""
        signal = self.signals.get(key)
        return 0.0 if signal is None else signal.value

    def advance(self, now: float) -> bool:
        """Note the integrals at all steps up to `now`. Return whether there was a step."""
        if now < self.next_step:
            return False
        while now >= (when := self.next_step):
            if self._steps == MOST_NOTES:
                self._halve()
                continue
            for signal in self.signals.values():
                signal.notes.append(signal.integral(when))
            self._steps += 1
            self._went_on()
        return True

    def _halve(self) -> None:
        for signal in self.signals.values():
            del signal.notes[::2]
        self._steps //= 2
        self._step *= 2
        self._went_on()

    def rows(self, end: float) -> Iterator[tuple[float, SeriesKey, float]]:
        """The mean of each signal over each step, in order of time. A mean that does not change is not repeated."""
        last: dict[SeriesKey, float] = {}
        integrals = [(key, self._integrals(signal, end)) for key, signal in self.signals.items()]
        for step, (begins, length) in enumerate(self._lengths(end)):
            for key, found in integrals:
                mean = round((found[step + 1] - found[step]) / length, 9)
                if last.get(key) != mean:
                    last[key] = mean
                    yield begins, key, mean
        for key, value in last.items():
            if value:
                yield end, key, 0.0

    def means(self, key: SeriesKey, end: float) -> tuple[list[float], list[float]]:
        """The means of a signal over the steps, and the lengths of the steps."""
        lengths, found = [length for _, length in self._lengths(end)], self._integrals(self.signals[key], end)
        return [(found[step + 1] - found[step]) / length for step, length in enumerate(lengths)], lengths

    def _lengths(self, end: float) -> Iterator[tuple[float, float]]:
        """The begin and the length of each step. The last step is cut at `end`."""
        for step in range(self._steps + 1):
            begins = self._start + step * self._step
            if end > begins:
                yield begins, min(end - begins, self._step)

    def _integrals(self, signal: Signal, end: float) -> list[float]:
        """The integrals of a signal at the beginnings of all steps, and at the end."""
        return [0.0, *signal.notes, signal.integral(end)]


class Gauges:
    """Fragments and fairness, read at each step of the series."""

    def __init__(self, cluster: Cluster, series: Series, now: float) -> None:
        self.cluster, self._series = cluster, series
        self._kinds: Counter[PodShape] = Counter()
        self._typical: TypicalPods | None = None
        self._queues: dict[str, None] = {}  #: the queues of the jobs that have come
        series.signal(SeriesKey("fairness"), now).set(now, 1.0)
        series.signal(SeriesKey("fragmentation", "gpu"), now)

    def came(self, queue: str, roles: Iterable[Role]) -> None:
        """Take in that a job with these pods came to the queue."""
        self._queues[queue] = None
        for role in roles:
            self._kinds[kind_of(role)] += role.count
        if len(self._kinds) > 1:  # else the only kind remains the typical one
            self._typical = None

    def read(self, now: float) -> None:
        """Set the values that hold since `now`."""
        self._read_fragments(now)
        self._read_queues(now)

    def _read_fragments(self, now: float) -> None:
        shares = GPU_MILLI_NAME in self.cluster.dimensions.columns
        left, value = self.cluster.index(GpuCards).left if shares else idle_cards(self.cluster), 0.0
        if left.any():
            typical = self._typical = self._typical or TypicalPods(self._kinds)
            value = float((typical.fragments if shares else typical.fragments_of_whole)(self.cluster.nodes.idle[CPU], left).sum()) / WHOLE
        self._series.signal(SeriesKey("fragmentation", "gpu"), now).set(now, value)

    def _read_queues(self, now: float) -> None:
        """Set how far queues are from what they deserve, in GPUs if the cluster has any, else in CPUs."""
        value = self._series.value
        resource = "gpu" if value(SeriesKey("capacity", "gpu")) else "cpu"
        names = list(self._queues)
        asked, held = (np.array([value(SeriesKey(series, resource, name)) for name in names]) for series in ("asked", "held"))
        deserved = self._deserved(resource, names, value(SeriesKey("capacity", resource)), asked)
        for name, amount in zip(names, deserved.tolist(), strict=True):
            self._series.signal(SeriesKey("deserved", resource, name), now).set(now, amount)
        more = (held - np.minimum(deserved, asked))[asked > 0]
        self._series.signal(SeriesKey("fairness"), now).set(now, jains_index(more))
        for name, amount in zip(names, (held - np.minimum(deserved, asked)).tolist(), strict=True):
            self._series.signal(SeriesKey("fairness", resource, name), now).set(now, amount)

    def _deserved(self, resource: str, names: list[str], capacity: float, asked: Column) -> Column:
        queues = [self.cluster.queue(name) for name in names]
        if any(queue.deserves.any() for queue in queues):
            return np.array([getattr(counted(self.cluster, queue.deserved), resource) for queue in queues])
        return by_weight(capacity, asked, [queue.weight for queue in queues])


@lru_cache(maxsize=4096)
def kind_of(role: Role) -> PodShape:
    """The shape of a role's pods, by which fragments are counted."""
    amounts = amounts_of(role)
    milli = round(amounts.gpu * WHOLE)
    ask = Ask() if not milli else Ask(1, float(milli)) if milli < WHOLE else Ask(int(milli // WHOLE), WHOLE)
    return PodShape(amounts.cpu * 1000, ask)


def idle_cards(cluster: Cluster) -> Column:
    """The number of idle cards of each node, in a cluster that does not share cards."""
    whole = [cluster.nodes.idle[column] / 1000 for name, column in cluster.dimensions.columns.items() if is_gpu(name)]
    idle: Column = np.sum(whole, axis=0) if whole else np.zeros(len(cluster.nodes))
    return np.clip(np.ceil(idle), 0, int(idle.max(initial=0)))


def counted(cluster: Cluster, amounts: Vector) -> Amounts:
    """The amounts of a vector as whole CPUs, bytes and whole GPUs."""
    columns = cluster.dimensions.columns
    gpus = sum(float(amounts[column]) for name, column in columns.items() if is_gpu(name))
    gpus += float(amounts[columns[GPU_MILLI_NAME]]) / 1000 if GPU_MILLI_NAME in columns else 0.0
    return Amounts(float(amounts[CPU]) / 1000, float(amounts[MEMORY]), gpus / 1000)


def by_weight(capacity: float, asked: Column, weights: list[int]) -> Column:
    """The part of each queue by weight, at most what it requests. What a queue does not request goes to the others."""
    shares, left, weight = np.zeros(len(asked)), capacity, sum(weights)
    for index in sorted(range(len(asked)), key=lambda index: asked[index] / max(weights[index], 1)):
        shares[index] = min(asked[index], left * weights[index] / max(weight, 1))
        left, weight = left - shares[index], weight - weights[index]
    return shares


def jains_index(values: Column) -> float:
    """Jain's fairness index: 1 if all values are equal, 1/n if only one of n values is not 0."""
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / (len(values) * squares) if squares else 1.0
