"""Two nodes, a control plane, DNS, and the images of the tests on both nodes: a cluster for as long as it is entered."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from tests.node import images
from tests.node.control_plane import DNS, NETWORK, ControlPlane
from tests.node.sandbox import Sandbox
from tests.node.worker import Worker, connect

MANIFESTS = Path(__file__).parent / "manifests"
COMMAND_S = 300.0


class NodeCluster:
    """While it is entered, this thread is in the first node's network: commands that it starts, and clients, reach the API server."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self.layouts = (images.product(folder), images.others(folder))
        self.sandbox = Sandbox(folder / "nodes")

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(self.sandbox)
            self.control_plane = ControlPlane(self.sandbox)
            self.workers = [Worker(self.sandbox, self.control_plane, number) for number in (1, 2)]
            connect(self.sandbox, self.workers)
            self.control_plane.start()
            with ThreadPoolExecutor() as threads:
                list(threads.map(self._start, self.workers))
            self.control_plane.wait(self._ready, "the nodes")
            stack.enter_context(self.sandbox.entered(NETWORK))
            self.kubectl("apply", "-f", "-", stdin=(MANIFESTS / "dns.yaml").read_text().replace("DNS", DNS))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def _start(self, worker: Worker) -> None:
        worker.start()
        worker.load(self.layouts)

    def _ready(self) -> bool:
        path = "jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}"
        return self.control_plane.kubectl("get", "nodes", "-o", path).split() == ["True"] * len(self.workers)

    # ---- commands, with all rights

    @property
    def kubeconfig(self) -> Path:
        return self.control_plane.kubeconfig("admin")

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return self.command([str(self.control_plane.programs["kubectl"]), *arguments], stdin)

    def helm(self, *arguments: str) -> str:
        return self.command([str(self.control_plane.programs["helm"]), *arguments])

    def command(self, command: Sequence[str], stdin: str = "") -> str:
        """What a command of a user prints; it must succeed. It has the user's configuration, and a home of its own."""
        home = {"HOME": str(self.sandbox.data), "KUBECONFIG": str(self.kubeconfig)}
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, env=os.environ | home, timeout=COMMAND_S)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout
