"""One cycle of the real vc-scheduler beside one of ours, on the recorded cases and on random states.

Given is a program: `VOLCANO_SCHEDULER=FILE pytest -m nightly tests/cluster/test_volcano_states.py`. It runs against a real API server
into whose etcd the states are put. SEED is the first of the random states, or sequences of changes, and STATES says how many there are.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from binaries import why_not
from installed import DEFINITIONS, pumice
from random_changes import Sequence, putting
from random_states import InDomains, Mixed, Ruled, State
from realcluster import RealCluster
from stored import PLACES, Etcd, as_stored
from volcano_release import kubectl, until_established

from pumice.live.scheduler.loop import Scheduler
from pumice.live.scheduler.options import Options
from tests.cases.compare import LOADER, Case, agrees, cases, owners, plain
from tests.cases.test_cases import run
from tests.live.memory import MemoryServer
from tests.live.stories import policy
from tests.live.virtual import VirtualClock, run as run_live

pytestmark = pytest.mark.nightly
RECORDED = Path(__file__).parents[1] / "cases" / "volcano"
NOW = {"now": "2026-01-01T12:00:00Z"}
RUNS = 8  #: of the real one for a state in which it leaves much to chance
END_S = 60.0
QUIET_S = 1.0  #: without a write after the cycle's end: binds and evictions are sent by goroutines
SEEN = "nodes,pods,priorityclasses,poddisruptionbudgets,queues.scheduling.volcano.sh,podgroups.scheduling.volcano.sh,hypernodes"
#: what depends on the time of day, on messages, or on what is no object of the API server
LEFT_OUT = ("enqueue-sla", "preempt-cdp", "tdm", "vgpu", "conf-", "message", "deviceshare", "numa", "usage", "extender", "random-states")


class Crashed(Exception):
    """The real scheduler ended before its cycle did."""


class Volcano:
    """The real scheduler; each state has a process of its own, which makes one cycle."""

    def __init__(self, cluster: RealCluster, program: str, folder: Path) -> None:
        self._cluster, self._program, self._folder = cluster, program, folder
        self._etcd = Etcd(cluster)

    def outcome(self, documents: list[dict[str, Any]]) -> dict[str, Any]:
        given = as_stored(documents)
        self._etcd.replace_all(given)
        kubectl(self._cluster, "get", SEEN, "-A", "-o", "name")  # a consistent list, for which the API server's caches catch up
        self._one_cycle([self._configured(item["data"]["volcano-scheduler.conf"]) for item in documents if item["kind"] == "ConfigMap"])
        return self._compared(given)

    def _configured(self, text: str) -> str:
        path = self._folder / "configuration" / "volcano-scheduler.conf"  # in a folder of its own, which the program watches
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return f"--scheduler-conf={path}"

    def _one_cycle(self, configuration: list[str]) -> None:
        off = ("--leader-elect=false", "--enable-healthz=false", "--enable-metrics=false", "--schedule-period=1h", "--v=4")
        command = [self._program, f"--kubeconfig={self._cluster.kubeconfig()}", *configuration, *off]
        log = self._folder / "vc-scheduler.log"
        with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
            try:
                until = time.monotonic() + END_S
                while b"End scheduling" not in log.read_bytes():
                    if process.poll() is not None:
                        break
                    assert time.monotonic() < until, log.read_text()[-2000:]
                    time.sleep(0.1)
                self._until_quiet()
                if process.poll() is not None:
                    raise Crashed(log.read_text()[-2000:])
            finally:
                process.kill()

    def _until_quiet(self) -> None:
        revision = -1
        while revision != (revision := self._etcd.revision()):
            time.sleep(QUIET_S)

    def _compared(self, given: list[dict[str, Any]]) -> dict[str, Any]:
        printed = kubectl(self._cluster, "get", "pods,podgroups.scheduling.volcano.sh", "-A", "-o", "json")
        found = {(item["kind"], _name(item)): item for item in json.loads(printed)["items"]}
        pods = {_name(item): item for item in given if item["kind"] == "Pod"}
        now = {name: found.get(("Pod", name)) for name in pods}
        groups = [_name(item) for item in given if item["kind"] == "PodGroup"]
        return {
            "binds": {
                name: pod["spec"]["nodeName"]
                for name, pod in now.items()
                if pod and pod["spec"].get("nodeName") and not pods[name]["spec"].get("nodeName")
            },
            "evicts": sorted(
                name
                for name, pod in now.items()
                if (not pod or pod["metadata"].get("deletionTimestamp")) and not pods[name]["metadata"].get("deletionTimestamp")
            ),
            "podGroups": {name: found["PodGroup", name]["status"]["phase"] for name in groups},
        }


def _name(item: dict[str, Any]) -> str:
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


@pytest.fixture(scope="module")
def volcano(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Volcano]:
    program = os.environ.get("VOLCANO_SCHEDULER", "")
    if not program or why_not():
        pytest.skip(why_not() or "VOLCANO_SCHEDULER names no vc-scheduler")
    folder = tmp_path_factory.mktemp("volcano")
    (folder / "cluster").mkdir()
    with RealCluster(folder / "cluster") as cluster:
        pumice(cluster, "apply", "-f", str(DEFINITIONS))
        until_established(cluster, len(list(DEFINITIONS.glob("*.yaml"))))
        yield Volcano(cluster, program, folder)


def _can_be_put(case: Case) -> bool:
    documents = [item for item in yaml.load_all(case.text, LOADER) if item]
    kinds = {item["kind"] for item in documents} - {"ConfigMap"}
    return case.expect.get("cycles", 1) == 1 and "outcomes" in case.expect and kinds <= set(PLACES) and not case.name.startswith(LEFT_OUT)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases(RECORDED) if _can_be_put(case)])
def test_the_real_scheduler_does_what_was_recorded(volcano: Volcano, case: Case) -> None:
    recorded = case.expect.get("upstreamOutcomes") or case.expect["outcomes"]
    documents = [item for item in yaml.load_all(case.text, LOADER) if item]
    for _ in range(RUNS):
        theirs = volcano.outcome(documents)
        if any(agrees(theirs, {**outcome, "pipelined": {}}, case.expect, owners(case.text)) for outcome in recorded):
            return
    raise AssertionError(theirs)


@pytest.mark.parametrize("made", [State, Ruled, InDomains, Mixed])
def test_random_states_have_an_outcome_of_the_real_scheduler(
    volcano: Volcano, made: Callable[[int], State | Mixed], tmp_path: Path
) -> None:
    """Nearly all: chance and what docs/differences.md says explain the others, which are printed. Where the real one crashes, all goes."""
    first, count = int(os.environ.get("SEED", "1")), int(os.environ.get("STATES", "100"))
    differ = [seed for seed in range(first, first + count) if not _agree(volcano, made(seed).documents, seed, tmp_path)]
    assert len(differ) <= count * 0.05, differ


def test_states_that_random_changes_come_to_have_one_too(volcano: Volcano, tmp_path: Path) -> None:
    """As above: the states before each cycle, which have what schedulers wrote and what pods and jobs have lived through."""
    first, count = int(os.environ.get("SEED", "1")), int(os.environ.get("STATES", "100"))
    states = {
        seed * 100 + step: state for seed in range(first, first + count) for step, state in enumerate(run_live(came_to(Sequence(seed))))
    }
    differ = [number for number, state in states.items() if not _agree(volcano, state, number, tmp_path)]
    assert len(differ) <= len(states) * 0.05, differ


async def came_to(sequence: Sequence) -> list[list[dict[str, Any]]]:
    """The objects before each cycle of the live scheduler."""
    server, found = MemoryServer(start_s=None, stop_s=1e7), []
    for item in sequence.objects:
        putting(item)(server)
    scheduler = Scheduler(server, policy(sequence.texts[0]), Options(period_s=0.0), VirtualClock())
    async with scheduler.started():
        for text, changes in zip(sequence.texts, sequence.steps, strict=True):
            for change in changes:
                change(server)
            scheduler.adopt(policy(text))
            await asyncio.sleep(1.0)
            configuration = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"volcano-scheduler.conf": text}}
            found.append([configuration, *(deepcopy(item) for item in server.objects.values() if item.get("kind") in PLACES)])
            await scheduler.step()
    return found


def _agree(volcano: Volcano, documents: list[dict[str, Any]], seed: int, folder: Path) -> bool:
    path = folder / f"{seed}.yaml"
    path.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    ours, seen = plain(run("cycle", path, NOW)), []
    for _ in range(RUNS):
        try:
            seen.append(volcano.outcome(documents))
        except Crashed as crash:
            print(f"state {seed}: {crash}")
            return True
        if all(ours[key] == value for key, value in seen[-1].items()):
            return True
    print(f"state {seed}\n  ours {json.dumps(ours)}\n  real {json.dumps(seen[-1])}")
    return _in_numbers(ours, path.read_text()) in [_in_numbers(theirs, path.read_text()) for theirs in seen]


def _in_numbers(outcome: dict[str, Any], text: str) -> list[Any]:
    """Equal pods are not told apart."""
    owner = owners(text)
    return [Counter(owner[pod] for pod in outcome[part]) for part in ("binds", "evicts")] + [outcome["podGroups"]]
