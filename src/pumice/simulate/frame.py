"""Rows as columns: a dict of NumPy arrays by name, for reports and notebooks. Unknown numbers are nan."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TEXTS = frozenset(["job", "queue", "user", "state", "reason", "event", "node", "detail", "series", "resource"])

MOST_TEXTS = 4096  #: of a column that are remembered; names of jobs all differ


class Frame(dict[str, NDArray[Any]]):
    """Columns by name. `to_pandas()` and `to_polars()` work where these are installed."""

    def to_pandas(self) -> Any:
        return import_module("pandas").DataFrame(self)

    def to_polars(self) -> Any:
        return import_module("polars").DataFrame(self)


def frame_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Frame:
    """None, and the empty text of a CSV file, are unknown. Of a column's first texts, equal ones are one object."""
    texts: list[dict[Any, Any] | None] = [{} if name in TEXTS else None for name in names]
    columns: list[Any] = [array("d") if known is None else [] for known in texts]
    for row in rows:
        for column, known, value in zip(columns, texts, row, strict=True):
            if known is None:
                column.append(float("nan") if value is None or value == "" else float(value))
            else:
                column.append(known.setdefault(value, value) if len(known) < MOST_TEXTS else value)
    arrays = [np.asarray(column) if known is None else np.array(column, object) for column, known in zip(columns, texts, strict=True)]
    return Frame(zip(names, arrays, strict=True))


def read_frame(path: Path) -> Frame:
    """A CSV file that a simulation has written."""
    return next(read_frames(path))


def read_frames(path: Path, names: Collection[str] = (), rows: int | None = None) -> Iterator[Frame]:
    """The same, or these columns of it, so many rows at a time; of an empty file one frame without rows."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        head = next(reader)
        places = [place for place, name in enumerate(head) if not names or name in names]
        chosen = ([row[place] for place in places] for row in reader)
        frame = frame_of([head[place] for place in places], islice(chosen, rows))
        yield frame
        while rows is not None and len(frame[head[places[0]]]) == rows:
            frame = frame_of([head[place] for place in places], islice(chosen, rows))
            yield frame
