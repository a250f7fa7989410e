"""The answers of a live cluster: from its scheduler's state, and from its API server alone. Nothing is written for them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.api.manifests import Objects
from pumice.cli.embedded import running
from pumice.cli.inputs import load_policy
from pumice.cli.main import cli
from pumice.cli.up_options import UpRequest
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.testing import pod, podgroup
from tests.live.situations import KUBE
from tests.ports import free_port

LARGE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: large}
spec: {minMember: 1, queue: default}
---
apiVersion: v1
kind: Pod
metadata: {name: large-0, annotations: {scheduling.k8s.io/group-name: large}}
spec: {schedulerName: volcano, containers: [{name: c, resources: {requests: {cpu: 5}}}]}
"""


async def said(*command: str) -> str:
    """What a command prints, in a thread of its own: the cluster goes on."""
    result = await asyncio.to_thread(CliRunner().invoke, cli, command)
    assert result.exit_code in (0, 1) and not isinstance(result.exception, InputError), (command, result.output, result.exception)
    return result.stdout


async def answers(path: Path, *where: str) -> list[str]:
    """The first line of each."""
    questions = (("why", "job/waits"), ("whatif", "job/waits"), ("eta", "job/waits"), ("lint",))
    told = [(await said(*question, *where)).splitlines()[0] for question in questions]
    against = ("--against", where[1]) if where[0] == "-f" else ("--from-cluster", *where)
    return [*told, await said("check", "-f", str(path), *against)]


def test_the_scheduler_and_the_api_server_tell_the_same(tmp_path: Path) -> None:
    large, kubeconfig, port = tmp_path / "large.yaml", tmp_path / "kubeconfig", free_port()
    large.write_text(LARGE)
    flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false"]

    async def story() -> tuple[list[str], list[str]]:
        conf = tmp_path / "other.conf"  # of the cluster's own scheduler, which is not to serve them
        conf.write_text(f"{KUBE}profiles: [{{schedulerName: another}}]\n")
        wanted = UpRequest(load_policy(Objects(), str(conf), None, False), read_stages(), list(nodes_of(pools_of("1x4cpu"))), speed=0.0)
        async with running(wanted) as embedded:
            store = embedded.plane.store
            embedded.server.kubeconfig(kubeconfig, "test")
            for name in ("runs", "waits"):
                store.create("podgroups.scheduling.volcano.sh", podgroup(name).queue("default").document, "default")
                store.create("pods", pod(f"{name}-0").cpu(3).gang(name).document, "default")
            command = [sys.executable, "-m", "pumice", "scheduler", *flags, "--enable-metrics", f"--listen-address=127.0.0.1:{port}"]
            process = await asyncio.create_subprocess_exec(*command)
            try:
                async with asyncio.timeout(60):
                    while not any(each["spec"].get("nodeName") for each in store.all("pods")):
                        await asyncio.sleep(0.2)
                    await asyncio.sleep(2)
                url = f"http://127.0.0.1:{port}/debug/state"
                of_scheduler = await answers(large, "-f", url)
            finally:
                process.terminate()
                await process.wait()
            version = store.storage.version
            built_in = tmp_path / "built-in.conf"
            built_in.write_text(DEFAULT)
            of_server = await answers(large, "--kubeconfig", str(kubeconfig), "--conf", str(built_in))
            assert store.storage.version == version, "nothing is written"
            return of_scheduler, of_server

    of_scheduler, of_server = asyncio.run(story())
    short = "queue default deserves 4 cpu by its weight (all of the cluster), and holds 3; it asks for 3 (2 short)"
    never = "it must start with 5 cpu, and queue default may hold 4 at most (1 short)"
    for why, whatif, eta, lint, check in (of_scheduler, of_server):
        assert (why, whatif) == (f"job/waits waits: {short}", f"job/waits waits: {short}")
        assert eta.startswith("job/waits starts within ")
        assert lint == "fine: nothing found"
        assert check == f"podgroup/large can never run here: {never}\n"


def test_a_url_that_does_not_answer_is_told() -> None:
    result = CliRunner().invoke(cli, ["why", "job/x", "-f", "http://127.0.0.1:9/debug/state"])
    assert isinstance(result.exception, InputError) and "cannot be read" in str(result.exception)


@pytest.mark.parametrize("command", ["why", "cycle"])
def test_the_help_says_that_a_url_can_be_read(command: str) -> None:
    assert "a URL" in CliRunner().invoke(cli, [command, "--help"]).output
