"""The measures of a finished simulation, by the names of output_columns.py, for the whole cluster and by queue."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from pumice.simulate.output_columns import OVER_TIME, PERCENTILES
from pumice.simulate.record import RESOURCES, Record
from pumice.simulate.spill import Joined, SpilledValues
from pumice.simulate.time_series import SeriesKey

Measures = dict[str, Any]


def distribution(values: Sequence[float], weights: Sequence[float] | None = None) -> dict[str, float | None]:
    """The mean, percentiles (the smallest value that this per cent does not exceed) and the maximum; each None if there are no values."""
    names = ["mean", *(f"p{percent}" for percent in PERCENTILES), "max"]
    if not len(values):
        return dict.fromkeys(names)
    order = np.argsort(values, kind="stable")
    ordered, sums = np.asarray(values)[order], np.cumsum(np.ones(len(values)) if weights is None else np.asarray(weights)[order])
    ranks = [ordered[np.searchsorted(sums, percent * sums[-1] / 100)] for percent in PERCENTILES]
    return dict(zip(names, map(float, (np.average(values, weights=weights), *ranks, ordered[-1])), strict=True))


def spread(parts: Iterable[SpilledValues]) -> dict[str, float | None]:
    """The distribution of all parts together, in a memory that does not grow with them."""
    values = Joined(list(parts))
    if not values.count:
        return distribution(())
    ranks = {f"p{percent}": values.reached(percent) for percent in PERCENTILES}
    return {"mean": values.mean, **ranks, "max": values.greatest}


def measures(record: Record, queue: str = "") -> Measures:
    queues = [queue] if queue else record.queues
    states = {state: sum(record.states[name, state] for name in queues) for state in ("done", "killed", "running", "waiting")}
    made = record.ended_last - (record.submitted_first or 0.0)
    return {
        "wait": spread(record.waits[name] for name in queues),
        "turnaround": spread(record.turnarounds[name] for name in queues),
        "bounded_slowdown": spread(record.slowdowns[name] for name in queues),
        "utilisation": _utilisation(record, queue),
        "goodput": _summed(record.goodput, queues),
        "lost_work": _summed(record.lost, queues),
        **_over_time(record, queue),
        "makespan": max(0.0, made),
        "jobs": sum(states.values()),
        **states,
        "evictions": sum(record.evictions[name] for name in queues),
    }


def _summed(by_queue: dict[str, list[float]], queues: Iterable[str]) -> dict[str, float]:
    sums = [sum(by_queue[name][index] for name in queues) for index in range(len(RESOURCES))]
    return dict(zip(RESOURCES, sums, strict=True))


def _utilisation(record: Record, queue: str) -> dict[str, float]:
    """Held over capacity, for each resource that the cluster has."""
    signals, now = record.series.signals, record.now
    found = {}
    for resource in RESOURCES:
        capacity, held = signals.get(SeriesKey("capacity", resource)), signals.get(SeriesKey("held", resource, queue))
        if capacity is not None and (whole := capacity.integral(now)) > 0:
            found[resource] = held.integral(now) / whole if held is not None else 0.0
    return found


def _over_time(record: Record, queue: str) -> Measures:
    """The distribution over time of each series of `output_columns.OVER_TIME`."""
    found = [key for key in record.series.signals if key.series in OVER_TIME and key.queue == queue]
    return {key.series: distribution(*record.series.means(key, record.now)) for key in found}


def longest(record: Record) -> list[dict[str, Any]]:
    """The longest waits, with the fields of `output_columns.LONGEST`."""
    return [
        {
            "job": life.work.name,
            "queue": life.work.queue,
            "submit": life.work.submit,
            "start": life.start,
            "wait": wait,
            "reason": life.reason,
        }
        for life, wait in record.longest
    ]
