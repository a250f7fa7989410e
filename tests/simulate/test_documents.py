"""docs/simulate.md shows what works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import cli
from pumice.simulate import compare

DOCUMENT = (Path(__file__).parents[2] / "docs/simulate.md").read_text()


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_page_and_the_python_of_the_guide_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("page.yaml").write_text(block("yaml"))
    space: dict[str, object] = {}
    exec(compile(block("python"), "docs/simulate.md", "exec"), space)
    assert len(space["waited"]) > 5  # type: ignore[arg-type]
    assert {row["policy"] for row in compare("yaml:page.yaml", ["FIFO", "SJF"], processes=1)} == {"FIFO", "SJF"}


def test_the_same_seed_writes_the_same_bytes(tmp_path: Path) -> None:
    page = tmp_path / "page.yaml"
    page.write_text(block("yaml"))
    for out in ("a", "b"):
        words = ["simulate", "--workload", f"yaml:{page}", "--policy", "volcano", "--seed", "5", "--out", str(tmp_path / out)]
        assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["events.csv", "jobs.csv", "report.html", "series.csv", "summary.json"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
