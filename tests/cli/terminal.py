"""`pumice ...` typed against an embedded server, in this process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from pumice.cli.main import cli
from pumice.cluster.apiserver import Store
from tests.apiserver.server_process import Running

CRDS = Path(__file__).parents[2] / "deploy/chart/crds"


class Terminal:
    """Calls commands with the server's kubeconfig in the environment."""

    def __init__(self, running: Running, kubeconfig: Path) -> None:
        self.running = running
        self._environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(kubeconfig.parent)}

    def type(self, *arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(cli, arguments, input=stdin, env=self._environment)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """What was printed; it must have succeeded."""
        result = self.type(*arguments, stdin=stdin)
        assert result.exit_code == 0, f"pumice {' '.join(arguments)}\n{result.output}{result.exception!r}"
        return result.stdout

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """What was said when it failed, as it must, with exit code 1."""
        result = self.type(*arguments, stdin=stdin)
        assert result.exit_code == 1, f"pumice {' '.join(arguments)} ended with {result.exit_code}\n{result.output}"
        return result.stderr

    @contextmanager
    def process(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """The command as a process of its own, which ends with the block. It heeds Ctrl-C also where the tests run in the background."""
        heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
        command = [sys.executable, "-c", f"{heed}; from pumice.cli.program import main; main()", *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | self._environment)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def apply(self, *objects: dict[str, Any]) -> str:
        return self("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))

    def store(self, work: Callable[[Store], Any]) -> Any:
        """Look into the server's store, or change it."""
        return self.running.call(work)
