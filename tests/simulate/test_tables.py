"""The CSV files of a simulation: how their cells are written."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from hypothesis import given, strategies as st

from pumice.simulate.outputs import CsvTable, brief, read_frame

FINE = st.floats(-1, 1e12) | st.integers(0, 10**9).map(lambda number: number + 0.9999995) | st.integers(1, 10**13).map(lambda n: n / 2**20)


@given(st.floats(allow_nan=False, allow_infinity=False) | FINE)
def test_numbers_are_rounded_to_the_millionth_and_written_as_python_prints_them(number: float) -> None:
    assert brief(number) == repr(int(number) if number.is_integer() else round(number, 6))


def test_cells_are_written_as_csv(tmp_path: Path) -> None:
    head = ("job", "pods", "wait", "detail")
    rows: list[tuple[Any, ...]] = [("a", 7.0, 0.25, None), ('"a", b', 7, 1e-7, ""), ("two\nlines", 1.0, 5e-05, "x"), ("", 0, -1.5, "y;z")]
    table = CsvTable(tmp_path / "written.csv", head)
    for row in rows:
        table.write(row)
    table.close()
    with (tmp_path / "expected.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *((job, int(pods), round(wait, 6), more) for job, pods, wait, more in rows)])
    assert (tmp_path / "written.csv").read_bytes() == (tmp_path / "expected.csv").read_bytes()
    assert read_frame(tmp_path / "written.csv")["job"].tolist() == [job for job, *_ in rows]
