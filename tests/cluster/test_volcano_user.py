"""All three programs in Volcano's place, installed as the guide says, and what users of Volcano do with them, many at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
import user_jobs
import user_rest
from installed import PARTS, Right, Volcano, apply_everything, pumice, rights_granted, rights_used, running
from jobs import Jobs, task
from kubelets import kubelets
from realcluster import RealCluster
from stage import absent, until_true

from pumice.api.gang_dialects import DIALECTS
from pumice.api.kinds import CRON_JOBS, JOB_FLOWS, JOBS, NAMESPACES, NODES, POD_GROUPS, PODS, SERVICE_ACCOUNTS, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, PatchType, as_dict

pytestmark = pytest.mark.cluster
Story = Callable[[Jobs], Awaitable[None]]
NODE_NAMES = ("volcano-a", "volcano-b")
VOLUMES, CLAIMS = ("", "persistentvolumes", "update"), ("", "persistentvolumeclaims", "update")
DEVICES = [("resource.k8s.io", each, "update") for each in ("resourceclaims", "resourceclaims/status", "resourceclaims/binding")]
STORAGE = [("storage.k8s.io", each, "watch") for each in ("volumeattachments",)]
SHARDS = [
    ("shard.volcano.sh", "nodeshards", "list"),
    ("shard.volcano.sh", "nodeshards", "watch"),
    ("shard.volcano.sh", "nodeshards/status", "update"),
]
EVICTIONS, FIRST_QUEUES = (
    ("", "pods", "delete"),
    ("scheduling.volcano.sh", "queues", "create"),
)
HOOKS = [("admissionregistration.k8s.io", f"{each}webhookconfigurations", "update") for each in ("mutating", "validating")]
GATES = ("", "pods", "patch")
EXTENDED = [("resource.k8s.io", "devicetaintrules", "watch"), ("resource.k8s.io", "resourceclaims", "create")]
GANGS = [(dialect.kind.group, dialect.kind.plural, verb) for dialect in DIALECTS for verb in ("get", "list", "watch")]
GANGS += [("scheduling.k8s.io", "compositepodgroups", "watch"), ("scheduling.k8s.io", "podgroups/status", "patch")]
RARE: dict[str, list[Right]] = {
    "webhooks": [("", "secrets", "update"), *HOOKS],  # certificates are renewed, configurations that others made are given the authority
    "controllers": [
        *[("shard.volcano.sh", "nodeshards", verb) for verb in ("get", "list", "watch", "create", "patch", "delete")],
        *GANGS,  # of other projects
    ],
    "scheduler": [
        FIRST_QUEUES,
        EVICTIONS,
        GATES,
        VOLUMES,
        CLAIMS,
        *DEVICES,
        *EXTENDED,
        *STORAGE,
        *SHARDS,
    ],  # what other clusters and pods ask for
}  #: rights that no story here needs

STORIES: tuple[Story, ...] = (*user_jobs.STORIES, *user_rest.STORIES)
LIMIT_S = 400.0
LINES = 20  #: the most lines in a log at its usual level, however many jobs come and go


@asynccontextmanager
async def nodes(client: Client, cpu: int) -> AsyncIterator[None]:
    for name in NODE_NAMES:
        await client.create(NODES, {"metadata": {"name": name, "labels": {"story": "volcano"}}})
        amounts = {"cpu": str(cpu), "memory": "100Gi", "pods": "500"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
        await client.patch(NODES, ObjectRef(name), {"status": status}, PatchType.MERGE, subresource="status")
        await client.patch(NODES, ObjectRef(name), {"spec": {"taints": None}}, PatchType.MERGE)
    try:
        yield
    finally:
        for name in NODE_NAMES:
            await client.delete(NODES, ObjectRef(name))


@asynccontextmanager
async def volcano_at_work(cluster: RealCluster, folder: Path, cpu: int, *flags: str) -> AsyncIterator[tuple[Client, Volcano]]:
    """Everything installed and running on two nodes of so many CPUs."""
    told = apply_everything(cluster)
    assert "deployment.apps/volcano-scheduler " in told, told
    async with Client(cluster.access()) as client, nodes(client, cpu):
        try:
            async with running(cluster, client, folder, *flags) as volcano:
                at_work = asyncio.create_task(kubelets(client))
                yield client, volcano
                assert not at_work.done(), at_work
                at_work.cancel()
        finally:
            await leave_nothing(client)


async def leave_nothing(client: Client) -> None:
    """Jobs that the next scheduler would count, and who makes them; nobody makes them again now."""
    for resource in (CRON_JOBS, JOB_FLOWS, JOBS, POD_GROUPS, PODS):
        async for page in client.pages(ListScope(resource)):
            for raw in page.items:
                meta = as_dict(raw)["metadata"]
                with suppress(ApiError):
                    await client.delete(resource, ObjectRef(meta["name"], meta["namespace"]), grace_s=0)


async def tell(cluster: RealCluster, client: Client, story: Story) -> None:
    """One story in a namespace that is called after it."""
    namespace = story.__name__.replace("_", "-")
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    await absent(client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace))
    jobs = Jobs(client, namespace, partial(pumice, cluster))
    try:
        async with asyncio.timeout(LIMIT_S):
            await story(jobs)
    except TimeoutError:
        found = {name: job.get("status") for name, job in (await jobs.listed(JOBS)).items()}
        raise AssertionError(f"{namespace} came to no end: {found}") from None
    finally:
        for name in await jobs.pods():
            with suppress(ApiError):
                await client.delete(PODS, ObjectRef(name, namespace), grace_s=0)


def test_users_of_volcano_find_what_they_know(cluster: RealCluster, tmp_path: Path) -> None:
    async def all_stories() -> None:
        async with volcano_at_work(cluster, tmp_path, 64, "--schedule-period=200ms") as (client, volcano):
            outcomes = await asyncio.gather(*(tell(cluster, client, story) for story in STORIES), return_exceptions=True)
            for part in PARTS:
                print(f"---- {part}\n{volcano.log(part)}")
            if wrong := [outcome for outcome in outcomes if isinstance(outcome, Exception)]:
                raise ExceptionGroup("stories", wrong)
            for part in PARTS:
                for bad in ("403 Forbidden", "may not be patched", "level=error", "level=warning", "Traceback"):
                    assert bad not in volcano.log(part), volcano.log(part)
                assert len(volcano.log(part).splitlines()) < LINES, "the start is told, and what somebody has to mend; not each job"

    asyncio.run(all_stories())
    used = rights_used(cluster)
    for part in PARTS:
        spared = {(group, resource, verb) for group, resource, verb in rights_granted(part) if _is_fallback(resource, verb)}
        assert rights_granted(part) - used[part] - spared <= set(RARE[part]), part


async def jobs_that_come_together_all_run(jobs: Jobs) -> None:
    """Each could fill the cluster alone."""
    names = [f"j{number}" for number in range(3)]
    for name in names:
        await jobs.create(name, [task(replicas=8, minAvailable=2, cpu="1")], minAvailable=2)
    for name in names:
        await jobs.until_phase(name, "Running")

    async def full() -> bool:
        return len([pod for pod in (await jobs.pods()).values() if pod["status"]["phase"] == "Running"]) == 8

    await until_true(full)


def test_several_jobs_on_a_small_cluster_all_come_to_run(cluster: RealCluster, tmp_path: Path) -> None:
    async def story() -> None:
        async with volcano_at_work(cluster, tmp_path, 4, "--schedule-period=5s") as (client, volcano):
            try:
                await tell(cluster, client, jobs_that_come_together_all_run)
            finally:
                print(volcano.log("scheduler"))

    asyncio.run(story())


def _is_fallback(resource: str, verb: str) -> bool:
    """Reads where something exists already, and what some servers ask of those who name owners."""
    return verb == "get" or resource.endswith("/finalizers")
