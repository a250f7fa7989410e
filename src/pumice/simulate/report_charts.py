"""The data of the report's charts, as plain columns for charts.js: few points, however many jobs there were.

A run is read from the columns of `output_columns.py`, as arrays; NaN means that something never happened.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pumice.api.plural import plural
from pumice.simulate.report_data import DRAWN_ONE_BY_ONE, Column, Columns, Grouped, JobsPart, ReportJobs
from pumice.simulate.report_series import POINTS, ReportSeries, bent_points, between, bins, up_to
from pumice.simulate.spill import Joined, Spill, SpilledValues

Chart = dict[str, Any]
MOST_ROWS = 16  #: queues that have a row of their own; if there are more, the smallest are shown together
MOST_LINES = 8  #: queues that have a line of their own
FEW = 1024  #: how many numbers of one queue and size are kept in memory
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
UNITS = {"gpu": "GPUs", "cpu": "CPUs", "memory": "bytes"}


class ChartData:
    def __init__(self, jobs: ReportJobs, series: ReportSeries, most_queues: int) -> None:
        self.jobs = jobs
        self.series = series
        self.parts = Grouped(jobs, most_queues)
        self.queues = self.parts.queues
        self.end_s = jobs.end_s
        self.edges = bins(jobs.first_s, self.end_s)
        self.time = rounded(self.edges[:-1])

    def of_queues(self, amount: Callable[[JobsPart, Column], Any], points: int = POINTS) -> list[Column]:
        """For each queue `points` numbers: what `amount` returns for its jobs in a part, summed up over all parts."""
        rows = [np.zeros(points) for _ in self.queues]
        for part in self.parts:
            for queue, row in enumerate(rows):
                row += amount(part, part.of(queue))
        return rows


def charts(parts: Iterable[Columns], series: Columns) -> list[Chart]:
    """The charts of a run; an empty list if it has no jobs."""
    jobs, curves = ReportJobs(parts), ReportSeries(series)
    if not jobs.count:
        return []
    rows = ChartData(jobs, curves, MOST_ROWS)
    lines = rows if len(rows.queues) <= MOST_LINES else ChartData(jobs, curves, MOST_LINES)
    found = [
        _schedule(rows),
        _allocation(lines),
        _lengths(lines),
        _waits_by_queue(lines),
        _waits_by_size(lines),
        _waits_grid(rows),
        _slowdown(rows),
        _fairness(lines),
        _evictions(rows),
        _fragmentation(lines),
    ]
    return [chart for chart in found if chart is not None]


def _schedule(shown: ChartData) -> Chart:
    if shown.jobs.count <= DRAWN_ONE_BY_ONE:
        text = "Each bar is a job while it runs; the dotted line before it is its wait."
        bars = _bars(shown)
        return {
            "kind": "gantt",
            "title": "Schedule by queue",
            "description": text,
            "rows": shown.queues,
            "bars": bars,
            "until": shown.end_s,
        }
    held = shown.of_queues(lambda part, of: between(part.columns["start"][of], part.ended[of], part.size[of], shown.edges))
    wanted = shown.of_queues(lambda part, of: between(part.columns["submit"][of], part.ended[of], part.size[of], shown.edges))
    rows = [
        {"name": name, "held": rounded(holds), "wanted": rounded(wants)}
        for name, holds, wants in zip(shown.queues, held, wanted, strict=True)
    ]
    text = f"{UNITS[shown.jobs.resource]} that jobs hold, and with them what waiting jobs ask for. Each band has a scale of its own."
    return {"kind": "bands", "title": "Schedule by queue", "description": text, "x": shown.time, "rows": rows, "wide": True}


def _bars(shown: ChartData) -> Chart:
    bars: Chart = {"name": shown.jobs.names, "queue": [], "submit": [], "start": [], "end": [], "note": []}
    for part in shown.parts:
        bars["queue"] += part.queue_of.tolist()
        for name in ("submit", "start", "end"):
            bars[name] += rounded(part.columns[name])
        bars["note"] += [
            f"{count:.0f} of its pods {plural(count, 'was', 'were')} evicted" if count else ""
            for count in part.columns["evictions"].tolist()
        ]
    return bars


def _allocation(shown: ChartData) -> Chart | None:
    series = []
    for _, resource, _ in shown.series.keys("capacity", of_queues=False):
        held, capacity = (shown.series.means(name, resource, "", shown.edges) for name in ("held", "capacity"))
        if held is not None and capacity is not None and capacity.any():
            series.append({"name": resource, "y": rounded(np.divide(held, capacity, out=np.zeros(len(held)), where=capacity > 0))})
    if not series:
        return None
    text = "The share of the cluster's capacity that pods hold."
    return _over_time(shown, "Utilisation and allocation", text, series, yFormat="percent", yMax=1)


def _lengths(shown: ChartData) -> Chart:
    rows = shown.of_queues(lambda part, of: between(part.columns["submit"][of], part.started[of], np.ones(len(of)), shown.edges))
    series = [{"name": name, "y": rounded(row)} for name, row in zip(shown.queues, rows, strict=True)]
    return _over_time(
        shown, "Queue lengths", "Jobs that have not started yet, on average over each interval.", series, shape="stack", yLabel="jobs"
    )


def _waits_by_queue(shown: ChartData) -> Chart:
    points = bent_points(shown.jobs.longest_wait_s)
    rows = shown.of_queues(lambda part, of: up_to(part.columns["wait"][of], points), len(points))
    return _waits(shown, "queue", points, list(zip(shown.queues, rows, strict=True)))


def _waits_by_size(shown: ChartData) -> Chart:
    points = bent_points(shown.jobs.longest_wait_s)
    rows = np.zeros((len(SIZES) + 1, len(points)))
    for part in shown.parts:
        sizes = _size_classes(part)
        for size, row in enumerate(rows):
            row += up_to(part.columns["wait"][sizes == size], points)
    return _waits(shown, "size", points, [(_size_label(size), row) for size, row in enumerate(rows) if row[-1]])


def _waits(shown: ChartData, by: str, points: Column, rows: list[tuple[str, Column]]) -> Chart:
    """A chart of waits. Each row has, for each point, how many jobs waited at most so long; the last point counts all jobs."""
    return {
        "kind": "lines",
        "title": f"Wait by {by}",
        "description": "The share of jobs that waited at most so long; long waits are drawn closer together." + _until_the_end(shown),
        "x": rounded(points),
        "series": [{"name": name, "y": rounded(row / max(1, row[-1]))} for name, row in rows],
        "xFormat": "duration",
        "xScale": "log",
        "yFormat": "percent",
        "yMax": 1,
        "xLabel": "wait",
        "yLabel": "share of jobs",
    }


def _until_the_end(shown: ChartData) -> str:
    return " Jobs that never started count as well, with their wait until the end." if shown.jobs.has_unstarted else ""


def _waits_grid(shown: ChartData) -> Chart:
    spill = Spill()
    waits = [[SpilledValues(spill, FEW) for _ in range(len(SIZES) + 1)] for _ in shown.queues]
    for part in shown.parts:
        sizes = _size_classes(part)
        for queue, by_size in enumerate(waits):
            for size, values in enumerate(by_size):
                values.extend(part.columns["wait"][(part.queue_of == queue) & (sizes == size)])
    known = [size for size in range(len(SIZES) + 1) if any(len(by_size[size]) for by_size in waits)]
    rows = [
        {"name": name, "values": [_percentile(by_size[size], 95, None) for size in known]}
        for name, by_size in zip(shown.queues, waits, strict=True)
    ]
    return {
        "kind": "heat",
        "title": "95th percentile of the wait, by queue and size",
        "description": "The fuller the colour, the longer the wait." + _until_the_end(shown),
        "x": [_size_label(size) for size in known],
        "rows": rows,
        "yFormat": "duration",
    }


def _slowdown(shown: ChartData) -> Chart:
    spill = Spill()
    slowdowns = [SpilledValues(spill, FEW) for _ in shown.queues]
    for part in shown.parts:
        for queue, values in enumerate(slowdowns):
            found = part.columns["slowdown"][part.of(queue)]
            values.extend(found[~np.isnan(found)])
    series = [
        {"name": name, "y": [_percentile(values, share, 0) for values in slowdowns]}
        for name, share in (("median", 50), ("95th percentile", 95))
    ]
    text = "Time from submit to end over run time; jobs below 10 s count as 10 s."
    return {"kind": "bars", "title": "Bounded slowdown by queue", "description": text, "labels": shown.queues, "series": series}


def _percentile(values: SpilledValues, share: float, otherwise: float | None) -> float | None:
    return round(Joined([values]).reached(share), 3) if len(values) else otherwise


def _size_classes(part: JobsPart) -> Column:
    found: Column = np.searchsorted(SIZES, part.size)
    return found


def _fairness(shown: ChartData) -> Chart | None:
    series: list[Chart] = []
    for _, resource, queue in shown.series.keys("deserved", of_queues=True):
        held, deserved, asked = (shown.series.means(name, resource, queue, shown.edges) for name in ("held", "deserved", "asked"))
        if resource == shown.jobs.resource and held is not None and deserved is not None and len(series) < MOST_LINES:
            due = deserved if asked is None else np.minimum(deserved, asked)
            series.append({"name": queue, "y": rounded(held - due)})
    if not series:
        return None
    least = "less the smaller of what it deserves and what it asks for: below 0 it gets too little."
    text = f"{UNITS[shown.jobs.resource]} that each queue holds, {least}"
    return _over_time(shown, "Fairness over time", text, series, yLabel=UNITS[shown.jobs.resource])


def _evictions(shown: ChartData) -> Chart | None:
    if not shown.jobs.has_evictions:
        return None
    evictions = shown.of_queues(lambda part, of: part.columns["evictions"][of].sum(), 1)
    lost = shown.of_queues(lambda part, of: part.columns["lost"][of].sum(), 1)
    series = [
        {"name": "evictions", "y": [float(row[0]) for row in evictions]},
        {"name": "lost pod-hours", "y": [float(row[0]) / 3600 for row in lost]},
    ]
    text = "Evictions of pods in each queue, and the work that had to be done again: pods times hours."
    return {"kind": "bars", "title": "Evictions and lost work", "description": text, "labels": shown.queues, "series": series}


def _fragmentation(shown: ChartData) -> Chart | None:
    series = []
    for _, resource, _ in shown.series.keys("fragmentation", of_queues=False):
        series.append({"name": UNITS[resource or "gpu"], "y": rounded(shown.series.means("fragmentation", resource, "", shown.edges))})
    text = "What is idle where the jobs seen so far could not use it."
    return _over_time(shown, "Fragmentation", text, series, shape="area", yLabel="GPUs") if series else None


def _over_time(shown: ChartData, title: str, description: str, series: list[Chart], **more: Any) -> Chart:
    plain = {"kind": "lines", "title": title, "description": description, "x": shown.time, "series": series, "shape": "step"}
    return plain | {"xFormat": "duration", "xLabel": "time"} | more


def _size_label(index: int) -> str:
    if index == len(SIZES):
        return f"above {SIZES[-1]}"
    below = SIZES[index - 1] + 1 if index else SIZES[0]
    return str(SIZES[index]) if below >= SIZES[index] else f"{below} to {SIZES[index]}"


def rounded(values: Column | None) -> list[Any]:
    """The values, rounded to as many digits as a chart shows; None for NaN."""
    return [None if value != value else value for value in np.round(np.asarray(values, float), 4).tolist()]
