"""What other programs read is as they want it: the workflow of releases by actionlint, the dashboard by Grafana's own schema."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import binaries
import pytest
from binaries import program, why_not

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
WORKFLOW, DASHBOARD = ROOT / ".github/workflows/release.yaml", ROOT / "deploy/chart/files/dashboard.json"


def told(name: str, *arguments: str | Path) -> str:
    """What a program finds; nothing if all is well."""
    if reason := why_not((name,)):
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_the_workflow_has_no_fault(tmp_path: Path) -> None:
    assert told("actionlint", "-oneline", WORKFLOW) == ""
    broken = tmp_path / "broken.yaml"
    broken.write_text(WORKFLOW.read_text().replace("needs: test", "needs: tests"))
    assert "tests" in told("actionlint", "-oneline", broken)


def test_the_dashboard_is_one_of_grafana(tmp_path: Path) -> None:
    assert told("dashboard", DASHBOARD) == ""
    broken, body = tmp_path / "broken.json", json.loads(DASHBOARD.read_text())
    body["panels"][1]["targets"][0]["legendFromat"] = "x"
    broken.write_text(json.dumps(body))
    assert "unexpected field 'legendFromat'" in told("dashboard", broken)


def test_a_program_is_built_anew_when_what_it_is_built_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: made.kept_as(name) for name, made in binaries.PROGRAMS.items()}
    shutil.copytree(binaries.HERE, tmp_path / "cluster")
    monkeypatch.setattr(binaries, "HERE", tmp_path / "cluster")
    assert {name: made.kept_as(name) for name, made in binaries.PROGRAMS.items()} == before
    for path in ("dashboard/main.go", "actionlint/go.mod", "server/clientgo/main.go"):
        with (tmp_path / "cluster" / path).open("a") as file:
            file.write("\n")
    after = {name: made.kept_as(name) for name, made in binaries.PROGRAMS.items()}
    assert {name for name in after if after[name] != before[name]} == {"dashboard", "actionlint", "clientgo"}
