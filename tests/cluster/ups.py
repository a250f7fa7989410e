"""`pumice up` in a process of its own, for programs that are given a kubeconfig."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def up(kubeconfig: Path, name: str, *nodes: str) -> Iterator[None]:
    """A cluster that ends with the block. Its data is beside the kubeconfig."""
    command = [sys.executable, "-m", "pumice", "up", *nodes, "--no-page", "--port", "0", "--data", str(kubeconfig.parent / f"of-{name}")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"KUBECONFIG": str(kubeconfig)})
    try:
        assert process.stdout is not None and process.stdout.readline().startswith("A cluster of ")
        yield
    finally:
        process.terminate()
        process.communicate()
