"""Beside another scheduler: it writes nothing, and tells where it would have decided otherwise."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pumice.api.kinds import PODS, PRIORITY_CLASSES
from pumice.cli.embedded import running
from pumice.cli.up_options import UpRequest, policy_of as policy_of_up
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.http.messages import Request
from pumice.live.scheduler import shadow as shadow_module
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.shadow import HOUR_S, Shadow
from pumice.live.scheduler.shadow_comparison import Comparison, PodVerdict, ShadowMetrics, page
from pumice.scheduler.framework.cycle import rehearse
from pumice.scheduler.framework.decisions import Decisions
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.framework.world import World
from pumice.scheduler.model import Cluster
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE
from tests.live.stories import PREEMPTING, policy, running as deciding, server
from tests.live.test_hostile_live import unwilling
from tests.live.virtual import VirtualClock, run
from tests.ports import free_port


def shadowed(api: MemoryServer, story: Callable[[], Awaitable[None]], conf: str = PREEMPTING) -> Comparison:
    async def play() -> Comparison:
        async with deciding(Shadow(api, policy(conf), Options(), VirtualClock())) as shadow:
            await shadow.synced.wait()
            await story()
            await asyncio.sleep(3)
        return shadow.comparison

    told: Comparison = run(play(), limit_s=1e6)
    assert api.writes == []
    return told


def place(api: MemoryServer, pod: str, node: str) -> None:
    """As another scheduler would."""
    known = api.found(PODS, pod)
    api.put(PODS, pod, metadata=known["metadata"], spec={**known["spec"], "nodeName": node}, status={"phase": "Running"})


def test_what_is_placed_later_or_elsewhere_is_told_with_what_that_costs() -> None:
    api = server("a", "b")

    async def story() -> None:
        api.gang("train", pods=2, cpu=2)
        await asyncio.sleep(600)
        place(api, "train-0", "b")
        place(api, "train-1", "a")

    told = shadowed(api, story)
    assert (told.placed, told.same_node, told.other_node, told.sooner) == (2, 0, 2, 2)
    assert 1190 < told.sooner_s < 1210
    assert page(told) in (Path(__file__).parents[2] / "docs/recordings.md").read_text()


def test_each_hour_is_told_in_a_line_and_measured(caplog: pytest.LogCaptureFixture) -> None:
    api = server("a", "b")

    async def story() -> None:
        api.gang("train", pods=2, cpu=2)
        await asyncio.sleep(600)
        place(api, "train-0", "b")
        place(api, "train-1", "b")
        await asyncio.sleep(2 * HOUR_S)

    caplog.set_level(logging.INFO)
    shadowed(api, story)
    told = [record.getMessage() for record in caplog.records if record.name.endswith("shadow")]
    otherwise = "Pumice would have decided otherwise about 2 (100%): 1 on another node, 0 left waiting, 2 placed sooner"
    assert told == [
        f"in 60m the other scheduler placed 2 pods that were seen waiting; {otherwise}; mean wait 10m, with Pumice 0s",
        "in 60m the other scheduler placed 0 pods that were seen waiting; Pumice would place 0 of those that wait",
    ]


def test_verdicts_are_counted_by_where_and_waits_by_scheduler() -> None:
    told = Comparison(0.0, 1.0)
    for ours, theirs in (("a", "a"), ("a", "b"), ("", "b")):
        told.close(PodVerdict("ns/p", 0.0, 100.0, theirs, 160.0, ours, 110.0 if ours else 0.0))
    measured = ShadowMetrics()
    page = [measured.page(told), measured.page(told)][1].splitlines()
    assert {f'pumice_shadow_placed_total{{where="{where}"}} 1' for where in ("same node", "other node", "nowhere")} <= set(page)
    waits = {f'pumice_shadow_wait_seconds_total{{scheduler="{name}"}} {seconds}' for name, seconds in (("other", 180), ("pumice", 80))}
    assert {*waits, "pumice_shadow_placed_sooner_total 2", "pumice_shadow_would_place 0"} <= set(page)


def test_after_a_long_fault_of_ours_it_goes_on_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    api, tries = server("a"), list[float]()

    def instead(cluster: Cluster, policy: Policy, now: float, world: World) -> Decisions:
        if not tries or now < tries[0] + HOUR_S:
            tries.append(now)
            raise LookupError("a fault of ours")
        return rehearse(cluster, policy, now, world)

    async def story() -> None:
        api.gang("train", pods=1)
        await asyncio.sleep(HOUR_S + 70)
        assert len(tries) < 80
        place(api, "train-0", "a")

    monkeypatch.setattr(shadow_module, "rehearse", instead)
    assert shadowed(api, story).same_node == 1


def test_an_object_that_cannot_be_taken_in_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    api, tries = server("a"), list[Any]()

    async def play() -> Comparison:
        shadow = Shadow(api, policy(), Options(), VirtualClock())
        monkeypatch.setattr(shadow.cluster, "put", unwilling(shadow.cluster, "odd-0", tries, shadow.clock))
        async with deciding(shadow):
            await shadow.synced.wait()
            api.gang("odd", pods=1)
            await asyncio.sleep(5)
            tries.append(None)
            await asyncio.sleep(60)
        return shadow.comparison

    told: Comparison = run(play())
    assert [verdict.pod for verdict in told.would_place] == ["default/odd-0"]


def test_it_tells_other_machines_nothing() -> None:
    async def ask() -> int:
        shadow = Shadow(server("a"), policy(), Options(), VirtualClock())
        return shadow.served(Request("GET", "/debug/shadow", {})).status

    assert run(ask()) == 403


def test_who_is_placed_at_once_on_the_same_node_is_no_difference() -> None:
    api = server("a")

    async def story() -> None:
        api.gang("train", pods=1)
        await asyncio.sleep(1)
        place(api, "train-0", "a")

    told = shadowed(api, story)
    assert (told.placed, told.same_node, told.sooner, list(told.verdicts)) == (1, 1, 0, [])


def test_who_would_be_left_waiting_is_told_with_the_reason() -> None:
    api = server("a")

    async def story() -> None:
        api.gang("large", pods=2, cpu=2)
        await asyncio.sleep(5)
        place(api, "large-0", "a")

    told = shadowed(api, story)
    assert told.left_waiting == 1 and "minAvailable" in told.verdicts[0].why


def test_victims_stay_and_are_named() -> None:
    api = server("a")
    api.put(PRIORITY_CLASSES, "high", value=10)
    api.gang("low", pods=2)
    for number in range(2):
        place(api, f"low-{number}", "a")

    async def story() -> None:
        api.gang("high", pods=1, priorityClassName="high")
        await asyncio.sleep(5)

    told = shadowed(api, story)
    assert len(told.would_evict) == 1 and api.deleted == []


POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "x"}], "schedulerName": "another"}}


def served(port: int, path: str = "/debug/shadow") -> str:
    """What is told of so far; nothing before it serves."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_beside_an_embedded_cluster_the_command_sends_no_write(tmp_path: Path) -> None:
    """The cluster's clock stands still, so that nobody else writes: the version of the last write stays."""
    (tmp_path / "conf").write_text(f"{KUBE}profiles: [{{schedulerName: another}}]\n")
    kubeconfig, port, healthz = tmp_path / "kubeconfig", free_port(), free_port()
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--scheduler-conf={tmp_path / 'conf'}",
        "--enable-metrics",
        f"--listen-address=127.0.0.1:{port}",
        "--enable-healthz",
        f"--healthz-address=127.0.0.1:{healthz}",
    ]
    told: list[dict[str, Any]] = []

    async def seen() -> bool:
        told.append(json.loads(await asyncio.to_thread(served, port) or "{}"))
        return bool(told[-1].get("would_place"))

    async def story() -> bytes:
        wanted = UpRequest(policy_of_up(), read_stages(), list(nodes_of(pools_of("2x4cpu"))), speed=0.0)
        async with running(wanted) as embedded:
            embedded.server.kubeconfig(kubeconfig, "test")
            embedded.plane.store.create("pods", POD, "default")
            await asyncio.sleep(1)
            version = embedded.plane.store.storage.version
            command = [sys.executable, "-m", "pumice", "scheduler", "--shadow", *flags]
            process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            try:
                async with asyncio.timeout(60):
                    while not await seen():
                        await asyncio.sleep(0.2)
                await asyncio.sleep(1)
                assert embedded.plane.store.storage.version == version > 0
                measured = await asyncio.to_thread(served, port, "/metrics")
                assert "pumice_shadow_would_place 1\n" in measured and "volcano_e2e_scheduling_latency_milliseconds_count" in measured
                assert '"Pod"' in await asyncio.to_thread(served, port, "/debug/state")
                assert await asyncio.to_thread(served, healthz, "/readyz") == "ok"
            finally:
                process.terminate()
            return (await process.communicate())[0]

    printed = asyncio.run(story()).decode()
    assert [verdict["pod"] for verdict in told[-1]["would_place"]] == ["default/web"]
    assert "Of those who wait still it would place 1, and evict 0 pods for others." in printed
