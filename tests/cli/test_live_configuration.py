"""The configuration in force is found where the scheduler of a live cluster reads it, and the answer names it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.embedded import running
from pumice.cli.live_cluster import Remote
from pumice.cli.live_configuration import in_force
from pumice.cli.main import cli
from pumice.cli.up_options import wanted
from tests.apiserver.server_process import in_thread, kubeconfig_of
from tests.cli.terminal import Terminal

RUN_CONF = Path(__file__).parents[2] / "examples/run.conf"
CONF = 'actions: "allocate"\ntiers: [{plugins: [{name: gang}]}]\n'
UP: dict[str, Any] = {"nodes": "1x4cpu", "files": (), "submitted": None, "speed": 0.0, "pause": True, "stages": None, "recover": False}
UP |= {"plugins_dir": None, "host": "127.0.0.1", "port": 0, "archive": None, "record": ""}


def config_map(name: str, namespace: str = "default", key: str = "volcano-scheduler.conf") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {key: CONF}}


def deployment(
    args: list[str], mounts: list[dict[str, Any]], volumes: list[dict[str, Any]], label: str = "volcano-scheduler"
) -> dict[str, Any]:
    labels = {"app": label}
    container = {"name": "s", "image": "pumice", "args": args, "volumeMounts": mounts}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": volumes}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "main", "namespace": "default", "labels": labels}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def found(*objects: dict[str, Any], tmp_path: Path) -> tuple[str, list[str]]:
    """Where the configuration in force of a cluster with these objects was found, and its texts."""
    with in_thread() as server:
        kubeconfig = kubeconfig_of(server, tmp_path)
        Terminal(server, kubeconfig).apply(*objects) if objects else None
        known = Remote(str(kubeconfig), "", "").run(in_force)
        return known.where, [text.text for text in known.texts]


MOUNT, VOLUME = {"name": "c", "mountPath": "/etc/conf"}, {"name": "c", "configMap": {"name": "mine"}}


@pytest.mark.parametrize(
    ("args", "mounts", "volumes", "key"),
    [
        (["--scheduler-conf=/etc/conf/a.conf"], [MOUNT], [VOLUME], "a.conf"),
        (
            ["scheduler", "--scheduler-conf", "/etc/conf/sub/a.conf"],
            [MOUNT],
            [VOLUME | {"configMap": {"name": "mine", "items": [{"key": "k", "path": "sub/a.conf"}]}}],
            "k",
        ),
        (
            ["sh -c 'vc-scheduler --scheduler-conf=/etc/conf/a.conf'"],
            [MOUNT, {"name": "x", "mountPath": "/etc"}],
            [VOLUME, {"name": "x", "emptyDir": {}}],
            "a.conf",
        ),
        (["--scheduler-conf=/etc/one.conf"], [{"name": "c", "mountPath": "/etc/one.conf", "subPath": "a.conf"}], [VOLUME], "a.conf"),
    ],
)
def test_it_is_the_config_map_that_the_scheduler_mounts(
    args: list[str], mounts: list[dict[str, Any]], volumes: list[dict[str, Any]], key: str, tmp_path: Path
) -> None:
    given = (config_map("mine", key=key), config_map("volcano-scheduler-configmap"), deployment(args, mounts, volumes))
    where, texts = found(*given, tmp_path=tmp_path)
    assert where == f"that of ConfigMap default/mine ({key}), which Deployment default/main mounts"
    assert texts == [CONF]


def test_a_scheduler_is_found_by_its_program_where_nothing_has_the_label(tmp_path: Path) -> None:
    given = deployment(["scheduler", "--scheduler-conf=/etc/conf/a.conf"], [MOUNT], [VOLUME], label="other")
    assert "which Deployment default/main mounts" in found(config_map("mine", key="a.conf"), given, tmp_path=tmp_path)[0]


def test_without_a_mounted_one_the_usual_name_counts_and_else_the_built_in_one(tmp_path: Path) -> None:
    assert found(tmp_path=tmp_path)[0].startswith("the built-in one, as no other was found")
    flagless = deployment(["scheduler"], [], [])
    assert found(flagless, tmp_path=tmp_path)[0] == "the built-in one, as Deployment default/main names no --scheduler-conf"
    usual = config_map("volcano-scheduler-configmap")
    gone = deployment(["--scheduler-conf=/etc/conf/a.conf"], [MOUNT], [VOLUME])
    for given in ((usual,), (usual, gone)):
        where, texts = found(*given, tmp_path=tmp_path)
        assert where.startswith("that of ConfigMap default/volcano-scheduler-configmap")
        assert texts == [CONF]


def test_a_cluster_of_pumice_up_tells_its_own_configuration(tmp_path: Path) -> None:
    kubeconfig, conf = tmp_path / "kubeconfig", tmp_path / "mine.conf"
    conf.write_text(RUN_CONF.read_text())

    async def story() -> tuple[str, str, str]:
        async with running(wanted(None, "1x4cpu", **UP, conf=(str(conf),))) as embedded:
            embedded.server.kubeconfig(kubeconfig, "test")
            ask = ("lint", "--kubeconfig", str(kubeconfig))
            plain = await asyncio.to_thread(CliRunner().invoke, cli, ask)
            other = await asyncio.to_thread(CliRunner().invoke, cli, [*ask, "--conf", str(RUN_CONF)])
            return embedded.server.url, plain.stderr, other.stderr

    url, plain, other = asyncio.run(story())
    assert plain == f"Asked: the cluster at {url}; configuration: {conf}, of its pumice up.\n"
    assert other == f"Asked: the cluster at {url}; configuration: {RUN_CONF}.\n"
