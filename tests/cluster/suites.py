"""Suites of others on `pumice up`: a cluster in a process of its own, and those specs of a program that do not pass.

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


def up(kubeconfig: Path, name: str, *options: str) -> contextlib.AbstractContextManager[None]:
    """A cluster that ends with the block. Its data is beside the kubeconfig."""
    data = str(kubeconfig.parent / f"of-{name}")
    return _process(kubeconfig, "is the current context", "pumice", "up", *options, "--no-page", "--port", "0", "--data", data)


def api_server(kubeconfig: Path) -> contextlib.AbstractContextManager[None]:
    """Its API server alone: for suites that play the controllers and kubelets themselves."""
    return _process(kubeconfig, "https://", "pumice.cluster.apiserver", "--kubeconfig", str(kubeconfig))


@contextlib.contextmanager
def _process(kubeconfig: Path, told: str, *command: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True, env=os.environ | {"KUBECONFIG": str(kubeconfig)}
    )
    try:
        assert process.stdout is not None and any(told in line for line in process.stdout)
        yield
    finally:
        process.terminate()
        process.communicate()


def failed(
    program: Path, names: Collection[str], folder: Path, environment: Mapping[str, str] = os.environ, **flags: object
) -> dict[str, str]:
    """Those of the specs that do not pass, with what they say."""
    report = folder / "report.json"
    focus = "|".join(
        re.sub(r"(\\ )+", " +", re.escape(name)) for name in names
    )  # Go knows no escaped space, Ginkgo no empty name of a table
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


def failed_of_go(program: Path, names: Collection[str], folder: Path, environment: Mapping[str, str]) -> set[str]:
    """Those of the tests of a program written without Ginkgo that do not pass. What they say is in a file."""
    command = [str(program), "-test.v", "-test.run", f"^({'|'.join(names)})$"]
    with (folder / "log").open("wb") as log:
        subprocess.run(command, cwd=folder, env=environment, stdout=log, stderr=log, timeout=LIMIT_S, check=False)
    return set(names) - set(re.findall(r"^--- PASS: (\S+)", (folder / "log").read_text(errors="replace"), re.MULTILINE))
