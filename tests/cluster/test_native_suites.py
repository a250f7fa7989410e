"""Upstream's own suites of native gangs against a real API server of 1.37, once with the real kube-scheduler and once with ours.

What the real one passes, ours passes: the end-to-end tests that need no containers, whose pods are played, and the integration tests of
PodGroups as far as they can be played from outside. FOCUS is a pattern of the scenarios to run.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from binaries import NEXT, program, programs, why_not
from installed import PROGRAM
from played_nodes import PlayedNodes, add_node
from podgroup_steps import Play, Scenario, scenarios
from realcluster import RealCluster
from stage import until_true

from pumice.api.kinds import DEVICE_CLASSES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import as_dict
from tests.ports import free_port

pytestmark = pytest.mark.nightly
OWN = tuple(f"{name}-{NEXT}" for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "e2e.test"))
SERVER, MANAGER, SCHEDULER, SUITE = OWN
NEEDED = ("etcd", *OWN)
LIMIT_S = 1800
FOCUS = r"\[sig-scheduling\] (Workload|GangScheduling|WorkloadAwarePreemption)"
SPECS = 7
SCHEDULERS = ("kube-scheduler", "pumice")
#: as the integration tests' own API server
AS_TESTED = ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,Priority,StorageObjectInUseProtection",)
Gates = dict[str, bool]


def gates_flag(gates: Gates) -> str:
    return "--feature-gates=" + ",".join(f"{name}={str(on).lower()}" for name, on in gates.items())


def served(gates: Gates) -> list[str]:
    versions = ["scheduling.k8s.io/v1beta1=true", *(["scheduling.k8s.io/v1alpha3=true"] if gates.get("CompositePodGroup") else [])]
    return [gates_flag(gates), f"--runtime-config={','.join(versions)}"]


def commands(cluster: RealCluster, gates: Gates) -> dict[str, list[str]]:
    """Of both schedulers, by the same profile."""
    profile: dict[str, Any] = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    profile |= {"podMaxBackoffSeconds": 1, "percentageOfNodesToScore": 100}
    theirs, ours = cluster.folder / "kube-scheduler.yaml", cluster.folder / "pumice.yaml"
    connection = {"kubeconfig": str(cluster.kubeconfig())}
    theirs.write_text(yaml.safe_dump(profile | {"clientConnection": connection, "leaderElection": {"leaderElect": False}}))
    ours.write_text(yaml.safe_dump(profile))
    usual = [f"--kubeconfig={cluster.kubeconfig()}", "--leader-elect=false", "--scheduler-name=default-scheduler"]
    return {
        "kube-scheduler": [str(program(SCHEDULER)), f"--config={theirs}", f"--secure-port={free_port()}", gates_flag(gates)],
        "pumice": [PROGRAM, "scheduler", *usual, f"--scheduler-conf={ours}", gates_flag(gates)],
    }


@asynccontextmanager
async def running(command: list[str], log: Path, cwd: Path | None = None) -> AsyncIterator[asyncio.subprocess.Process]:
    with log.open("ab") as out:
        process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out, cwd=cwd)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


def controller_manager(cluster: RealCluster, gates: Gates) -> list[str]:
    """Kubernetes' controllers. Nodes are played and have no heartbeat."""
    key = f"--service-account-private-key-file={cluster.folder / 'accounts.key'}"
    usual = [f"--kubeconfig={cluster.kubeconfig()}", "--leader-elect=false", f"--secure-port={free_port()}", gates_flag(gates)]
    root = f"--root-ca-file={cluster.folder / 'ca.pem'}"
    return [str(program(MANAGER)), *usual, key, root, "--controllers=*,-node-lifecycle-controller"]


async def end_to_end(scheduler: str, folder: Path) -> dict[str, str]:
    """By spec: how it ended."""
    gates, report = {"GenericWorkload": True}, folder / "report.json"
    with RealCluster(folder, release=NEXT, flags=served(gates)) as cluster:
        flags = {
            "kubeconfig": cluster.kubeconfig(),
            "provider": "skeleton",
            "allowed-not-ready-nodes": -1,
            "minStartupPods": 0,
            "ginkgo.focus": os.environ.get("FOCUS") or FOCUS,
            "ginkgo.json-report": report,
            "ginkgo.timeout": f"{LIMIT_S}s",
        }
        command = [str(program(SUITE)), *(f"--{name}={value}" for name, value in flags.items())]
        async with (
            Client(cluster.access()) as client,
            running(controller_manager(cluster, gates), folder / "manager.log"),
            running(commands(cluster, gates)[scheduler], folder / "scheduler.log"),
        ):
            for number in range(3):
                await add_node(client, f"worker-{number}", {"cpu": "8", "memory": "16Gi", "pods": "110"})
            nodes = asyncio.create_task(PlayedNodes(client).run())
            try:
                async with running(command, folder / "suite.log", folder) as suite:
                    await asyncio.wait_for(suite.wait(), LIMIT_S + 60)
            finally:
                nodes.cancel()
                await asyncio.gather(nodes, return_exceptions=True)
    specs = (spec for each in json.loads(report.read_text()) for spec in each["SpecReports"] if spec["LeafNodeType"] == "It")
    ended = {" ".join([*(spec["ContainerHierarchyTexts"] or []), spec["LeafNodeText"]]): spec["State"] for spec in specs}
    return {name: state for name, state in ended.items() if state not in ("pending", "skipped")}


async def played(scheduler: str, chosen: list[Scenario], folder: Path) -> dict[str, str]:
    """By scenario that did not come to what it should: where it stood."""
    failed = {}
    for number, (_, same) in enumerate(groupby(chosen, key=_gates_of)):
        each_of = list(same)
        gates, own = each_of[0].gates, folder / str(number)
        own.mkdir()
        with RealCluster(own, release=NEXT, flags=[*served(gates), *AS_TESTED]) as cluster:
            async with Client(cluster.access()) as client, running(commands(cluster, gates)[scheduler], own / "scheduler.log") as process:
                for count, scenario in enumerate(each_of):
                    play = Play(client, f"s{count}")
                    try:
                        await play.run(scenario)
                    except AssertionError as error:
                        failed[scenario.name] = str(error)
                    await play.clear()
                assert process.returncode is None, (own / "scheduler.log").read_text()[-3000:]
    return failed


def _gates_of(scenario: Scenario) -> list[tuple[str, bool]]:
    return sorted(scenario.gates.items())


@pytest.fixture(autouse=True)
def _can_be_built() -> None:
    if why_not(NEEDED):
        pytest.skip(why_not(NEEDED))
    programs(*NEEDED)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_end_to_end_tests_of_groups_pass(scheduler: str, tmp_path: Path) -> None:
    states = asyncio.run(end_to_end(scheduler, tmp_path))
    assert not {name for name, state in states.items() if state != "passed"} and (len(states) == SPECS or "FOCUS" in os.environ)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_the_integration_tests_of_groups_come_to_what_they_should(scheduler: str, tmp_path: Path) -> None:
    focus = re.compile(os.environ.get("FOCUS", ""))
    chosen = sorted((each for each in scenarios() if focus.search(each.name)), key=_gates_of)
    assert chosen and not asyncio.run(played(scheduler, chosen, tmp_path))


async def sharing(folder: Path) -> list[str]:
    """The pods for which a claim is reserved whose devices Pumice allocated, after each scheduler has placed one."""
    gates, request = {"GenericWorkload": True}, {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    with RealCluster(folder, release=NEXT, flags=[*served(gates), *AS_TESTED]) as cluster:
        async with Client(cluster.access()) as client:
            await add_node(client, "n", {"cpu": "8", "memory": "16Gi", "pods": "110"})
            await client.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {}})
            spec = {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [{"name": "a"}]}
            await client.create(RESOURCE_SLICES, {"metadata": {"name": "s"}, "spec": spec})
            claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [{"name": "g", "exactly": request}]}}}
            await client.create(RESOURCE_CLAIMS, claim, "default")

            async def is_bound(name: str) -> bool:
                return bool(as_dict(await client.get(PODS, ObjectRef(name, "default")))["spec"].get("nodeName"))

            for name in reversed(SCHEDULERS):
                using = {"containers": [{"name": "c", "image": "x"}], "resourceClaims": [{"name": "g", "resourceClaimName": "c"}]}
                await client.create(PODS, {"metadata": {"name": name}, "spec": using}, "default")
                async with running(commands(cluster, gates)[name], folder / f"{name}.log"):
                    await asyncio.wait_for(until_true(lambda name=name: is_bound(name)), 120)
            found = as_dict(await client.get(RESOURCE_CLAIMS, ObjectRef("c", "default")))
    return [user["name"] for user in found["status"]["reservedFor"]]


def test_a_claim_that_pumice_allocated_is_reserved_by_the_real_scheduler_too(tmp_path: Path) -> None:
    assert asyncio.run(sharing(tmp_path)) == ["pumice", "kube-scheduler"]
