"""Values over time at few points, as a report shows them: step functions, and the rows of series.csv by their keys."""

import numpy as np

from pumice.simulate.report_data import Column, Columns

POINTS, BENT_POINTS = 240, 120


def bins(begin_s: float, end_s: float) -> Column:
    """The edges of equal intervals."""
    return np.linspace(begin_s, max(end_s, begin_s + 1e-9), POINTS + 1)


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


def bent_points(most: float) -> Column:
    """Points from 0 to `most`, close together where they are small."""
    spread: Column = np.expm1(np.linspace(0, np.log1p(max(most, 1.0)), BENT_POINTS))
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
