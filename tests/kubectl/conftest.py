"""The real kubectl against a server of its own, with a kubelet that lets pods go."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.apiserver.server_process import Running, in_thread, kubeconfig_of

TIMEOUT_S = 60


class Kubectl:
    """Runs kubectl with a kubeconfig and a home of its own."""

    running: Running  #: the server, if it is a thread of this process

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(kubeconfig)}

    def run(self, *arguments: str, stdin: str = "", timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
        where = {"env": self.environment, "cwd": self.folder}
        return subprocess.run(["kubectl", *arguments], input=stdin, capture_output=True, text=True, timeout=timeout_s, **where)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl printed; it must have succeeded."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl said when it failed, as it must."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"kubectl {' '.join(arguments)} succeeded:\n{done.stdout}"
        return done.stderr

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        where = {"env": self.environment, "cwd": self.folder}
        return subprocess.Popen(["kubectl", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **where)


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed; these tests are about the real one")
    folder = tmp_path_factory.mktemp("kubectl")
    with in_thread() as running:
        made = Kubectl(folder, kubeconfig_of(running, folder))
        made.running = running
        yield made


@pytest.fixture
def kubelet(kubectl: Kubectl) -> Iterator[None]:
    """Ends pods whose time has come, as a kubelet would."""
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(0.05):
            kubectl.running.call(_let_go)

    thread = threading.Thread(target=loop)
    thread.start()
    yield
    ended.set()
    thread.join()


def _let_go(store) -> None:  # type: ignore[no-untyped-def]
    from pumice.cluster.apiserver import DeleteOptions

    for pod in list(store.all("pods")):
        if pod["metadata"].get("deletionTimestamp"):
            store.delete("pods", pod["metadata"]["name"], pod["metadata"]["namespace"], DeleteOptions(grace_s=0))


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    def wait(condition: Callable[[], bool]) -> None:
        ends = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < ends, "it did not happen in time"
            time.sleep(0.3)  # a kubectl costs a third of that

    return wait
