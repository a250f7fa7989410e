"""Kubernetes' own conformance specs on `pumice up`: those of conformance.txt pass. A sample of them is run with the cluster tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from binaries import program, why_not
from suites import failed, listed, up

PASSING = listed("conformance.txt")
#: of each area some, none of which takes more than a few seconds
QUICK = re.compile(
    r"MutatingAdmissionPolicy API|\[DRA\] CRUD|FlowSchema|RuntimeClasses API|ConfigMap lifecycle"
    r"|custom resource defaulting|that matches no pods"
)
SAMPLE = [name for name in PASSING if QUICK.search(name)]


def not_passing(names: list[str], folder: Path) -> dict[str, str]:
    flags = {"provider": "skeleton", "allowed-not-ready-nodes": -1, "minStartupPods": 0}
    with up(folder / "config", "conformance", "--nodes", "3x16cpu:64Gi"):
        return failed(program("e2e.test"), names, folder, kubeconfig=folder / "config", **flags)


@pytest.mark.cluster
def test_a_sample_of_the_specs_passes(tmp_path: Path) -> None:
    if why_not(["e2e.test"]):
        pytest.skip(why_not(["e2e.test"]))
    assert len(SAMPLE) > 5 and not not_passing(SAMPLE, tmp_path)


@pytest.mark.nightly
def test_what_has_passed_passes(tmp_path: Path) -> None:
    if why_not(["e2e.test"]):
        pytest.skip(why_not(["e2e.test"]))
    assert not not_passing(PASSING, tmp_path)
