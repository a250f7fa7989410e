"""What notebooks call: `simulate` and `compare` with plugins of their own, and the examples of the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import pumice.simulate
from pumice.cli.main import cli
from pumice.scheduler import Job, Plugin
from pumice.simulate import compare, simulate
from tests.simulate.playing import swf

DOCS = Path(__file__).parents[2] / "docs" / "simulate.md"
CONF = 'actions: "allocate"\ntiers: [{plugins: [{name: longest-last}, {name: gang}, {name: predicates}]}]\n'
JOBS = [(0.0, 4, 10.0), (1.0, 4, 50.0), (2.0, 4, 5.0)]


class LongestLast(Plugin):
    """By the name of the job, the last first."""

    name = "longest-last"

    def job_order(self, job: Job) -> int:
        return -int(job.name.rpartition("-")[2] or 0)


def test_plugins_are_classes_or_folders(tmp_path: Path) -> None:
    log, conf, folder = swf(tmp_path / "w.swf", JOBS), tmp_path / "own.conf", tmp_path / "plugins"
    conf.write_text(CONF)
    folder.mkdir()
    (folder / "own.py").write_text(
        "from pumice.scheduler import Plugin\n\n\nclass LongestLast(Plugin):\n    name = 'longest-last'\n\n"
        "    def job_order(self, job):\n        return -int(job.name.rpartition('-')[2] or 0)\n"
    )
    by_class = simulate(f"swf:{log.path}", policy=str(conf), plugins=[LongestLast])
    by_folder = simulate(f"swf:{log.path}", policy=str(conf), plugins=[str(folder)])
    assert by_class.jobs["start"].tolist() == by_folder.jobs["start"].tolist() == [0.0, 15.0, 10.0]
    rows = compare(f"swf:{log.path}", ["FIFO", str(conf)], plugins=[LongestLast])
    waits = {row["policy"]: row["mean"] for row in rows if row["measure"] == "wait.mean"}
    assert waits[str(conf)] < waits["FIFO"]


def test_only_public_names_are_listed() -> None:
    assert dir(pumice.simulate) == sorted(["Simulation", "compare", "simulate"])


def test_the_example_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL) if "class SmallestFirst" in block]
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "docs/simulate.md", "exec", dont_inherit=True), {"__name__": "example"})
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("arrival.conf ") and second.startswith("smallest.conf ") and "None" not in second


def test_a_log_of_processors_says_in_its_first_line_how_its_jobs_are_read(tmp_path: Path) -> None:
    words = ["simulate", "--workload", f"swf:{swf(tmp_path / 'w.swf', JOBS).path}", "--policy", "FIFO"]
    alone = CliRunner().invoke(cli, words, catch_exceptions=False).stdout.splitlines()[0]
    assert alone.startswith("A job of this log is one pod on one node")
    nodes = CliRunner().invoke(cli, [*words, "--nodes", "2x4cpu"], catch_exceptions=False).stdout.splitlines()[0]
    assert nodes.startswith("A job of this log is a gang of pods with one CPU each")
    printed = CliRunner().invoke(cli, [*words, "-o", "json"], catch_exceptions=False)
    assert printed.stdout.startswith("{") and printed.stderr.startswith("A job of this log is one pod")
