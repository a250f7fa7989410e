"""The files that a simulation writes: rows as they come, the summary at the end. The same simulation writes the same bytes.

The tables are read back as columns, and are converted to Parquet on request.
"""

import csv
import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from io import StringIO
from itertools import islice
from math import nan
from operator import itemgetter
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from pumice.scheduler.model import NDArray
from pumice.simulate import output_columns
from pumice.simulate.report import report
from pumice.simulate.report_data import columns_for
from pumice.simulate.spill import AT_ONCE
from pumice.simulate.time_series import Series

TEXTS = frozenset(["job", "queue", "user", "state", "reason", "event", "node", "detail", "series", "resource"])

TOGETHER = 1024  #: so many rows become columns at once
EXACT = 1e-4, 1e9  #: from and below which numbers with six decimals are written as Python prints them
_SPECIAL = re.compile('[,"\\r\\n]')
MOST_TEXTS = 4096  #: how many texts of a column are remembered; in some columns, such as names of jobs, all texts differ


class Frame(dict[str, NDArray[Any]]):
    """Columns by name. `to_pandas()` and `to_polars()` work where these are installed."""

    def to_pandas(self) -> Any:
        return import_module("pandas").DataFrame(self)

    def to_polars(self) -> Any:
        return import_module("polars").DataFrame(self)


def frame_of(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Frame:
    """The rows as columns. None, and empty text in a CSV file, are unknown. Of a column's first texts, equal ones are one object."""
    texts: list[dict[Any, Any] | None] = [{} if name in TEXTS else None for name in names]
    columns: list[Any] = [array("d") if known is None else [] for known in texts]
    left = iter(rows)
    while part := [*islice(left, TOGETHER)]:
        for column, known, values in zip(columns, texts, zip(*part, strict=True), strict=True):
            if known is None:
                column.extend([nan if value is None or value == "" else float(value) for value in values])
            else:
                column.extend([known.setdefault(value, value) for value in values] if len(known) < MOST_TEXTS else values)
    arrays = [np.asarray(column) if known is None else np.array(column, object) for column, known in zip(columns, texts, strict=True)]
    return Frame(zip(names, arrays, strict=True))


def read_frame(path: Path) -> Frame:
    """The columns of a CSV file that a simulation has written."""
    return next(read_frames(path))


def read_frames(path: Path, names: Collection[str] = (), rows: int | None = None) -> Iterator[Frame]:
    """The columns of a CSV file, all or those in `names`, in frames of `rows` rows. An empty file gives one frame without rows."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        head = next(reader)
        places = [place for place, name in enumerate(head) if not names or name in names]
        chosen = map(itemgetter(*places), reader)
        frame = frame_of([head[place] for place in places], islice(chosen, rows))
        yield frame
        while rows is not None and len(frame[head[places[0]]]) == rows:
            frame = frame_of([head[place] for place in places], islice(chosen, rows))
            yield frame


class CsvTable:
    """A CSV file with a header line. Numbers are written briefly, 7.0 as 7, fractions rounded to the millionth; unknown values are empty
    cells."""

    def __init__(self, path: Path, head: Iterable[str]) -> None:
        self._file: IO[str] = path.open("w", newline="", encoding="utf-8")
        self.write(head)

    def write(self, row: Iterable[Any]) -> None:
        self._file.write(",".join(map(cell, row)) + "\n")

    def close(self) -> None:
        self._file.close()


@lru_cache(maxsize=8192)
def cell(value: Any) -> str:
    """A value as a table has it. It is cached, since events and jobs have the same names and instants."""
    if isinstance(value, float):
        return brief(value)
    text = "" if value is None else str(value)
    return _quoted(text) if _SPECIAL.search(text) else text


def brief(value: float) -> str:
    if value.is_integer():
        return str(int(value))
    if not EXACT[0] <= value < EXACT[1]:
        return repr(round(value, 6))
    text = f"{value:.6f}".rstrip("0")  # the same as the line above writes, in a third of the time
    return text + "0" if text.endswith(".") else text


def _quoted(text: str) -> str:
    written = StringIO()
    csv.writer(written, lineterminator="\n").writerow([text])
    return written.getvalue()[:-1]


class Folder:
    """The output folder OUT: jobs.csv, events.csv, series.csv, summary.json, report.html."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.jobs = CsvTable(self.path / "jobs.csv", output_columns.JOBS)
        self.events = CsvTable(self.path / "events.csv", output_columns.EVENTS)

    def close(self, series: Series, end: float, summary: dict[str, Any]) -> None:
        self.jobs.close()
        self.events.close()
        table = CsvTable(self.path / "series.csv", output_columns.SERIES)
        for time, key, value in series.rows(end):
            table.write((time, *key, value))
        table.close()
        (self.path / "summary.json").write_bytes(as_json(summary))
        jobs = read_frames(self.path / "jobs.csv", columns_for(summary["measures"]["jobs"]), AT_ONCE)
        page = report(summary, jobs, read_frame(self.path / "series.csv"))
        (self.path / "report.html").write_text(page, encoding="utf-8")


def as_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
