"""Volcano's own end-to-end suites against Volcano's own chart, of whose programs each is replaced by one of ours.

Given is a checkout of Volcano: `VOLCANO_SOURCE=FOLDER pytest -m nightly tests/cluster/test_volcano_suites.py`. Its suites are built there.
A file `results-SUITE.json` in VOLCANO_RESULTS, if that is set, has what ginkgo tells. FOCUS is a pattern of the specs to run.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from binaries import why_not
from realcluster import RealCluster
from volcano_release import NEEDED, at_work

pytestmark = pytest.mark.nightly
LIMIT_S = 7200


def _share(name: str, least: int, most: int, *policies: dict[str, Any]) -> dict[str, Any]:
    """What a scheduler is given by the sharding controller."""
    limit = {"name": "node-limit", "arguments": {"minNodes": least, "maxNodes": most}}
    return {"name": name, "type": name.partition("-")[0], "policies": [*policies, limit]}


def _rate(lowest: float, highest: float) -> dict[str, Any]:
    return {"name": "allocation-rate", "weight": 1, "arguments": {"minCPUUtil": lowest, "maxCPUUtil": highest}}


def _sharding(period: str, *shares: dict[str, Any]) -> dict[str, Any]:
    data = {"schedulerConfigs": shares, "shardSyncPeriod": period, "enableNodeEventTrigger": True}
    return {"controller_enabled_controllers": "*", "sharding_configmap_data": yaml.safe_dump(data)}


_ONE_NODE = _sharding("30s", _share("volcano", 1, 1, _rate(0.0, 0.6)), _share("agent-scheduler", 1, 100))
_WARM = _share("agent-scheduler", 2, 100, _rate(0.7, 1.0), {"name": "warmup", "weight": 1})
_BY_LOAD = _sharding("60s", _share("volcano", 2, 100, _rate(0.0, 0.6)), _WARM)
_GATES = "SchedulingGatesQueueAdmission=true"
_RACKS = {
    "networkTopologyDiscovery": [
        {
            "source": "label",
            "enabled": True,
            "config": {
                "networkTopologyTypes": {
                    "e2e-rack-topology": [{"nodeLabel": "volcano.sh/e2e-hypernode-rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
                }
            },
        }
    ]
}


class Suite(NamedTuple):
    package: str
    labels: str = ""
    custom: dict[str, Any] = {}  #: values of the chart
    kwok_nodes: int = 0  #: beside the four of all suites
    focus: str = ""  #: the specs to run, unless FOCUS names others
    #: by a part of a spec's name: why it cannot pass
    known: dict[str, str] = {}


SUITES = {
    "jobp": Suite("jobp"),
    "jobseq": Suite("jobseq"),
    "schedulingbase": Suite("schedulingbase", known={"Volume Binding": "it runs commands in containers, which are played here"}),
    "schedulingaction": Suite("schedulingaction"),
    "schedulinggates": Suite("schedulinggates", custom={f"{part}_feature_gates": _GATES for part in ("scheduler", "admission")}),
    "vcctl": Suite("vcctl"),
    "dra": Suite("dra", focus="DRA Quota"),  # the others wait for pods of a driver, which cannot be played
    "cronjob": Suite("cronjob"),
    "admission": Suite("admission"),
    "hypernode": Suite(
        "hypernode",
        custom={"controller_config_override": _RACKS},
        kwok_nodes=8,
        known={"Case 2.1: Schedule to tier 2": "Volcano's own scheduler takes the same node here, of two that score alike"},
    ),
    "gangevict": Suite("gangevict", kwok_nodes=4),
    "shardingcontroller": Suite("shardingcontroller", custom=_BY_LOAD),
    **{
        f"schedulersharding-{mode}": Suite("schedulersharding", labels=mode, custom={"scheduler_sharding_mode": mode, **_ONE_NODE})
        for mode in ("none", "soft", "hard")
    },
}


def build(source: Path, package: str) -> Path:
    """The suite as a program, beside `vcctl`, which one of them calls."""
    path = source / "_output/bin" / f"{package}.test"
    path.parent.mkdir(parents=True, exist_ok=True)
    for made, words in ((path, ["test", "-c", "-vet=off", f"./test/e2e/{package}"]), (path.with_name("vcctl"), ["build", "./cmd/cli"])):
        if not made.exists():
            *options, package = words
            command = ["nice", "-n", "19", "go", *options, "-mod=mod", "-trimpath", "-o", made, package]
            subprocess.run(command, cwd=source, env=os.environ | {"CGO_ENABLED": "0"}, check=True)
    return path


async def run(suite: Suite, binary: Path, source: Path, folder: Path, report: Path) -> None:
    with RealCluster(folder) as cluster:
        async with at_work(cluster, source, folder, suite.custom, suite.kwok_nodes):
            flags = {
                "ginkgo.focus": os.environ.get("FOCUS", suite.focus),
                "ginkgo.label-filter": suite.labels,
                "ginkgo.skip": r"\[sig-.*\]",
                "ginkgo.json-report": report,
                "ginkgo.timeout": f"{LIMIT_S}s",
            }
            command = [binary, *(f"--{name}={value}" for name, value in flags.items())]
            environment = os.environ | {"KUBECONFIG": str(cluster.kubeconfig()), "VC_BIN": str(binary.parent)}
            with (folder / "suite.log").open("wb") as out:
                process = await asyncio.create_subprocess_exec(*command, cwd=folder, env=environment, stdout=out, stderr=out)
            try:
                await asyncio.wait_for(process.wait(), LIMIT_S + 60)
            finally:
                if process.returncode is None:
                    process.kill()


@pytest.mark.parametrize("name", SUITES)
def test_suite(name: str, tmp_path: Path) -> None:
    source, suite = os.environ.get("VOLCANO_SOURCE"), SUITES[name]
    if not source or why_not(NEEDED):
        pytest.skip(why_not(NEEDED) or "VOLCANO_SOURCE is not set: a checkout of Volcano")
    report = Path(os.environ.get("VOLCANO_RESULTS") or tmp_path, f"results-{name}.json")
    asyncio.run(run(suite, build(Path(source), suite.package), Path(source), tmp_path, report))
    states = outcome(report)
    failed = {spec for spec, state in states.items() if state != "passed" and not any(part in spec for part in suite.known)}
    assert states and not failed


def outcome(report: Path) -> dict[str, str]:
    """By spec that was not left out: how it ended."""
    specs = (spec for suite in json.loads(report.read_text()) for spec in suite["SpecReports"] if spec["LeafNodeType"] == "It")
    return {
        " ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]]): spec["State"]
        for spec in specs
        if spec["State"] not in ("pending", "skipped")
    }
