"""`pumice controllers` killed at any moment, and the API server under them: every job comes to the end that it would have come to anyway.

Scheduler and kubelets are played by a task that lets groups in and starts pods; who kills is chance, with a seed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from installed import PROGRAM, apply_without_webhooks, deployed, pumice
from jobs import Jobs, task
from realcluster import RealCluster
from replicas import Process
from stage import absent, until_true

from pumice.api.json_objects import terminating, uid_of
from pumice.api.kinds import CONFIG_MAPS, NAMESPACES, POD_GROUPS, PODS, QUEUES, SECRETS, SERVICE_ACCOUNTS, SERVICES, ObjectRef
from pumice.client.client import Client
from pumice.client.failures import KubeError

pytestmark = pytest.mark.cluster
JOBS, PODS_EACH = 6, 4
HEAD = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}
LIMIT_S = 400.0


@asynccontextmanager
async def controllers(cluster: RealCluster, folder: Path) -> AsyncIterator[Process]:
    """One process, with the arguments and the rights that are installed; killed at the end of the block; the next need not wait."""
    log = folder / f"controllers-{len(list(folder.glob('*.log')))}.log"
    away = ("--leader-elect=false", "--enable-healthz=false", "--enable-metrics=false", f"--kubeconfig={cluster.kubeconfig('controllers')}")
    with log.open("wb") as out:
        command = [PROGRAM, *deployed("controllers", folder), *away]
        process = Process(await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out), log)
    try:
        yield process
        assert process.process.returncode is None, log.read_text()
    finally:
        if process.process.returncode is None:
            await process.kill()


async def others_at_work(jobs: Jobs) -> None:
    """Scheduler and kubelets, for good: what is pending goes on, whatever the API server does meanwhile."""
    while True:
        with suppress(KubeError):
            for name, group in (await jobs.listed(POD_GROUPS)).items():
                if (group.get("status") or {}).get("phase") in (None, "", "Pending"):
                    await jobs.let_in(name)
            for name, pod in (await jobs.listed(PODS)).items():
                if terminating(pod):  # a deletion is done in two steps, and who asked for it may have been killed between them
                    await jobs.client.delete(PODS, ObjectRef(name, jobs.namespace, uid_of(pod)), grace_s=0)
                elif pod["status"].get("phase") == "Pending":
                    await jobs.becomes(name, "Running", uid=uid_of(pod))
        await asyncio.sleep(0.05)


async def all_run(jobs: Jobs, restarts: set[int], before: frozenset[str] = frozenset()) -> bool:
    """Every job runs with all its pods, none of which was there before, and has counted so many restarts."""
    with suppress(KubeError):
        pods = await jobs.pods()
        found = [await jobs.status(f"j{number}") for number in range(JOBS)]
        states = {(each.get("state", {}).get("phase"), each.get("running"), each.get("failed", 0)) for each in found}
        counted = {each.get("retryCount", 0) for each in found}
        fresh = {*map(uid_of, pods.values())} - before
        return states == {("Running", PODS_EACH, 0)} and counted <= restarts and len(fresh) == JOBS * PODS_EACH
    return False


async def killed_again_and_again(cluster: RealCluster, folder: Path, chance: random.Random, done: Callable[[], Awaitable[bool]]) -> None:
    """Controllers that live for a moment, three times, and then for as long as it takes."""
    for _ in range(3):
        async with controllers(cluster, folder):
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.uniform(1.0, 6.0)):
                    await until_true(done)
    async with controllers(cluster, folder):
        await until_true(done)


async def tell(cluster: RealCluster, client: Client, folder: Path, chance: random.Random) -> None:
    namespace = f"faults-{chance.randrange(10**6)}"
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    await absent(client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace))
    await absent(client.create(QUEUES, {**HEAD, "metadata": {"name": "default"}, "spec": {"weight": 1}}))
    jobs = Jobs(client, namespace, partial(pumice, cluster))
    others = asyncio.create_task(others_at_work(jobs))
    try:
        policies = [{"event": "PodFailed", "action": "RestartJob"}]
        for number in range(JOBS):
            members = [task("a", PODS_EACH - 1), task("b")]
            await jobs.create(f"j{number}", members, policies=policies, minAvailable=PODS_EACH, plugins={"svc": [], "ssh": []})
        await killed_again_and_again(cluster, folder, chance, partial(all_run, jobs, {0}))
        keys = {name: secret["data"] for name, secret in (await jobs.listed(SECRETS)).items()}
        assert set(keys) == {f"j{number}-ssh" for number in range(JOBS)}

        before = frozenset(map(uid_of, (await jobs.pods()).values()))
        for number in range(JOBS):  # nobody looks while they fail
            await jobs.becomes(f"j{number}-a-{chance.randrange(PODS_EACH - 1)}", "Failed", exit_code=1)
        restarted = partial(all_run, jobs, {0, 1}, before)  # a kill between the end of the pods and the write of the status loses the count
        await killed_again_and_again(cluster, folder, chance, restarted)

        async with controllers(cluster, folder):
            await until_true(restarted)
            cluster.kill_apiserver()
            await asyncio.to_thread(cluster.start_apiserver)
            for name in await jobs.pods():
                await jobs.becomes(name, "Succeeded")
            for number in range(JOBS):
                await jobs.until_phase(f"j{number}", "Completed")
            await until_true(partial(cleaned, jobs))
    finally:
        others.cancel()


async def cleaned(jobs: Jobs) -> bool:
    """Nothing is left of the jobs but themselves and their pods."""
    left = [*await jobs.listed(POD_GROUPS), *await jobs.listed(SECRETS), *await jobs.listed(SERVICES), *await jobs.listed(CONFIG_MAPS)]
    return not [name for name in left if name.startswith("j")]


def test_jobs_come_to_the_same_end_however_often_controllers_are_killed(cluster: RealCluster, tmp_path: Path) -> None:
    apply_without_webhooks(cluster)

    async def whole() -> None:
        async with asyncio.timeout(LIMIT_S), Client(cluster.access()) as client:
            await tell(cluster, client, tmp_path, random.Random(7))

    asyncio.run(whole())
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert "Traceback" not in logs and "may not be patched" not in logs, logs
