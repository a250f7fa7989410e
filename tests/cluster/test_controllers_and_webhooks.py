"""`pumice controllers` and `pumice webhooks` as processes on a real API server, with the roles of the manifests and no other rights."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from realcluster import RealCluster
from stage import absent, install_definitions, served, until_true

from pumice.kube.client import Client
from pumice.kube.errors import ApiError
from pumice.kube.resource import (
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    QUEUES,
    SECRETS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    ObjectRef,
    Resource,
)
from pumice.kube.transport import PatchType, Scope, as_dict

pytestmark = pytest.mark.cluster
Play = Callable[..., None]

MANIFESTS = Path(__file__).parents[2] / "deploy/manifests"
GROUP = "rbac.authorization.k8s.io"
KINDS = {
    "ClusterRole": Resource(GROUP, "v1", "clusterroles", "ClusterRole", namespaced=False),
    "ClusterRoleBinding": Resource(GROUP, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    "Role": Resource(GROUP, "v1", "roles", "Role"),
    "RoleBinding": Resource(GROUP, "v1", "rolebindings", "RoleBinding"),
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount"),
}
SYSTEM = "volcano-system"


async def install(client: Client, part: str) -> None:
    """Definitions, and the accounts and roles of a manifest."""
    await install_definitions(client)
    for resource in (JOBS, COMMANDS):
        await until_true(lambda resource=resource: served(client, resource))
    await absent(client.create(NAMESPACES, {"metadata": {"name": SYSTEM}}))
    for item in yaml.safe_load_all((MANIFESTS / f"{part}.yaml").read_text()):
        if item["kind"] in KINDS:
            await absent(client.create(KINDS[item["kind"]], item, item["metadata"].get("namespace", "")))


@asynccontextmanager
async def pumice(cluster: RealCluster, user: str, log: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process with a user's rights, until the block ends."""
    command = [str(Path(sys.executable).with_name("pumice")), arguments[0], f"--kubeconfig={cluster.kubeconfig(user)}", *arguments[1:]]
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(*command, stderr=out, stdout=out)
    try:
        yield process
        assert process.returncode is None, log.read_text()
    finally:
        if process.returncode is None:
            process.terminate()
            await asyncio.wait_for(process.wait(), 20)


def queue(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": spec}


class Jobs:
    """A namespace's jobs, and the scheduler and kubelet that the test plays."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace

    async def create(self, name: str, replicas: int, **spec: Any) -> None:
        pod = {"restartPolicy": "Never", "automountServiceAccountToken": False, "containers": [{"name": "c", "image": "x"}]}
        tasks = [{"name": "w", "replicas": replicas, "template": {"spec": pod}}]
        body = {"schedulerName": "volcano", "queue": "default", "minAvailable": replicas, "tasks": tasks, **spec}
        job = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": {"name": name}, "spec": body}
        await self.client.create(JOBS, job, self.namespace)

    async def listed(self, resource: Resource) -> list[dict[str, Any]]:
        return [as_dict(raw) async for page in self.client.pages(Scope(resource, self.namespace)) for raw in page.items]

    async def enqueue(self) -> bool:
        groups = await self.listed(POD_GROUPS)
        for group in groups:
            ref = ObjectRef(group["metadata"]["name"], self.namespace)
            await self.client.patch(POD_GROUPS, ref, {"status": {"phase": "Inqueue"}}, PatchType.MERGE)
        return bool(groups)

    async def pods(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in await self.listed(PODS) if not pod["metadata"].get("deletionTimestamp"))

    async def pods_become(self, phase: str) -> None:
        for name in await self.pods():
            ref = ObjectRef(name, self.namespace)
            await self.client.patch(PODS, ref, {"status": {"phase": phase}}, PatchType.MERGE, subresource="status")

    async def until_phase(self, name: str, phase: str) -> None:
        async def there() -> bool:
            status = as_dict(await self.client.get(JOBS, ObjectRef(name, self.namespace))).get("status") or {}
            return bool((status.get("state") or {}).get("phase") == phase)

        await until_true(there)

    async def until_pods(self, count: int) -> None:
        async def there() -> bool:
            return len(await self.pods()) == count

        await until_true(there)

    async def order(self, name: str, action: str) -> None:
        uid = as_dict(await self.client.get(JOBS, ObjectRef(name, self.namespace)))["metadata"]["uid"]
        target = {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "name": name, "uid": uid}
        body = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": {"generateName": "order-"}}
        await self.client.create(COMMANDS, {**body, "target": target, "action": action}, self.namespace)


def test_a_job_lives_under_the_controllers_with_the_role_of_the_manifest(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        await install(client, "controllers")
        await absent(client.create(KINDS["ServiceAccount"], {"metadata": {"name": "default"}}, namespace))
        await absent(client.create(QUEUES, queue("default", weight=1)))
        jobs, log = Jobs(client, namespace), tmp_path / "controllers.log"
        async with pumice(cluster, "controllers", log, "controllers", f"--leader-elect-resource-namespace={SYSTEM}"):
            await jobs.create("life", 3, plugins={"svc": [], "ssh": [], "env": []})
            await until_true(jobs.enqueue)
            await jobs.until_pods(3)
            assert [item["metadata"]["name"] for item in await jobs.listed(SECRETS)] == ["life-ssh"]
            assert "life" in [item["metadata"]["name"] for item in await jobs.listed(SERVICES)]
            assert "life-svc" in [item["metadata"]["name"] for item in await jobs.listed(CONFIG_MAPS)]
            await jobs.pods_become("Running")
            await jobs.until_phase("life", "Running")
            await jobs.order("life", "AbortJob")
            await jobs.until_pods(0)
            await jobs.until_phase("life", "Aborted")
            await jobs.order("life", "ResumeJob")
            await until_true(jobs.enqueue)
            await jobs.until_pods(3)
            await jobs.pods_become("Succeeded")
            await jobs.until_phase("life", "Completed")
            opened = as_dict(await client.get(QUEUES, ObjectRef("default")))
            assert opened["status"]["state"] == "Open" and opened["spec"]["parent"] == "root"
        told = log.read_text()
        assert "403" not in told and "may not be patched" not in told, told
        assert "level=error" not in told, told

    play(story, limit_s=90)


@pytest.fixture
def no_configurations_left(cluster: RealCluster) -> Any:
    yield

    async def remove() -> None:
        async with Client(cluster.access()) as client:
            for resource in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
                async for page in client.pages(Scope(resource)):
                    for raw in page.items:
                        await client.delete(resource, ObjectRef(as_dict(raw)["metadata"]["name"]))

    asyncio.run(remove())


@pytest.mark.usefixtures("no_configurations_left")
def test_the_server_takes_the_webhooks_and_refuses_what_they_refuse(cluster: RealCluster, play: Play, tmp_path: Path) -> None:
    async def story(client: Client, namespace: str) -> None:
        await install(client, "webhooks")
        await absent(client.create(KINDS["ServiceAccount"], {"metadata": {"name": "default"}}, namespace))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = tmp_path / "webhooks.log"
        flags = [f"--webhook-namespace={SYSTEM}", f"--webhook-url=https://127.0.0.1:{port}", "--listen-address=127.0.0.1", f"--port={port}"]
        async with pumice(cluster, "webhooks", log, "webhooks", *flags):

            async def refusal(wrong: dict[str, Any]) -> str:
                try:
                    await client.create(QUEUES, wrong)
                except ApiError as error:
                    return error.message
                await client.delete(QUEUES, ObjectRef(wrong["metadata"]["name"]))
                return ""

            bad = queue(f"{namespace}-bad", weight=1, parent="nowhere")
            while not (told := await refusal(bad)):
                await asyncio.sleep(0.2)
            expected = 'spec.parent: queue "nowhere" does not exist; create it first'
            assert told == f'admission webhook "validatequeue.volcano.sh" denied the request: {expected}'
            good = f"{namespace}-good"
            made = as_dict(await client.create(QUEUES, queue(good)))
            assert made["spec"]["reclaimable"] is True and made["spec"]["weight"] == 1
            jobs = Jobs(client, namespace)
            with pytest.raises(ApiError, match=r"validatejob\.volcano\.sh") as caught:
                await jobs.create("j", 1, queue="nowhere")
            assert 'queue "nowhere" does not exist' in caught.value.message
            await client.patch(QUEUES, ObjectRef(good), {"status": {"state": "Open"}}, PatchType.MERGE, subresource="status")
            await jobs.create("j", 2, queue=good, minAvailable=None, schedulerName=None)
            spec = as_dict(await client.get(JOBS, ObjectRef("j", namespace)))["spec"]
            assert (spec["minAvailable"], spec["schedulerName"], spec["maxRetry"]) == (2, "volcano", 3)
            pod = {"metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
            pod["spec"] |= {"schedulerName": "volcano", "automountServiceAccountToken": False}
            await client.create(PODS, pod, namespace)
            secret = as_dict(await client.get(SECRETS, ObjectRef("volcano-admission-secret", SYSTEM)))
            assert sorted(secret["data"]) == ["ca.crt", "tls.crt", "tls.key"]
        assert "403" not in log.read_text(), log.read_text()

    play(story, limit_s=90)
