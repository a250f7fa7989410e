"""What each of the live programs holds before its first request: MiB of memory, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from bench.measure import Row

PROGRAMS = {  #: by program, the module that it loads before it serves, and its budget in MiB
    "scheduler": ("pumice.live.scheduler.scheduler_replica", 80.0),
    "controllers": ("pumice.live.controllers.controller_replica", 45.0),
    "webhooks": ("pumice.live.webhooks.server", 45.0),
}
WEIGHED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS")))
"""


def run() -> list[Row]:
    return [_row(program, *each) for program, each in PROGRAMS.items()]


def _row(program: str, module: str, budget: float) -> Row:
    command = [sys.executable, "-c", WEIGHED, module]
    mib = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024
    return Row(f"pumice {program}: memory once loaded", budget, None, mib, mib, "MiB")
