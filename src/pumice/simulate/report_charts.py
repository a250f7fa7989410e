"""What the report's charts show, as plain columns for charts.js: few points, however many jobs there were.

A run comes as the columns of `columns.py`, as arrays; NaN is what never happened.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pumice.simulate.report_series import Columns, ReportSeries
from pumice.simulate.resampling import Column, bent_points, between, bins, shares_up_to

Chart = dict[str, Any]
DRAWN_ONE_BY_ONE = 240  #: jobs; of more the chart shows what queues hold
COLUMNS = ("queue", "submit", "start", "end", "wait", "slowdown", "cpu", "gpu", "evictions", "lost")  #: of jobs, that all charts read
MOST_ROWS = 16  #: queues that have a row of their own; the smallest of more are shown together
MOST_LINES = 8  #: queues that have a line of their own
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
REST = "other queues"
UNITS = {"gpu": "GPUs", "cpu": "CPUs", "memory": "bytes"}


def columns_for(jobs: int) -> tuple[str, ...]:
    """Those of jobs.csv that the charts of so many jobs are made of."""
    return (*COLUMNS, "job") if jobs <= DRAWN_ONE_BY_ONE else COLUMNS


class Shown:
    """The run's jobs as charts group them."""

    def __init__(self, jobs: Columns, series: ReportSeries, most_queues: int) -> None:
        self.jobs = jobs
        self.series = series
        self.end_s = last_instant(jobs)
        self.resource = "gpu" if jobs["gpu"].any() else "cpu"  #: in which jobs are measured
        self.size: Column = jobs[self.resource]
        names, of, counts = np.unique(jobs["queue"], return_inverse=True, return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[: most_queues if len(names) <= most_queues else most_queues - 1])
        place = np.full(len(names), len(kept))
        place[kept] = np.arange(len(kept))
        self.queues = [str(names[index]) for index in kept] + ([REST] if len(kept) < len(names) else [])
        self.queue_of: Column = place[of]
        self.ends: Column = np.where(np.isnan(jobs["end"]), self.end_s, jobs["end"])
        self.edges = bins(min(0.0, float(jobs["submit"].min())), self.end_s)
        self.time = rounded(self.edges[:-1])

    def members(self, queue: int) -> Column:
        found: Column = np.flatnonzero(self.queue_of == queue)
        return found

    def sizes(self) -> list[tuple[str, Column]]:
        """Classes of sizes, each with its jobs."""
        upper = np.searchsorted(SIZES, self.size)
        labels = [_size_label(index) for index in range(len(SIZES) + 1)]
        return [(labels[index], np.flatnonzero(upper == index)) for index in np.unique(upper)]


def charts(jobs: Columns, series: Columns) -> list[Chart]:
    told = ReportSeries(series)
    rows = Shown(jobs, told, MOST_ROWS)
    lines = rows if len(rows.queues) <= MOST_LINES else Shown(jobs, told, MOST_LINES)
    found = [
        _schedule(rows),
        _allocation(lines),
        _lengths(lines),
        _waits(lines, "queue", [(name, lines.members(index)) for index, name in enumerate(lines.queues)]),
        _waits(lines, "size", lines.sizes()),
        _waits_grid(rows),
        _slowdown(rows),
        _fairness(lines),
        _evictions(rows),
        _fragmentation(lines),
    ]
    return [chart for chart in found if chart is not None]


def _schedule(shown: Shown) -> Chart:
    jobs = shown.jobs
    if len(jobs["submit"]) <= DRAWN_ONE_BY_ONE:
        columns = {
            "name": [str(name) for name in jobs["job"]],
            "queue": shown.queue_of.tolist(),
            "submit": rounded(jobs["submit"]),
            "start": rounded(jobs["start"]),
            "end": rounded(jobs["end"]),
            "note": [f"{count} of its pods were evicted" if count else "" for count in jobs["evictions"].tolist()],
        }
        text = "Each bar is a job while it runs; the dotted line before it is its wait."
        return {
            "kind": "gantt",
            "title": "Schedule by queue",
            "description": text,
            "rows": shown.queues,
            "bars": columns,
            "until": shown.end_s,
        }
    rows = []
    for index, name in enumerate(shown.queues):
        of = shown.members(index)
        sizes = shown.size[of]
        held = between(jobs["start"][of], shown.ends[of], sizes, shown.edges)
        wanted = between(jobs["submit"][of], shown.ends[of], sizes, shown.edges)
        rows.append({"name": name, "held": rounded(held), "wanted": rounded(wanted)})
    text = f"{UNITS[shown.resource]} that jobs hold, and with them what waiting jobs ask for. Each band has a scale of its own."
    return {"kind": "bands", "title": "Schedule by queue", "description": text, "x": shown.time, "rows": rows, "wide": True}


def _allocation(shown: Shown) -> Chart | None:
    series = []
    for _, resource, _ in shown.series.keys("capacity", of_queues=False):
        held, capacity = (shown.series.means(name, resource, "", shown.edges) for name in ("held", "capacity"))
        if held is not None and capacity is not None and capacity.any():
            series.append({"name": resource, "y": rounded(np.divide(held, capacity, out=np.zeros(len(held)), where=capacity > 0))})
    if not series:
        return None
    text = "The share of the cluster's capacity that pods hold."
    return _over_time(shown, "Utilisation and allocation", text, series, yFormat="percent", yMax=1)


def _lengths(shown: Shown) -> Chart:
    submit = shown.jobs["submit"]
    started = np.where(np.isnan(shown.jobs["start"]), shown.end_s, shown.jobs["start"])
    members = [(name, shown.members(index)) for index, name in enumerate(shown.queues)]
    series = [{"name": name, "y": rounded(between(submit[of], started[of], np.ones(len(of)), shown.edges))} for name, of in members]
    return _over_time(shown, "Queue lengths", "Jobs that have not started yet, on average over each interval.", series, shape="stack")


def _waits(shown: Shown, by: str, groups: list[tuple[str, Column]]) -> Chart:
    waits = shown.jobs["wait"]
    points = bent_points(float(np.nanmax(waits, initial=0.0)))
    series = [{"name": name, "y": rounded(shares_up_to(waits[of], points))} for name, of in groups]
    return {
        "kind": "lines",
        "title": f"Wait by {by}",
        "description": "The share of jobs that waited at most so long; long waits are drawn closer together.",
        "x": rounded(points),
        "series": series,
        "xFormat": "duration",
        "xScale": "log",
        "yFormat": "percent",
        "yMax": 1,
        "xLabel": "wait",
    }


def _waits_grid(shown: Shown) -> Chart:
    sizes = shown.sizes()
    waits = shown.jobs["wait"]
    rows = []
    for index, name in enumerate(shown.queues):
        both = [of[shown.queue_of[of] == index] for _, of in sizes]
        rows.append({"name": name, "values": [round(float(np.percentile(waits[of], 95)), 3) if len(of) else None for of in both]})
    return {
        "kind": "heat",
        "title": "95th percentile of the wait, by queue and size",
        "description": "The fuller the colour, the longer the wait.",
        "x": [label for label, _ in sizes],
        "rows": rows,
        "yFormat": "duration",
    }


def _slowdown(shown: Shown) -> Chart:
    slowdown = shown.jobs["slowdown"]
    groups = [slowdown[shown.members(index)] for index in range(len(shown.queues))]
    ended = [group[~np.isnan(group)] for group in groups]
    series = [
        {"name": name, "y": [round(float(np.percentile(group, share)), 3) if len(group) else 0 for group in ended]}
        for name, share in (("median", 50), ("95th percentile", 95))
    ]
    text = "Time from submit to end over run time; jobs below 10 s count as 10 s."
    return {"kind": "bars", "title": "Bounded slowdown by queue", "description": text, "labels": shown.queues, "series": series}


def _fairness(shown: Shown) -> Chart | None:
    series: list[Chart] = []
    for _, resource, queue in shown.series.keys("deserved", of_queues=True):
        held, deserved, asked = (shown.series.means(name, resource, queue, shown.edges) for name in ("held", "deserved", "asked"))
        if resource == shown.resource and held is not None and deserved is not None and len(series) < MOST_LINES:
            due = deserved if asked is None else np.minimum(deserved, asked)
            series.append({"name": queue, "y": rounded(held - due)})
    if not series:
        return None
    least = "less the smaller of what it deserves and what it asks for: below 0 it gets too little."
    text = f"{UNITS[shown.resource]} that each queue holds, {least}"
    return _over_time(shown, "Fairness over time", text, series)


def _evictions(shown: Shown) -> Chart | None:
    evictions, lost = shown.jobs["evictions"], shown.jobs["lost"]
    if not evictions.any():
        return None
    members = [shown.members(index) for index in range(len(shown.queues))]
    series = [
        {"name": "evictions", "y": [float(evictions[of].sum()) for of in members]},
        {"name": "lost pod-hours", "y": [float(lost[of].sum()) / 3600 for of in members]},
    ]
    text = "Evictions of pods in each queue, and the work that had to be done again: pods times hours."
    return {"kind": "bars", "title": "Evictions and lost work", "description": text, "labels": shown.queues, "series": series}


def _fragmentation(shown: Shown) -> Chart | None:
    series = []
    for _, resource, _ in shown.series.keys("fragmentation", of_queues=False):
        series.append({"name": UNITS[resource or "gpu"], "y": rounded(shown.series.means("fragmentation", resource, "", shown.edges))})
    text = "What is idle where the jobs seen so far could not use it."
    return _over_time(shown, "Fragmentation", text, series, shape="area") if series else None


def _over_time(shown: Shown, title: str, description: str, series: list[Chart], **more: Any) -> Chart:
    plain = {"kind": "lines", "title": title, "description": description, "x": shown.time, "series": series, "shape": "step"}
    return plain | {"xFormat": "duration", "xLabel": "time"} | more


def _size_label(index: int) -> str:
    if index == len(SIZES):
        return f"above {SIZES[-1]}"
    below = SIZES[index - 1] + 1 if index else SIZES[0]
    return str(SIZES[index]) if below >= SIZES[index] else f"{below} to {SIZES[index]}"


def last_instant(jobs: Columns) -> float:
    waited = jobs["submit"] + jobs["wait"]
    return max(1.0, *(float(np.nanmax(column, initial=0.0)) for column in (waited, jobs["end"])))


def rounded(values: Column | None) -> list[Any]:
    """With as many digits as a chart shows; None for NaN."""
    return [None if value != value else value for value in np.round(np.asarray(values, float), 4).tolist()]
