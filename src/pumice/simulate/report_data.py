"""The input of the report's charts: jobs, read part by part, since a million jobs are never in memory together; and values over time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pumice.scheduler.model.resources import NDArray
from pumice.simulate.spill import Spill

Column = NDArray[Any]
Columns = Mapping[str, Column]
DRAWN_ONE_BY_ONE = 240  #: up to this number of jobs, each has a bar; with more, the chart shows what queues hold
NUMBERS = ("submit", "start", "end", "wait", "slowdown", "cpu", "gpu", "evictions", "lost")
REST = "other queues"


def columns_for(jobs: int) -> tuple[str, ...]:
    """The columns of jobs.csv that the charts need for this number of jobs."""
    return ("queue", *NUMBERS, *(("job",) if jobs <= DRAWN_ONE_BY_ONE else ()))


class ReportJobs:
    """The jobs of a run. They are read once, and used for every chart."""

    def __init__(self, parts: Iterable[Columns]) -> None:
        self.names: list[str] = []  #: of the first jobs, as many as are drawn one by one
        self.count = 0
        self.has_gpus = self.has_evictions = False
        self.first_s = self.longest_wait_s = 0.0
        self.end_s = 1.0  #: the last instant of which anything is known
        self.queues: Counter[str] = Counter()
        self._numbers: dict[str, int] = {}  #: of queues, in the order in which they came
        self._spill, self._parts = Spill(), list[tuple[int, int]]()
        for part in parts:
            if len(part["submit"]):
                self._add(part)

    def _add(self, part: Columns) -> None:
        count = len(part["submit"])
        self.names += map(str, part.get("job", ())[: DRAWN_ONE_BY_ONE - len(self.names)])
        self.count += count
        self.has_gpus |= bool(part["gpu"].any())
        self.has_evictions |= bool(part["evictions"].any())
        self.first_s = min(self.first_s, float(part["submit"].min()))
        self.longest_wait_s = max(self.longest_wait_s, float(np.nanmax(part["wait"])))
        self.end_s = max(self.end_s, float(np.nanmax(part["submit"] + part["wait"])), float(np.nanmax(part["end"], initial=0.0)))
        queues = list(map(str, part["queue"]))
        self.queues.update(queues)
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in queues]
        columns = np.array([numbers, *(part[name] for name in NUMBERS)], float)
        self._parts.append((self._spill.add(columns), count))

    def __iter__(self) -> Iterator[tuple[Column, Columns]]:
        """The jobs part by part: the index of each job's queue in `known_queues`, and the other columns."""
        for begin, count in self._parts:
            data = self._spill.read(begin, 8 * count * (1 + len(NUMBERS)))
            queue, *columns = np.frombuffer(data).reshape(-1, count)
            yield queue.astype(int), dict(zip(NUMBERS, columns, strict=True))

    @property
    def resource(self) -> str:
        """The resource by which the sizes of jobs are measured."""
        return "gpu" if self.has_gpus else "cpu"

    @property
    def known_queues(self) -> list[str]:
        return list(self._numbers)


class Part:
    """Some of the jobs, in their queues and with their sizes."""

    def __init__(self, columns: Columns, queue_of: Column, size: Column, end_s: float) -> None:
        self.columns = columns
        self.queue_of = queue_of
        self.size = size
        self.started: Column = np.where(np.isnan(columns["start"]), end_s, columns["start"])
        self.ended: Column = np.where(np.isnan(columns["end"]), end_s, columns["end"])

    def of(self, queue: int) -> Column:
        """The indices of the jobs of a queue."""
        found: Column = np.flatnonzero(self.queue_of == queue)
        return found


class Grouped:
    """All jobs, in at most `most_queues` queues: if there are more, the smallest count as one."""

    def __init__(self, jobs: ReportJobs, most_queues: int) -> None:
        self._jobs = jobs
        names = sorted(jobs.queues)
        by_size = sorted(names, key=lambda name: -jobs.queues[name])
        kept = sorted(by_size[: most_queues if len(names) <= most_queues else most_queues - 1])
        self.queues = kept + ([REST] if len(kept) < len(names) else [])
        place = {name: index for index, name in enumerate(kept)}
        self._place = np.array([place.get(name, len(kept)) for name in jobs.known_queues], int)

    def __iter__(self) -> Iterator[Part]:
        for queue, columns in self._jobs:
            yield Part(columns, self._place[queue], columns[self._jobs.resource], self._jobs.end_s)


# Values over time at few points, as a report shows them: step functions, and the rows of series.csv by their keys.

POINTS = 240


def bins(begin_s: float, end_s: float, points: int = POINTS) -> Column:
    """The edges of `points` equal intervals."""
    return np.linspace(begin_s, max(end_s, begin_s + 1e-9), points + 1)


def means(time_s: Column, values: Column, edges: Column) -> Column:
    """The means of a step function in each interval. It has each value from its time on, and is 0 before the first time."""
    if not len(time_s):
        return np.zeros(len(edges) - 1)
    until = max(float(edges[-1]), float(time_s[-1]))
    knots = np.concatenate(([min(float(edges[0]), float(time_s[0]))], time_s, [until]))
    integral = np.zeros(len(knots))
    steps = np.diff(knots[1:])
    steps *= values
    np.cumsum(steps, out=integral[2:])
    averages: Column = np.diff(np.interp(edges, knots, integral)) / np.diff(edges)
    return averages


def between(begin_s: Column, end_s: Column, amounts: Column, edges: Column) -> Column:
    """The mean total of the amounts in each interval. Each amount counts from its begin to its end; NaN means never."""
    came, gone = ~np.isnan(begin_s), ~np.isnan(end_s) & ~np.isnan(begin_s)
    times = np.concatenate((begin_s[came], end_s[gone]))
    jumps = np.concatenate((amounts[came], -amounts[gone]))
    order = np.argsort(times, kind="stable")
    times, jumps = times[order], jumps[order]
    return means(times, np.cumsum(jumps, out=jumps), edges)


def up_to(values: Column, points: Column) -> Column:
    """How many of the values are at most each point."""
    return np.searchsorted(np.sort(values), points, side="right")


def bent_points(most: float, points: int = 120) -> Column:
    """Points from 0 to `most`, close together where they are small."""
    spread: Column = np.expm1(np.linspace(0, np.log1p(max(most, 1.0)), points))
    spread[-1] = max(most, 1.0)
    return spread


class ReportSeries:
    """Columns of series.csv by key. A key is series, resource, queue."""

    def __init__(self, series: Columns) -> None:
        names, code = [], np.zeros(len(series["time"]), np.int64)
        for column in ("series", "resource", "queue"):
            values, of = np.unique(series[column], return_inverse=True)
            names.append([str(value) for value in values])
            code = code * max(1, len(values)) + of
        order = np.argsort(code, kind="stable")
        codes, begins = np.unique(code[order], return_index=True)
        places = np.unravel_index(codes, [max(1, len(values)) for values in names])
        keys = [tuple(values[index] for values, index in zip(names, place, strict=True)) for place in zip(*places, strict=True)]
        rows = np.split(order, begins[1:])
        self._of = {key: (series["time"][found], series["value"][found]) for key, found in zip(keys, rows, strict=False)}

    def keys(self, name: str, *, of_queues: bool) -> list[tuple[str, str, str]]:
        return [key for key in self._of if key[0] == name and bool(key[2]) == of_queues]

    def means(self, name: str, resource: str, queue: str, edges: Column) -> Column | None:
        """The means of a series in each interval; None if there is no such series."""
        found = self._of.get((name, resource, queue))
        return None if found is None else means(*found, edges)
