"""Operators of others on `pumice up`: the commands of docs/embedded.md start each.

A program is built from its Go module, with the manifests that the module holds, and runs outside of the cluster.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from binaries import PROGRAMS, module_of, program, why_not
from suites import up

DOCS = Path(__file__).parents[2] / "docs" / "embedded.md"
LIMIT_S = 180
NODES = ("--nodes", "10x16cpu:64Gi")
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")  #: where JobSet looks for them, whatever it is told


class Operator(NamedTuple):
    program: str
    folder: str = ""  #: of the manifests in its module, for kustomize; or of its chart


JOBSET, KUBERAY, KUEUE = (Operator(name, "config/default") for name in ("jobset", "kuberay", "kueue"))
ARGO = Operator("workflow-controller", "manifests/cluster-install")
SPARK = Operator("spark-operator", "charts/spark-operator-chart")
TRAINER = Operator("trainer", "manifests/overlays/manager")
CERT_MANAGER = Operator("controller")  #: not to be had as a module: a folder has its programs and its manifest


class Cluster:
    """A cluster with the program of an operator outside. Commands run in a folder of their own, whose home is that folder, too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = os.pathsep.join([str(program("kubectl").parent), os.environ["PATH"]])
        self.environment = os.environ | {"HOME": str(folder), "KUBECONFIG": str(folder / ".kube" / "config"), "PATH": programs}

    def shell(self, text: str) -> str:
        done: subprocess.CompletedProcess[str] = subprocess.run(
            ["bash", "-e", "-c", text], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create objects; webhooks may need a while before they answer."""
        (self.folder / "objects.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        self.until(lambda: self.succeeds("kubectl apply -f objects.json"))

    def succeeds(self, command: str) -> bool:
        done = subprocess.run(command.split(), cwd=self.folder, env=self.environment, capture_output=True, timeout=LIMIT_S, check=False)
        return done.returncode == 0

    def get(self, resource: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.shell(f"kubectl get {resource} -o json"))["items"]
        return found

    def until(self, holds: Callable[[], bool]) -> None:
        for _ in range(LIMIT_S):
            if holds():
                return
            time.sleep(1)
        raise AssertionError(self.shell("kubectl get pods,jobs,events -A; tail -n 50 *.log"))


def block_of(name: str) -> str:
    """The commands of the documentation that start an operator: the block that names its program."""
    section = DOCS.read_text().split("\n## Operators\n")[1].split("\n## ")[0]
    blocks = re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)
    return next(each for each in blocks if f"./{name} " in each)


def copied(cluster: Cluster, program: str) -> Path:
    """The files of a program's module in the cluster's folder, where they may be changed."""
    made = cluster.folder / f"of-{PROGRAMS[program].module.rpartition('/')[2].partition('@')[0]}"  # kustomize takes an @ for a repository
    if not made.exists():
        cluster.shell(f"cp -r --no-preserve=mode {module_of(program)} {made.name}")
    return made


def manifest(cluster: Cluster, operator: Operator) -> str:
    """Without what would be fetched from elsewhere."""
    if operator.folder.startswith("charts/"):
        chart = module_of(operator.program) / operator.folder
        return cluster.shell(f"{program('helm')} template {operator.program} {chart} -n {operator.program} --include-crds")
    place = f"{copied(cluster, operator.program).name}/{operator.folder}"
    return cluster.shell(f"sed -i '/third-party/d' {place}/kustomization.yaml; kubectl kustomize {place}")


@contextlib.contextmanager
def running(folder: Path, *operators: Operator, options: Sequence[str] = NODES) -> Iterator[Cluster]:
    names = [operator.program for operator in operators]
    built = [operator for operator in operators if operator.folder]
    if missing := why_not([*(operator.program for operator in built), "kubectl", "helm"]):
        pytest.skip(missing)
    cluster = Cluster(folder)
    for operator in built:
        try:
            (folder / operator.program).symlink_to(program(operator.program))
        except subprocess.CalledProcessError as error:
            pytest.skip(f"{operator.program} cannot be built here: {error}")
        (folder / f"{operator.program}.yaml").write_text(manifest(cluster, operator))
    started: subprocess.Popen[bytes] | None = None
    CERTIFICATES.mkdir(parents=True, exist_ok=True)
    if any(CERTIFICATES.iterdir()):
        pytest.skip(f"{CERTIFICATES} has certificates of another cluster")
    with up(folder / ".kube" / "config", "-".join(names), *options):
        try:
            blocks = "".join(block_of(name) for name in names)
            (folder / "block.sh").write_text(f"set -e\nexec > block.log 2>&1\n{blocks}\ntouch ready\nwait\n")
            started = subprocess.Popen(["bash", "block.sh"], cwd=folder, env=cluster.environment, start_new_session=True)
            cluster.until((folder / "ready").exists)  # what is created before the webhooks are registered lacks their defaults
            yield cluster
        finally:
            if started is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(started.pid, signal.SIGTERM)
                started.wait()
            for made in CERTIFICATES.iterdir():
                made.unlink()
