"""Kubernetes' own conformance specs on `pumice up`: those of conformance.txt pass. A sample of them is run with the cluster tests."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from binaries import program, why_not
from ups import up

PASSING = [line for line in (Path(__file__).parent / "conformance.txt").read_text().splitlines() if not line.startswith("#")]
#: of each area some, none of which takes more than a few seconds
QUICK = re.compile(r"MutatingAdmissionPolicy API|\[DRA\] CRUD|FlowSchema|RuntimeClasses API|ConfigMap lifecycle")
SAMPLE = [name for name in PASSING if QUICK.search(name)]
LIMIT_S = 7200


def failed(names: Iterable[str], folder: Path) -> set[str]:
    """Those of the specs that do not pass."""
    report = folder / "report.json"
    focus = "|".join(re.escape(name).replace(r"\ ", " ") for name in names)  # Go knows no escaped space
    with up(folder / "config", "conformance", "--nodes", "3x16cpu:64Gi"):
        flags = {
            "kubeconfig": folder / "config",
            "provider": "skeleton",
            "allowed-not-ready-nodes": -1,
            "minStartupPods": 0,
            "ginkgo.focus": focus,
            "ginkgo.json-report": report,
            "ginkgo.timeout": f"{LIMIT_S}s",
        }
        command = [program("e2e.test"), *(f"--{name}={value}" for name, value in flags.items())]
        subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, timeout=LIMIT_S + 60, check=False)
    specs = (spec for suite in json.loads(report.read_text()) for spec in suite["SpecReports"] if spec["LeafNodeType"] == "It")
    passed = {" ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]]) for spec in specs if spec["State"] == "passed"}
    return set(names) - passed


@pytest.mark.cluster
def test_a_sample_of_the_specs_passes(tmp_path: Path) -> None:
    if why_not(["e2e.test"]):
        pytest.skip(why_not(["e2e.test"]))
    assert len(SAMPLE) > 5 and not failed(SAMPLE, tmp_path)


@pytest.mark.nightly
def test_what_has_passed_passes(tmp_path: Path) -> None:
    if why_not(["e2e.test"]):
        pytest.skip(why_not(["e2e.test"]))
    assert not failed(PASSING, tmp_path)
