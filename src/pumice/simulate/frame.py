"""Rows as columns: a dict of NumPy arrays by name, for reports and notebooks. Unknown numbers are nan."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TEXTS = frozenset(["job", "queue", "user", "state", "reason", "event", "node", "detail", "series", "resource"])


class Frame(dict[str, NDArray[Any]]):
    """Columns by name. `to_pandas()` and `to_polars()` work where these are installed."""

    def to_pandas(self) -> Any:
        return import_module("pandas").DataFrame(self)

    def to_polars(self) -> Any:
        return import_module("polars").DataFrame(self)


def frame_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Frame:
    """None, and the empty text of a CSV file, are unknown."""
    texts = [name in TEXTS for name in names]
    columns: list[Any] = [[] if text else array("d") for text in texts]
    for row in rows:
        for column, text, value in zip(columns, texts, row, strict=True):
            column.append(value if text else float("nan") if value is None or value == "" else float(value))
    arrays = [np.array(column, object) if text else np.array(column) for column, text in zip(columns, texts, strict=True)]
    return Frame(zip(names, arrays, strict=True))


def read_frame(path: Path) -> Frame:
    """A CSV file that a simulation has written."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        return frame_of(next(reader), reader)
