"""Suites of others on `pumice up`: a cluster in a process of its own, and those specs of a program written with Ginkgo that do not pass.

What passes is listed in files, by full names.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

LIMIT_S = 7200


def listed(name: str) -> list[str]:
    """The names in a list."""
    return [line for line in (Path(__file__).parent / name).read_text().splitlines() if not line.startswith("#")]


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


def failed(
    program: Path, names: Collection[str], folder: Path, environment: Mapping[str, str] = os.environ, **flags: object
) -> dict[str, str]:
    """Those of the specs that do not pass, with what they say."""
    report = folder / "report.json"
    focus = "|".join(re.escape(name).replace(r"\ ", " ") for name in names)  # Go knows no escaped space
    given = flags | {"ginkgo.focus": focus, "ginkgo.json-report": report, "ginkgo.timeout": f"{LIMIT_S}s"}
    command = [str(program), *(f"--{name}={value}" for name, value in given.items())]
    subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, timeout=LIMIT_S + 60, check=False)
    found = dict.fromkeys(names, "not run")
    for spec in (spec for suite in json.loads(report.read_text()) for spec in suite["SpecReports"]):
        name = " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]])
        if spec["State"] == "passed":
            found.pop(name, None)
        elif spec.get("Failure"):
            found[name] = spec["Failure"]["Message"][:2000]
    return found
