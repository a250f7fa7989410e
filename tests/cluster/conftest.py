"""One real API server for all cluster tests of a process; each test works in a namespace of its own and leaves it."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from binaries import why_not
from realcluster import RealCluster
from stage import install_definitions

from pumice.api.kinds import NAMESPACES
from pumice.client.client import Client

LIMIT_S = 200.0  #: of a story that hangs; no story waits for it


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    reason = why_not()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(f"the cluster tests must run in CI, but {reason}")
    if reason:
        pytest.skip(reason)
    with RealCluster(tmp_path_factory.mktemp("cluster"), ("scheduler", "controllers", "webhooks")) as running:
        asyncio.run(_install_definitions(running))
        yield running


async def _install_definitions(cluster: RealCluster) -> None:
    async with Client(cluster.access()) as client:
        await install_definitions(client)


@pytest.fixture
def play(cluster: RealCluster) -> Callable[..., None]:
    """Run a story as admin, in a new namespace: `play(story)` awaits `story(client, namespace)`."""

    def run(story: Callable[[Client, str], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            async with asyncio.timeout(LIMIT_S), Client(cluster.access()) as client:
                namespace = f"test-{uuid.uuid4().hex[:8]}"
                await client.create(NAMESPACES, {"metadata": {"name": namespace}})
                await story(client, namespace)

        asyncio.run(whole())

    return run
