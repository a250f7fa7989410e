"""What only a whole simulation has: objects in a store, in virtual time, the same each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.simulate import simulate

PAGE = """\
nodes: 2x4cpu
jobs:
- {arrivals: {at: [0, 3, 3, 9]}, run: {uniform: [10s, 50s]}, pods: {choice: {1: 1, 3: 1}}, request: {cpu: 2}}
"""


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "page.yaml").write_text(PAGE)
    for number, hashing in enumerate(("1", "77")):
        command = ["simulate", "--whole", "--workload", f"yaml:{tmp_path}/page.yaml", "--seed", "5", "--out", f"{tmp_path}/{number}"]
        subprocess.run([sys.executable, "-m", "pumice", *command], check=True, env={"PYTHONHASHSEED": hashing}, stdout=subprocess.DEVNULL)
    for name in ("jobs.csv", "events.csv", "series.csv", "summary.json", "report.html"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()


@pytest.mark.parametrize("more, told", [("--arrivals-only", "--whole: with --arrivals-only nothing ever runs")])
def test_what_makes_no_sense_together_is_refused(tmp_path: Path, more: str, told: str) -> None:
    (tmp_path / "page.yaml").write_text(PAGE)
    outcome = CliRunner().invoke(simulate, ["--whole", more, "--workload", f"yaml:{tmp_path}/page.yaml"])
    assert told in str(outcome.exception)
