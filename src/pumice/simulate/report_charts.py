"""What the report's charts show, as plain columns for charts.js: few points, however many jobs there were.

A run comes as columns (dicts of arrays). Of each job: name, queue, size, submit, start, end, wait, slowdown, evictions, lost_work, reason; times are
seconds from the run's begin, NaN for never. Of `series`: time, and wide columns that are named after what they tell and of whom, as
`used/cpu` (a share of capacity), `deserved/team-a`, `fragmentation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pumice.simulate.resampling import Column, bent_points, between, bins, means, shares_up_to

Columns = Mapping[str, Column]
Chart = dict[str, Any]
DRAWN_ONE_BY_ONE = 240  #: jobs; of more the chart shows what queues hold
MOST_QUEUES = 16  #: that charts name; the smallest of more are shown together
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
REST = "other queues"


class Shown:
    """The run's jobs as charts group them."""

    def __init__(self, jobs: Columns, series: Columns, end_s: float) -> None:
        self.jobs = jobs
        self.series = series
        self.end_s = end_s
        names, of, counts = np.unique(jobs["queue"], return_inverse=True, return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[: MOST_QUEUES if len(names) <= MOST_QUEUES else MOST_QUEUES - 1])
        place = np.full(len(names), len(kept))
        place[kept] = np.arange(len(kept))
        self.queues = [str(names[index]) for index in kept] + ([REST] if len(kept) < len(names) else [])
        self.queue_of: Column = place[of]
        self.ends: Column = np.where(np.isnan(jobs["end"]), end_s, jobs["end"])
        self.edges = bins(0.0, end_s)
        self.time = rounded(self.edges[:-1])

    def members(self, queue: int) -> Column:
        found: Column = np.flatnonzero(self.queue_of == queue)
        return found

    def sizes(self) -> list[tuple[str, Column]]:
        """Classes of sizes, each with its jobs."""
        upper = np.searchsorted(SIZES, self.jobs["size"])
        labels = [_size_label(index) for index in range(len(SIZES) + 1)]
        return [(labels[index], np.flatnonzero(upper == index)) for index in np.unique(upper)]

    def column(self, name: str) -> list[float]:
        return rounded(means(self.series["time"], self.series[name], self.edges))

    def named(self, prefix: str) -> list[str]:
        """Whom columns with this prefix tell of."""
        return [name.removeprefix(prefix) for name in self.series if name.startswith(prefix)]


def charts(shown: Shown) -> list[Chart]:
    found = [
        _schedule(shown),
        _allocation(shown),
        _lengths(shown),
        _waits(shown, "queue", [(name, shown.members(index)) for index, name in enumerate(shown.queues)]),
        _waits(shown, "size", shown.sizes()),
        _waits_grid(shown),
        _slowdown(shown),
        _fairness(shown),
        _evictions(shown),
        _fragmentation(shown),
    ]
    return [chart for chart in found if chart is not None]


def _schedule(shown: Shown) -> Chart:
    jobs = shown.jobs
    if len(jobs["name"]) <= DRAWN_ONE_BY_ONE:
        columns = {
            "name": [str(name) for name in jobs["name"]],
            "queue": shown.queue_of.tolist(),
            "submit": rounded(jobs["submit"]),
            "start": rounded(jobs["start"]),
            "end": rounded(jobs["end"]),
            "note": [f"evicted {count} times" if count else "" for count in jobs["evictions"].tolist()],
        }
        text = "Each bar is a job while it runs; the dotted line before it is its wait."
        return {"kind": "gantt", "title": "Schedule by queue", "description": text, "rows": shown.queues, "bars": columns, "until": shown.end_s}
    rows = []
    for index, name in enumerate(shown.queues):
        of = shown.members(index)
        sizes = jobs["size"][of]
        held = between(jobs["start"][of], shown.ends[of], sizes, shown.edges)
        wanted = between(jobs["submit"][of], shown.ends[of], sizes, shown.edges)
        rows.append({"name": name, "held": rounded(held), "wanted": rounded(wanted)})
    text = "What the jobs of each queue hold, and with what they ask for beside it; each band has a scale of its own."
    return {"kind": "bands", "title": "Schedule by queue", "description": text, "x": shown.time, "rows": rows, "wide": True}


def _allocation(shown: Shown) -> Chart | None:
    series = [{"name": name, "y": shown.column(f"used/{name}")} for name in shown.named("used/")]
    if not series:
        return None
    text = "The share of the cluster's capacity that pods hold."
    return _over_time(shown, "Utilisation and allocation", text, series, yFormat="percent", yMax=1, shape="step")


def _lengths(shown: Shown) -> Chart:
    jobs = shown.jobs
    series = []
    for index, name in enumerate(shown.queues):
        of = shown.members(index)
        started = np.where(np.isnan(jobs["start"][of]), shown.end_s, jobs["start"][of])
        series.append({"name": name, "y": rounded(between(jobs["submit"][of], started, np.ones(len(of)), shown.edges))})
    return _over_time(shown, "Queue lengths", "Jobs that have not started yet, on average over each interval.", series, shape="stack")


def _waits(shown: Shown, by: str, groups: list[tuple[str, Column]]) -> Chart:
    waits = shown.jobs["wait"]
    points = bent_points(float(np.nanmax(waits, initial=0.0)))
    series = [{"name": name, "y": rounded(shares_up_to(waits[of], points))} for name, of in groups]
    return {
        "kind": "lines",
        "title": f"Wait by {by}",
        "description": "The share of jobs that waited at most so long; time is drawn ever closer to the right.",
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
        "description": "Darker cells waited longer.",
        "x": [label for label, _ in sizes],
        "rows": rows,
        "yFormat": "duration",
        "xScale": "log",
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
    queues = [name for name in shown.named("deserved/") if f"held/{name}" in shown.series][:MOST_QUEUES]
    if not queues:
        return None
    columns = shown.series
    series = []
    for name in queues:
        asked = columns.get(f"asked/{name}", columns[f"deserved/{name}"])
        short = columns[f"held/{name}"] - np.minimum(columns[f"deserved/{name}"], asked)
        series.append({"name": name, "y": rounded(means(columns["time"], short, shown.edges))})
    text = "What each queue holds, less the smaller of what it deserves and what it asks for: below 0 it gets too little."
    return _over_time(shown, "Fairness over time", text, series, shape="step")


def _evictions(shown: Shown) -> Chart | None:
    evictions, lost = shown.jobs["evictions"], shown.jobs["lost_work"]
    if not evictions.any():
        return None
    sums = [(evictions[of].sum(), lost[of].sum() / 3600) for of in map(shown.members, range(len(shown.queues)))]
    series = [{"name": "evictions", "y": [float(count) for count, _ in sums]}, {"name": "lost work in hours", "y": [float(hours) for _, hours in sums]}]
    text = "Evictions of each queue's jobs, and the work that was lost by them: size times hours."
    return {"kind": "bars", "title": "Evictions and lost work", "description": text, "labels": shown.queues, "series": series}


def _fragmentation(shown: Shown) -> Chart | None:
    if "fragmentation" not in shown.series:
        return None
    series = [{"name": "fragmented", "y": shown.column("fragmentation")}]
    text = "The share of capacity that is idle where typical jobs cannot use it."
    return _over_time(shown, "Fragmentation", text, series, yFormat="percent", shape="area")


def _over_time(shown: Shown, title: str, description: str, series: list[Chart], **more: Any) -> Chart:
    plain = {"kind": "lines", "title": title, "description": description, "x": shown.time, "series": series}
    return plain | {"xFormat": "duration", "xLabel": "time"} | more


def _size_label(index: int) -> str:
    if index == len(SIZES):
        return f"above {SIZES[-1]}"
    below = SIZES[index - 1] + 1 if index else SIZES[0]
    return str(SIZES[index]) if below >= SIZES[index] else f"{below} to {SIZES[index]}"


def rounded(values: Column) -> list[Any]:
    """With as many digits as a chart shows; None for NaN."""
    return [None if value != value else value for value in np.round(np.asarray(values, float), 4).tolist()]
