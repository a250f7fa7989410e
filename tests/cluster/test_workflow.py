"""The workflow of releases is one that its runner takes: checked by actionlint, with what it runs in shells."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from binaries import program, why_not

pytestmark = pytest.mark.cluster
WORKFLOW = Path(__file__).parents[2] / ".github/workflows/release.yaml"


def lint(path: Path) -> str:
    done = subprocess.run([program("actionlint"), "-oneline", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_the_workflow_has_no_fault(tmp_path: Path) -> None:
    if reason := why_not(("actionlint",)):
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    assert lint(WORKFLOW) == ""
    broken = tmp_path / "broken.yaml"
    broken.write_text(WORKFLOW.read_text().replace("needs: test", "needs: tests"))
    assert "tests" in lint(broken)
