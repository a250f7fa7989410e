"""`pumice record` beside a cluster where another scheduler decides: it sees what happens there."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
import yaml

from pumice.api.gang_dialects import READ
from pumice.cli.embedded import running
from pumice.cli.record import follow
from pumice.cli.up_options import UpRequest, policy_of
from pumice.client.client import Client
from pumice.client.resolve_access import find
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.inputs.recording.file_format import Retention, as_it_is
from pumice.inputs.recording.replay import opened
from pumice.inputs.recording.snapshot import Snapshot
from pumice.live.scheduler.watched_resources import EVERY
from pumice.scheduler.model import status
from tests.live.stories import until

POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


def test_a_recording_of_a_live_cluster_holds_what_became_of_it(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def story() -> None:
        wanted = UpRequest(policy_of(), read_stages(), list(nodes_of(pools_of("2x4cpu"))), speed=100.0)
        async with running(wanted) as embedded:
            embedded.server.kubeconfig(tmp_path / "kubeconfig", "test")
            async with Client(find(str(tmp_path / "kubeconfig"))) as client:
                following = asyncio.create_task(follow(client, policy_of(), out, Retention(), as_it_is))
                await until(lambda: any(out.glob("*")), every_s=0.05)
                embedded.plane.store.create("pods", POD, "default")
                await until(lambda: embedded.plane.store.get("pods", "web", "default")["status"]["phase"] == "Running", every_s=0.05)
                await asyncio.sleep(0.5)
                signal.raise_signal(signal.SIGTERM)
                await following

    asyncio.run(story())
    replay = opened(out, pytest.fail)
    assert list(replay.cycles()) == []
    assert {name for kind, each in Snapshot(replay.cluster).objects() if kind == "Node" and (name := each.metadata.name)}  # type: ignore[attr-defined]
    web = replay.cluster.tasks["default/web"]
    assert web.status == status.RUNNING and web.node_name


FOR_ANSWERS = {
    ("", "configmaps"),
    ("apps", "deployments"),
    ("batch.volcano.sh", "jobs"),
    ("batch", "jobs"),
}  #: what is in force, pods to come
FOR_ANSWERS |= {("", "limitranges"), ("node.k8s.io", "runtimeclasses")}  #: what admission gives to these pods
FOR_GANGS = {(kind.group, kind.plural) for kind in READ}  #: what means a gang, where nobody has made PodGroups of it


def test_the_read_only_role_reads_all_that_scheduling_and_answers_read_and_nothing_else() -> None:
    role = yaml.safe_load((Path(__file__).parents[2] / "deploy/manifests/read-only.yaml").read_text())
    allowed = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
    assert allowed == {(kind.group, kind.plural) for kind in EVERY} | FOR_ANSWERS | FOR_GANGS
    assert all(set(rule["verbs"]) <= {"get", "list", "watch"} for rule in role["rules"])
