"""What a program loads, in a fresh interpreter: those that schedule nothing carry no scheduler."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCHEDULER = {"numpy", *(f"pumice.{name}" for name in ("model", "engine", "framework", "plugins", "actions", "config", "live.loop"))}
LISTED = "import importlib, sys; importlib.import_module(sys.argv[1]); print(*sys.modules)"


@pytest.mark.parametrize("program", ["controllers", "webhooks"])
def test_programs_that_schedule_nothing_load_no_scheduler(program: str) -> None:
    command = [sys.executable, "-c", LISTED, f"pumice.cli.{program}"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    assert not SCHEDULER.intersection(loaded)
