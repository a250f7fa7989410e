"""What a tenant with rights in one namespace may do to the scheduler of all: nothing that keeps the pods of another from their places."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from realcluster import USERS, RealCluster
from replicas import Process, replica, stage_for
from stage import Stage, absent, until_true
from test_scheduler_devices import devices

from pumice.api.kinds import NAMESPACES, PODS, RESOURCE_CLAIMS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS
from pumice.client.client import Client

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

MOST_MIB = 250  #: of memory, at any time; a scheduler of few nodes needs a quarter
MAY = [
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]},
    {"apiGroups": ["scheduling.volcano.sh"], "resources": ["podgroups"], "verbs": ["*"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims"], "verbs": ["*"]},
]
TEXT = "a" * 2000
#: who works them out to the letter is busy for years or needs gigabytes; the API server accepts them, unlike any that joins
SELECTORS = {
    "repeated": f'"{TEXT}!".matches("^(a+)+$")',
    "alternatives": f'"{TEXT}!".matches("^(a|aa)+$")',
    "counted": f'"{TEXT}!".matches("^(a{{0,30}}){{0,30}}b$")',
    "replaced": f'"{TEXT}"' + f'.replace("a", "{TEXT}")' * 2 + ".size() == 1",
    "bound": f'cel.bind(x, "{TEXT}", cel.bind(y, x.replace("a", x), cel.bind(z, y.replace("a", x), z.size() == 1)))',
}
AMOUNTS = ("1e400", "9223372036854775807", "50P")


@asynccontextmanager
async def tenant_of(cluster: RealCluster, client: Client, nodes: str) -> AsyncIterator[Stage]:
    """Who may do everything with pods, groups and claims, in a namespace of its own."""
    namespace = f"{nodes}-tenant"
    head = {"apiGroup": ROLES.group}
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    await absent(client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, namespace))
    await client.create(ROLES, {"metadata": {"name": "all"}, "rules": MAY}, namespace)
    binding = {"subjects": [{**head, "kind": "User", "name": USERS["tenant"][0]}], "roleRef": {**head, "kind": "Role", "name": "all"}}
    await client.create(ROLE_BINDINGS, {"metadata": {"name": "all"}, **binding}, namespace)
    async with Client(cluster.access("tenant")) as own:
        yield Stage(own, namespace)


async def until_waiting(stage: Stage, gang: str, count: int) -> None:
    """Until so many of its pods are told why they wait."""

    def told(pod: dict[str, Any]) -> bool:
        return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in pod["status"].get("conditions") or ())

    async def waiting() -> bool:
        return sum(told(pod) for name, pod in (await stage.pods()).items() if name.startswith(gang)) == count

    await until_true(waiting)


async def claims_that_never_end(tenant: Stage, nodes: str) -> None:
    on = {"nodeSelector": {"story": nodes}}
    for name, expression in SELECTORS.items():
        exactly = {"deviceClassName": f"{nodes}-gpu", "allocationMode": "ExactCount", "count": 1}
        exactly["selectors"] = [{"cel": {"expression": expression}}]
        spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
        await tenant.client.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": spec}, tenant.namespace)
        await tenant.gang(name, pods=1, cpu=1, resourceClaims=[{"name": "g", "resourceClaimName": name}], **on)
    await until_waiting(tenant, "", len(SELECTORS))


async def amounts_that_nobody_has(tenant: Stage, nodes: str) -> None:
    on = {"nodeSelector": {"story": nodes}}
    for number, amount in enumerate(AMOUNTS):
        await tenant.gang(f"large{number}", pods=1, cpu=0, containers=asking(amount), **on)
    digits = {"cpu": "1" + "0" * 400, "memory": "1e400", "example.com/gpu": "9" * 400}
    await tenant.gang("large-group", pods=1, cpu=1, asks={"minResources": digits, "minTaskMember": {"w": 2**31 - 1}}, **on)
    await until_waiting(tenant, "large", len(AMOUNTS) + 1)


async def amounts_on_nodes_that_come_and_go(tenant: Stage, nodes: str) -> None:
    for amount in AMOUNTS:
        pods = [await tenant.pod(f"here-{node}", 0, group="", containers=asking(amount), nodeName=f"{nodes}-{node}") for node in "ab"]
        for pod in pods:
            await tenant.client.delete(PODS, pod, grace_s=0)


def asking(amount: str) -> list[dict[str, Any]]:
    return [{"name": "c", "image": "x", "resources": {"requests": {"cpu": amount, "memory": amount}}}]


ATTACKS: tuple[Callable[[Stage, str], Awaitable[None]], ...] = (
    claims_that_never_end,
    amounts_that_nobody_has,
    amounts_on_nodes_that_come_and_go,
)


def most_memory_mib(process: Process) -> int:
    """The most it ever held."""
    for line in Path(f"/proc/{process.process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) // 1024
    raise AssertionError("the process has ended")


def test_whatever_a_tenant_writes_the_pods_of_another_have_their_places(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        async with stage_for(client, namespace) as stage, tenant_of(cluster, client, namespace) as tenant:
            nodes = [await stage.node(name, cpu=4) for name in "ab"]
            await devices(stage, nodes[0], "gpu-0", "gpu-1")
            async with replica(cluster, stage, tmp_path, "--leader-elect=false") as process:
                for number, attack in enumerate(ATTACKS):
                    await attack(tenant, namespace)
                    await stage.gang(f"work{number}", pods=2, cpu=1)
                    await stage.until_placed(f"work{number}", 2)
                await stage.gang("more", pods=4, cpu=1, minimum=1)
                await until_waiting(stage, "more", 2)
                assert len(await stage.placed("more")) == 2, "two nodes of four CPUs hold eight pods"
                assert most_memory_mib(process) < MOST_MIB
                log = process.log.read_text()
                assert "Traceback" not in log and "level=error" not in log, log

    play(story)
