"""The rows of series.csv, found by what they tell."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pumice.simulate.resampling import Column, means

Columns = Mapping[str, Column]


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
        """On average in each interval; None if it is not told."""
        found = self._of.get((name, resource, queue))
        return None if found is None else means(*found, edges)
