"""Volcano's release on a real API server, where each of its programs is replaced by one of ours; nodes are played.

The chart is rendered by helm out of a checkout of Volcano and applied; its Deployments have no pods. Our programs run here with the
arguments that stand in them, with their service accounts' rights, and with their ConfigMaps as files.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from binaries import KUBERNETES, programs
from installed import PROGRAM
from played_nodes import PROVISIONER, PlayedNodes, add_node
from realcluster import RealCluster

from pumice.api.kinds import CONFIG_MAPS, QUEUES, SECRETS, STORAGE_CLASSES, ObjectRef
from pumice.client.certificates import Authority
from pumice.client.client import Client
from pumice.client.failures import KubeError
from tests.ports import free_port

NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "helm")
RELEASE, NAMESPACE = "integration", "volcano-system"
#: program to the Deployment of the chart whose place it takes
PARTS = {"webhooks": "admission", "controllers": "controllers", "scheduler": "scheduler"}
ADMISSIONS = ("pods/mutate", "queues/mutate", "podgroups/mutate", "jobs/mutate", "jobs/validate", "jobflows/validate", "pods/validate")
ADMISSIONS += ("queues/validate", "podgroups/validate", "hypernodes/validate", "cronjobs/validate")
VALUES: dict[str, Any] = {
    "basic": {"scheduler_config_file": "config/volcano-scheduler-ci.conf"},
    "custom": {"enabled_admissions": ",".join(f"/{each}" for each in ADMISSIONS)},
}
WORKER = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
#: 8 CPUs and 8 GiB, less what the network of kind's nodes asks for on each
KWOK = {"cpu": "7900m", "memory": "8142Mi", "pods": "110"}
HERE_ONLY = ("--enable-healthz", "--enable-metrics", "--port")  #: what is otherwise than in a pod


def kubectl(cluster: RealCluster, *words: str, given: str = "") -> str:
    command = [str(programs("kubectl")["kubectl"]), f"--kubeconfig={cluster.kubeconfig()}", *words]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Chart:
    """The chart's objects, and its Deployments apart: what they would start is started here."""

    def __init__(self, source: Path, folder: Path, custom: dict[str, Any]) -> None:
        values = folder / "values.yaml"
        values.write_text(yaml.safe_dump({**VALUES, "custom": {**VALUES["custom"], **custom}}))
        words = ["template", RELEASE, str(source / "installer/helm/chart/volcano"), "-n", NAMESPACE, f"--kube-version={KUBERNETES}"]
        command = [str(programs("helm")["helm"]), *words, f"--values={values}"]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
        items = [item for item in yaml.safe_load_all(printed) if item and item["kind"] != "Job"]  # the job makes a Secret for the webhooks
        self.deployments = {item["metadata"]["name"]: item for item in items if item["kind"] == "Deployment"}
        webhooks = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        self.webhooks = [item for item in items if item["kind"] in webhooks]
        self.others = [item for item in items if item["kind"] not in ("Deployment", *webhooks)]

    def install(self, cluster: RealCluster) -> None:
        kubectl(cluster, "create", "namespace", NAMESPACE)
        kubectl(cluster, "apply", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump(_certificates()))
        definitions = [item for item in self.others if item["kind"] == "CustomResourceDefinition"]
        kubectl(cluster, "apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(definitions))
        until_established(cluster, len(definitions))
        kubectl(cluster, "apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(self.others))
        asleep = [{**item, "spec": {**item["spec"], "replicas": 0}} for item in self.deployments.values()]
        kubectl(cluster, "apply", "--server-side", "-n", NAMESPACE, "-f", "-", given=yaml.safe_dump_all([*asleep, *self.webhooks]))


def until_established(cluster: RealCluster, definitions: int) -> None:
    """(`kubectl wait` fails where there are no conditions yet.)"""
    for _ in range(600):
        found = [item.get("status") or {} for item in json.loads(kubectl(cluster, "get", "crd", "-o", "json"))["items"]]
        kinds = [each["type"] for status in found for each in status.get("conditions") or () if each["status"] == "True"]
        if kinds.count("Established") == definitions:
            return
        time.sleep(0.1)


def _certificates() -> dict[str, Any]:
    """The Secret that the chart's job would make."""
    authority = Authority(time.time(), days=2)
    pair = authority.issue("admission", "127.0.0.1")
    data = {"ca.crt": authority.pem, "tls.crt": pair.certificate, "tls.key": pair.key}
    head = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "volcano-admission-secret"}}
    return {**head, "stringData": {key: pem.decode() for key, pem in data.items()}}


class Program:
    """One of ours in the place of a Deployment: its arguments, its service account's rights, its ConfigMaps as files that follow them."""

    def __init__(self, cluster: RealCluster, client: Client, part: str, deployment: dict[str, Any], folder: Path) -> None:
        self._cluster, self._client, self._part, self._folder = cluster, client, part, folder / part
        self._folder.mkdir()
        spec = deployment["spec"]["template"]["spec"]
        self._account = spec["serviceAccount"]
        (container,) = spec["containers"]
        self._volumes = {each["name"]: each for each in spec.get("volumes") or () if "configMap" in each or "secret" in each}
        self._places = {each["mountPath"]: each["name"] for each in container.get("volumeMounts") or () if each["name"] in self._volumes}
        self._arguments = container["args"]
        self._environment = os.environ | {each["name"]: each["value"] for each in container.get("env") or ()}

    def kubeconfig(self) -> Path:
        path = self._folder / "kubeconfig"
        config = yaml.safe_load(self._cluster.kubeconfig().read_text())
        token = kubectl(self._cluster, "create", "token", self._account, "-n", NAMESPACE, "--duration=12h").strip()
        config["users"][0]["user"] = {"token": token}
        path.write_text(yaml.safe_dump(config))
        return path

    def command(self, *flags: str) -> list[str]:
        arguments = [each for each in self._arguments if not each.startswith(HERE_ONLY)]
        for place, name in self._places.items():
            arguments = [each.replace(place, str(self._folder / name)) for each in arguments]
        return [PROGRAM, self._part, *arguments, f"--kubeconfig={self.kubeconfig()}", *flags]

    async def mount(self) -> None:
        """As a kubelet does: a file that has changed takes the other's place at once."""
        for name, volume in self._volumes.items():
            folder = self._folder / name
            folder.mkdir(exist_ok=True)
            for key, content in (await self._content(volume)).items():
                path = folder / key
                if not path.exists() or path.read_text() != content:
                    (folder / f".{key}").write_text(content)
                    (folder / f".{key}").rename(path)

    async def _content(self, volume: dict[str, Any]) -> dict[str, str]:
        if "configMap" in volume:
            found = json.loads(await self._client.get(CONFIG_MAPS, ObjectRef(volume["configMap"]["name"], NAMESPACE)))
            return found.get("data") or {}
        found = json.loads(await self._client.get(SECRETS, ObjectRef(volume["secret"]["secretName"], NAMESPACE)))
        return {key: base64.b64decode(value).decode() for key, value in found["data"].items()}

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(0.5)
            with suppress(KubeError):
                await self.mount()

    @asynccontextmanager
    async def running(self, *flags: str) -> AsyncIterator[None]:
        await self.mount()
        following = asyncio.create_task(self.follow())
        log = self._folder.with_suffix(".log")
        with log.open("wb") as out:
            process = await asyncio.create_subprocess_exec(*self.command(*flags), env=self._environment, stdout=out, stderr=out)
        try:
            yield
            assert process.returncode is None, log.read_text()[-3000:]
        finally:
            following.cancel()
            if process.returncode is None:
                process.terminate()
                await asyncio.wait_for(process.wait(), 30)


@asynccontextmanager
async def kubernetes_own(cluster: RealCluster, folder: Path) -> AsyncIterator[None]:
    """Kubernetes' controllers and scheduler. Nodes are played and have no heartbeat."""
    key = f"--service-account-private-key-file={cluster.folder / 'accounts.key'}"
    flags = {"kube-controller-manager": [key, "--controllers=*,-node-lifecycle-controller"], "kube-scheduler": []}
    usual = [f"--kubeconfig={cluster.kubeconfig()}", "--leader-elect=false"]
    started = []
    try:
        for name, own in flags.items():
            with (folder / f"{name}.log").open("wb") as out:
                command = [str(programs(name)[name]), *usual, f"--secure-port={free_port()}", "--bind-address=127.0.0.1", *own]
                started.append(await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out))
        yield
    finally:
        for process in started:
            process.terminate()
            await process.wait()


@asynccontextmanager
async def at_work(cluster: RealCluster, source: Path, folder: Path, custom: dict[str, Any], kwok_nodes: int) -> AsyncIterator[None]:
    """Everything that the suites expect: nodes, Kubernetes' controllers, the release, and our three programs."""
    chart = Chart(source, folder, custom)
    chart.install(cluster)
    port = free_port()
    flags = {"webhooks": (f"--webhook-url=https://127.0.0.1:{port}", "--listen-address=127.0.0.1", f"--port={port}")}
    async with Client(cluster.access()) as client, AsyncExitStack() as stack:
        await client.create(STORAGE_CLASSES, STANDARD)
        await add_node(client, f"{RELEASE}-control-plane", WORKER, taint="node-role.kubernetes.io/control-plane")
        for number in ("", "2", "3", "4"):
            await add_node(client, f"{RELEASE}-worker{number}", WORKER)
        for number in range(kwok_nodes):
            await add_node(client, f"kwok-node-{number}", KWOK, {"type": "kwok"}, taint="kwok.x-k8s.io/node=fake")
        await stack.enter_async_context(kubernetes_own(cluster, folder))
        playing = asyncio.create_task(PlayedNodes(client).run())
        stack.callback(playing.cancel)
        for part, deployment in PARTS.items():
            program = Program(cluster, client, part, chart.deployments[f"{RELEASE}-{deployment}"], folder)
            await stack.enter_async_context(program.running(*flags.get(part, ())))
        await until_served(client, folder / "webhooks.log")
        yield
        assert not playing.done(), playing


STANDARD = {
    "metadata": {"name": "standard", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    "provisioner": PROVISIONER,
    "volumeBindingMode": "WaitForFirstConsumer",
}


async def until_served(client: Client, log: Path) -> None:
    """The webhooks are called, and the default queue takes work."""
    for _ in range(1200):
        with suppress(KubeError):
            queue = json.loads(await client.get(QUEUES, ObjectRef("default")))
            if (queue.get("status") or {}).get("state") == "Open" and "webhooks are served" in log.read_text():
                return
        await asyncio.sleep(0.1)
    raise AssertionError(log.read_text())
