"""Beside another scheduler: it writes nothing, and tells where it would have decided otherwise."""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pumice.api.kinds import PODS, PRIORITY_CLASSES
from pumice.cli.embedded import running
from pumice.cli.up_options import UpRequest
from pumice.cli.up_options import policy_of as policy_of_up
from pumice.cluster.nodes.node_agent import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.http.messages import Request
from pumice.live.scheduler.options import Options
from pumice.live.scheduler.shadow import Comparison, Shadow, ShadowMetrics, page
from tests.live.memory import MemoryServer
from tests.live.situations import KUBE
from tests.live.stories import PREEMPTING, policy, server
from tests.live.stories import running as deciding
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
    measured = ShadowMetrics().page(told)
    assert 'pumice_shadow_placed_total{where="other node"} 2\n' in measured and "pumice_shadow_placed_sooner_total 2\n" in measured
    assert f"pumice_shadow_spared_seconds_total {told.sooner_s!r}\n" in measured or f"seconds_total {told.sooner_s:.0f}\n" in measured
    assert page(told) in (Path(__file__).parents[2] / "docs/recordings.md").read_text()


def test_it_tells_other_machines_nothing() -> None:
    async def ask() -> int:
        shadow = Shadow(server("a"), policy(), Options(), VirtualClock())
        return shadow.told(Request("GET", "/debug/shadow", {})).status

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


def answered(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return bytes(answer.read())


def served(port: int) -> dict[str, Any]:
    """What is told of so far; nothing before it serves."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/debug/shadow", timeout=5) as answer:
            return dict(json.load(answer))
    except OSError:
        return {}


def test_beside_an_embedded_cluster_the_command_sends_no_write(tmp_path: Path) -> None:
    """The cluster's clock stands still, so that nobody else writes: the version of the last write stays."""
    (tmp_path / "conf").write_text(f"{KUBE}profiles: [{{schedulerName: another}}]\n")
    kubeconfig, port, probed = tmp_path / "kubeconfig", free_port(), free_port()
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--scheduler-conf={tmp_path / 'conf'}",
        "--enable-metrics",
        f"--listen-address=127.0.0.1:{port}",
        "--enable-healthz",
        f"--healthz-address=127.0.0.1:{probed}",
    ]
    told: list[dict[str, Any]] = []

    async def seen() -> bool:
        told.append(await asyncio.to_thread(served, port))
        return bool(told[-1].get("would_place"))

    async def story() -> bytes:
        wanted = UpRequest(policy_of_up(), read_stages(), list(nodes_of(pools_of("2x4cpu"))), speed=0.0)
        async with running(wanted) as embedded:
            embedded.server.kubeconfig(kubeconfig, "test")
            embedded.plane.store.create("pods", POD, "default")
            await asyncio.sleep(1)
            version = embedded.plane.store.ledger.version
            command = [sys.executable, "-m", "pumice", "scheduler", "--shadow", *flags]
            process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
            try:
                async with asyncio.timeout(60):
                    while not await seen():
                        await asyncio.sleep(0.2)
                await asyncio.sleep(1)
                assert embedded.plane.store.ledger.version == version > 0
                for path in ("healthz", "readyz"):
                    assert await asyncio.to_thread(answered, f"http://127.0.0.1:{probed}/{path}") == b"ok"
                measured = await asyncio.to_thread(answered, f"http://127.0.0.1:{port}/metrics")
                assert b"\npumice_shadow_would_place 1\n" in measured
            finally:
                process.terminate()
            return (await process.communicate())[0]

    printed = asyncio.run(story()).decode()
    assert [verdict["pod"] for verdict in told[-1]["would_place"]] == ["default/web"]
    assert "Of those who wait still it would place 1, and evict 0 pods for others." in printed
