"""The input of the report's charts: jobs, read part by part, since a million jobs are never in memory together."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from pumice.scheduler.model import NDArray
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
        self.has_gpus = self.has_evictions = self.has_unstarted = False
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
        self.has_unstarted |= bool(np.isnan(part["start"]).any())
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


class JobsPart:
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

    def __iter__(self) -> Iterator[JobsPart]:
        for queue, columns in self._jobs:
            yield JobsPart(columns, self._place[queue], columns[self._jobs.resource], self._jobs.end_s)
