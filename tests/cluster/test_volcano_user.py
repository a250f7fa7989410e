"""All three programs in Volcano's place, installed as the guide says, and what users of Volcano do with them, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import user_jobs
import user_rest
from installed import PARTS, apply_everything, running
from jobs import Jobs
from realcluster import RealCluster
from stage import ACCOUNTS, absent

from pumice.kube.client import Client
from pumice.kube.errors import ApiError
from pumice.kube.resource import JOBS, NAMESPACES, NODES, PODS, ObjectRef
from pumice.kube.transport import PatchType

pytestmark = pytest.mark.cluster
Story = Callable[[Jobs], Awaitable[None]]
NODE_NAMES = ("volcano-a", "volcano-b")
STORIES: tuple[Story, ...] = (*user_jobs.STORIES, *user_rest.STORIES)
LIMIT_S = 60.0


@asynccontextmanager
async def nodes(client: Client) -> AsyncIterator[None]:
    for name in NODE_NAMES:
        await client.create(NODES, {"metadata": {"name": name, "labels": {"story": "volcano"}}})
        amounts = {"cpu": "64", "memory": "100Gi", "pods": "500"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch(NODES, ObjectRef(name), {"status": status}, PatchType.MERGE, subresource="status")
        await client.patch(NODES, ObjectRef(name), {"spec": {"taints": None}}, PatchType.MERGE)
    try:
        yield
    finally:
        for name in NODE_NAMES:
            await client.delete(NODES, ObjectRef(name))


async def tell(client: Client, story: Story) -> None:
    """One story in a namespace that is called after it."""
    namespace = story.__name__.replace("_", "-")
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    await absent(client.create(ACCOUNTS, {"metadata": {"name": "default"}}, namespace))
    jobs = Jobs(client, namespace)
    kubelets = asyncio.create_task(jobs.kubelets())
    try:
        async with asyncio.timeout(LIMIT_S):
            await story(jobs)
    except TimeoutError:
        found = {name: job.get("status") for name, job in (await jobs.listed(JOBS)).items()}
        raise AssertionError(f"{namespace} came to no end: {found}") from None
    finally:
        kubelets.cancel()
        for name in await jobs.pods():
            with suppress(ApiError):
                await client.delete(PODS, ObjectRef(name, namespace), grace_s=0)


def test_users_of_volcano_find_what_they_know(cluster: RealCluster, tmp_path: Path) -> None:
    told = apply_everything(cluster)
    assert "deployment.apps/volcano-scheduler created" in told, told

    async def all_stories() -> None:
        async with Client(cluster.access()) as client, nodes(client), running(cluster, client, tmp_path) as volcano:
            outcomes = await asyncio.gather(*(tell(client, story) for story in STORIES), return_exceptions=True)
            for part in PARTS:
                print(f"---- {part}\n{volcano.log(part)}")
            if wrong := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
                raise ExceptionGroup("stories", wrong)
            for part in PARTS:
                assert "403 Forbidden" not in volcano.log(part) and "level=error" not in volcano.log(part), volcano.log(part)

    asyncio.run(all_stories())
