"""The controllers over HTTP, and a proxy before the server that spoils every kind of call and watch: jobs live as they would without."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pumice.client.access import Access, Fixed
from pumice.client.client import Client
from pumice.client.rate_limit import ClientLimits
from tests.live.fault_proxy import ODD_SCRIPT, SCRIPT, FaultProxy, Step
from tests.live_controllers.scene import GROUPS, JOBS, Scene, play, until, working

TROUBLE_S = 8.0
PLUGINS = {"env": [], "svc": [], "ssh": []}


async def lives(stage: Scene, name: str, pods: list[str]) -> None:
    """From its creation to its end; the test is its scheduler and kubelet."""
    await until(lambda: stage.enqueue(name))
    await until(lambda: stage.pods(name) == pods)
    stage.pods_become("Running", name)
    await until(lambda: stage.phase(name) == "Running")
    stage.pods_become("Succeeded", name)
    await until(lambda: stage.phase(name) == "Completed")


async def is_suspended_and_resumed(stage: Scene, name: str) -> None:
    await until(lambda: stage.enqueue(name))
    await until(lambda: stage.pods(name))
    stage.order("Job", "batch.volcano.sh/v1alpha1", name, "AbortJob")

    def aborted() -> bool:
        stage.let_go()
        return stage.phase(name) == "Aborted" and not stage.pods(name)

    await until(aborted)
    stage.order("Job", "batch.volcano.sh/v1alpha1", name, "ResumeJob")
    await until(lambda: stage.phase(name) == "Pending")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(12))
def test_jobs_live_as_they_would_without_faults(seed: int) -> None:
    async def story(stage: Scene) -> None:
        async with FaultProxy(stage.server.url, seed, 0.3) as proxy:
            access = Access(proxy.url, Fixed(f"Bearer {stage.server.token}"))
            async with Client(access, limits=ClientLimits(timeout_s=2.0)) as client, working(client):
                stage.job("whole", 3, plugins=PLUGINS)
                stage.job("short", 1)
                stage.job("halted", 2)
                asyncio.get_running_loop().call_later(TROUBLE_S, setattr, proxy, "rate", 0.0)
                pods = [f"whole-w-{number}" for number in range(3)]
                await asyncio.gather(
                    lives(stage, "whole", pods), lives(stage, "short", ["short-w-0"]), is_suspended_and_resumed(stage, "halted")
                )
                assert sum(proxy.done.values()) > 10
                groups = [group["metadata"]["name"].rsplit("-", 5)[0] for group in stage.all(GROUPS)]
                assert len(groups) == len(set(groups)) and len(stage.all(JOBS)) == 3
                assert not stage.all("commands.bus.volcano.sh")

    play(story, limit_s=120.0)


@pytest.mark.parametrize("script", [SCRIPT, ODD_SCRIPT], ids=["versions and sizes", "odd answers"])
def test_a_server_that_lies_costs_no_job(script: Sequence[Step]) -> None:
    async def story(stage: Scene) -> None:
        async with FaultProxy(stage.server.url, 1, 0.0, script) as proxy:
            access = Access(proxy.url, Fixed(f"Bearer {stage.server.token}"))
            async with Client(access, limits=ClientLimits(timeout_s=2.0)) as client, working(client):
                stage.job("whole", 3, plugins=PLUGINS)
                await lives(stage, "whole", [f"whole-w-{number}" for number in range(3)])
                assert len(stage.all(GROUPS)) <= 1 and sum(proxy.done.values()) > len(script)

    play(story, limit_s=120.0)
