"""Tables as Parquet, which pyarrow writes; without it, what to do is told before anything is played."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pumice.cli.simulate import simulate
from pumice.simulate.outputs import read_frame

PAGE = "nodes: 1x1cpu\njobs:\n- {name: '7', arrivals: {at: [0, 5]}, run: 10s, request: {cpu: 1}, user: 12}\n"


def played(folder: Path, *more: str) -> Result:
    (folder / "page.yaml").write_text(PAGE)
    return CliRunner().invoke(simulate, ["--workload", f"yaml:{folder}/page.yaml", *more])


def test_without_pyarrow_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    outcome = played(tmp_path, "--format", "parquet", "--out", str(tmp_path / "out"))
    assert str(outcome.exception) == "--format: parquet is written by pyarrow; install it, or leave this out for CSV"
    assert not (tmp_path / "out").exists()


def test_it_needs_a_folder(tmp_path: Path) -> None:
    outcome = played(tmp_path, "--format", "parquet")
    assert str(outcome.exception) == "--format: tables are written to a folder; name it with --out"


def test_the_tables_are_those_of_csv(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    assert played(tmp_path, "--out", str(tmp_path / "csv")).exit_code == 0
    assert played(tmp_path, "--format", "parquet", "--out", str(tmp_path / "out")).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.suffix in (".csv", ".parquet")) == [
        "events.parquet",
        "jobs.parquet",
        "series.parquet",
    ]
    for name in ("jobs", "events", "series"):
        written, expected = parquet.read_table(tmp_path / f"out/{name}.parquet"), read_frame(tmp_path / f"csv/{name}.csv")
        assert written.column_names == list(expected)
        for column in written.column_names:
            values = [float("nan") if value is None else value for value in written[column].to_pylist()]
            assert values == pytest.approx(list(expected[column]), nan_ok=True) if column != "job" else values == list(expected[column])
