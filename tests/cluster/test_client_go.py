"""Programs written with client-go, as controllers are, do the same on our API server as on a real one. They speak protobuf."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from binaries import module_folder, program
from realcluster import RealCluster

from pumice.client.client import Client
from pumice.cluster.apiserver.scheme import protobuf
from pumice.cluster.apiserver.scheme.builtin_kinds import builtin_kinds
from tests.apiserver.server_process import in_thread, kubeconfig_of

pytestmark = pytest.mark.cluster

LIMIT_S = 120
SAID = [
    "added steps",
    "updated replaced",
    "updated patched",
    "updated applied",
    "deleted",
    "read metadata",
    "renewed its lease",
    "released its lease",
]


@contextlib.contextmanager
def ours() -> Iterator[Path]:
    with in_thread() as running, tempfile.TemporaryDirectory() as folder:
        running.call(lambda store: store.create("namespaces", {"metadata": {"name": "controlled"}}))
        yield kubeconfig_of(running, Path(folder))


def run(kubeconfig: Path, namespace: str) -> list[str]:
    command = [program("clientgo"), kubeconfig, namespace]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_a_controller_takes_a_lease_updates_patches_applies_and_watches(cluster: RealCluster) -> None:
    with ours() as kubeconfig:
        assert run(kubeconfig, "controlled") == SAID


def test_it_does_the_same_on_a_real_server(cluster: RealCluster, play: Callable[..., None]) -> None:
    async def story(client: Client, namespace: str) -> None:
        assert await asyncio.to_thread(run, cluster.kubeconfig(), namespace) == SAID

    play(story)


def test_every_kind_in_protobuf_is_read_as_kubernetes_reads_it(cluster: RealCluster) -> None:
    """The files that Kubernetes keeps of each of its kinds, with a value in each field, in protobuf and in JSON."""
    folder, compared = module_folder("k8s.io/api") / "testdata" / "HEAD", 0
    for kind in builtin_kinds():
        path = folder / f"{kind.group or 'core'}.{kind.version}.{kind.kind}"
        if path.with_name(f"{path.name}.pb").exists():
            found = protobuf.decode(path.with_name(f"{path.name}.pb").read_bytes())
            assert without_nulls(found) == without_nulls(json.loads(path.with_name(f"{path.name}.json").read_text())), path.name
            compared += 1
    assert compared > 50


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value
