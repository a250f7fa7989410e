"""The files that a simulation writes: rows as they come, the summary at the end. The same simulation writes the same bytes."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import msgspec

from pumice.simulate import columns
from pumice.simulate.frame import read_frame, read_frames
from pumice.simulate.report import report
from pumice.simulate.report_jobs import columns_for
from pumice.simulate.series import Series
from pumice.simulate.spill import AT_ONCE


class Table:
    """A CSV file with a head. Numbers are written as briefly as they can be read back; what is unknown is empty."""

    def __init__(self, path: Path, head: Iterable[str]) -> None:
        self._file: IO[str] = path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")
        self._writer.writerow(head)

    def write(self, row: Iterable[Any]) -> None:
        self._writer.writerow([_brief(value) for value in row])

    def close(self) -> None:
        self._file.close()


def _brief(value: Any) -> Any:
    """7.0 as 7; fractions to the millionth."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else round(value, 6)
    return value


class Folder:
    """OUT: jobs.csv, events.csv, series.csv, summary.json, report.html."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        self.jobs = Table(self.path / "jobs.csv", columns.JOBS)
        self.events = Table(self.path / "events.csv", columns.EVENTS)

    def close(self, series: Series, end: float, summary: dict[str, Any]) -> None:
        self.jobs.close()
        self.events.close()
        table = Table(self.path / "series.csv", columns.SERIES)
        for time, key, value in series.rows(end):
            table.write((time, *key, value))
        table.close()
        (self.path / "summary.json").write_bytes(as_json(summary))
        jobs = read_frames(self.path / "jobs.csv", columns_for(summary["measures"]["jobs"]), AT_ONCE)
        page = report(summary, jobs, read_frame(self.path / "series.csv"))
        (self.path / "report.html").write_text(page, encoding="utf-8")


def as_json(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
