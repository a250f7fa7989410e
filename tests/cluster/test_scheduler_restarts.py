"""`pumice scheduler` as processes: held up, restarted, side by side; and its state replayed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from installed import PROGRAM
from realcluster import USERS, RealCluster
from replicas import Process, replica, stage_for, until_leader
from stage import Stage, until_true

from pumice.api.kinds import PODS, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import PatchType
from pumice.scheduler.config.volcano_conf import DEFAULT

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

PREEMPTING = DEFAULT.replace("allocate, backfill", "allocate, preempt, reclaim, backfill")
READS = ("get", "list", "watch")


def written(cluster: RealCluster, user: str, since: int) -> list[str]:
    """What a user asked to be written from a place in the audit log on, but for leases."""
    found = []
    with cluster.audit_log.open() as log:
        log.seek(since)
        for line in log:
            entry = json.loads(line)
            resource = entry.get("objectRef", {}).get("resource")
            if entry["user"]["username"] == USERS[user][0] and entry["verb"] not in READS and resource != "leases":
                found.append(f"{entry['verb']} {entry['requestURI']}")
    return found


def test_a_leader_that_was_held_up_writes_nothing_after_another_took_over(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=40)
            async with replica(cluster, stage, tmp_path) as first:
                held_by = await until_leader(client, namespace)
                await stage.gang("warm", pods=2, cpu=1)
                await stage.until_placed("warm", 2)
                await asyncio.sleep(2.0)  # statuses have left: what is on its way to the server when it is stopped would arrive later
                first.process.send_signal(signal.SIGSTOP)
                try:
                    await stage.gang("work", pods=30, cpu=1)
                    async with replica(cluster, stage, tmp_path, user="standby"):
                        await until_leader(client, namespace, other_than=held_by)
                        await stage.until_placed("work", 30)
                        await stage.gang("more", pods=2, cpu=1)
                        since = cluster.audit_log.stat().st_size
                        first.process.send_signal(signal.SIGCONT)
                        assert await asyncio.wait_for(first.process.wait(), 30) == 1
                        await stage.until_placed("more", 2)
                finally:
                    if first.process.returncode is None:
                        first.process.send_signal(signal.SIGCONT)
                assert not written(cluster, "scheduler", since)
                assert "the lead was lost" in first.log.read_text()

    play(story)


async def until_says(process: Process, *words: str) -> None:
    async def said() -> bool:
        text = process.log.read_text()
        return all(word in text for word in words)

    await until_true(said)


def preempting(folder: Path) -> tuple[str, str]:
    """Flags of a lone scheduler that preempts."""
    conf = folder / "scheduler.conf"
    conf.write_text(PREEMPTING)
    return f"--scheduler-conf={conf}", "--leader-elect=false"


def test_a_scheduler_that_comes_into_a_running_cluster_leaves_what_runs_alone(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        flags = preempting(tmp_path)
        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=8)
            await stage.node("b", cpu=8)
            async with replica(cluster, stage, tmp_path, *flags):
                for number in range(3):
                    await stage.gang(f"old{number}", pods=4, cpu=1, minimum=1)
                await stage.until_placed("old", 12)
                for number in range(3):
                    await stage.until_told_of(f"old{number}", running=4)
            pods = {name: pod["metadata"]["uid"] for name, pod in (await stage.pods()).items()}
            groups = {name: await stage.group(name) for name in ("old0", "old1", "old2")}
            since = cluster.audit_log.stat().st_size
            async with replica(cluster, stage, tmp_path, *flags):
                await stage.gang("new", pods=5, cpu=1)
                await stage.gang("fits", pods=4, cpu=1)
                await stage.until_placed("fits", 4)
            assert not await stage.placed("new")
            assert {name: await stage.group(name) for name in groups} == groups
            assert pods.items() <= {name: pod["metadata"]["uid"] for name, pod in (await stage.pods()).items()}.items()
            assert not [write for write in written(cluster, "scheduler", since) if "/old" in write]

    play(story)


def test_schedulers_side_by_side_count_each_others_pods(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=6)
            names = ("volcano", "batch-two")
            async with (
                replica(cluster, stage, tmp_path, "--leader-elect=false"),
                replica(cluster, stage, tmp_path, "--scheduler-name=batch-two", "--leader-elect-resource-name=batch-two"),
            ):
                for number, name in enumerate(names):
                    await stage.gang(f"g{number}", pods=2, cpu=1, scheduler=name)
                await stage.until_placed("g", 4)
                for number, name in enumerate(names):
                    await stage.gang(f"later{number}", pods=1, cpu=1, scheduler=name)
                    await stage.until_placed(f"later{number}", 1)
                await stage.gang("none", pods=1, cpu=1, scheduler="batch-two")
                await stage.until_phase("none", "Inqueue")
                await asyncio.sleep(1.0)
                assert not await stage.placed("none")

    play(story)


def replayed(state: Path) -> dict[str, Any]:
    done = subprocess.run([PROGRAM, "cycle", "-f", str(state), "-o", "json"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_state_that_a_signal_writes_decides_as_the_scheduler_did(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        dumps = tmp_path / "dumps"
        dumps.mkdir()
        async with stage_for(client, namespace) as stage:
            for name in "abc":
                await stage.node(name, cpu=2)
            await stage.change_node("a", spec={"unschedulable": True})
            async with replica(cluster, stage, tmp_path, "--leader-elect=false", f"--cache-dump-dir={dumps}") as process:
                await stage.gang("train", pods=5, cpu=1)
                await waits(stage, "train-0")
                process.process.send_signal(signal.SIGUSR2)
                await until_says(process, "the state was written to")
                (state,) = dumps.iterdir()
                answer = replayed(state)
                assert not answer["binds"]
                text = json.dumps(answer)
                assert "pod group is not ready" in text
                opened = json.loads(state.read_text())
                for item in opened["items"]:
                    if item["kind"] == "Node":
                        item["spec"] = {}
                (tmp_path / "changed.json").write_text(json.dumps(opened))
                decided = {pod.partition("/")[2]: node for pod, node in replayed(tmp_path / "changed.json")["binds"].items()}
                await stage.change_node("a", spec={"unschedulable": None})
                assert await stage.until_placed("train", 5) == decided

    play(story)


async def waits(stage: Stage, pod: str) -> None:
    async def told() -> bool:
        conditions = (await stage.pods())[pod]["status"].get("conditions") or ()
        return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)

    await until_true(told)


def test_a_restart_amid_an_eviction_evicts_nobody_else(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        flags = preempting(tmp_path)
        async with stage_for(client, namespace, stop_s=6.0) as stage:
            high = await stage.priority_class("high", 1000)
            await stage.node("a", cpu=4)
            async with replica(cluster, stage, tmp_path, *flags) as process:
                await stage.gang("low", pods=4, cpu=1, minimum=1, terminationGracePeriodSeconds=60)
                await stage.until_placed("low", 4)
                await stage.until_phase("low", "Running")
                await stage.gang("high", pods=2, cpu=1, priority_class=high, priorityClassName=high)

                async def going() -> bool:
                    return len(await stage.placed("low")) == 2

                await until_true(going)
                await process.kill()
            async with replica(cluster, stage, tmp_path, *flags):
                await stage.until_placed("high", 2)
                await asyncio.sleep(1.0)
                assert len(await stage.placed("low")) == 2

    play(story)


def test_pods_of_a_name_that_is_used_again_are_told_apart(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage:
            await stage.node("a", cpu=2)
            async with replica(cluster, stage, tmp_path, "--leader-elect=false"):
                await stage.gang("train", pods=2, cpu=1)
                for _ in range(5):
                    await stage.until_placed("train", 2)
                    ref = ObjectRef("train-0", namespace)
                    await client.patch(PODS, ref, {"metadata": {"annotations": {"seen": "yes"}}}, PatchType.MERGE)
                    await client.delete(PODS, ref)
                    await stage.pod("train-0", 1, group="train")
                await stage.until_placed("train", 2)

    play(story)
