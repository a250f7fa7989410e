"""`pumice controllers`: the flags of vc-controller-manager, the lease, the probes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pumice.api.errors import InputError
from pumice.api.json_objects import Key
from pumice.api.kinds import ObjectRef
from pumice.cli.controllers import chosen, controllers, settings_of
from pumice.controllers.volcano.sharding import NodeShards
from tests.apiserver.server_process import in_thread, kubeconfig_of
from tests.ports import free_port

VOLCANOS = ["--logtostderr", "--enable-healthz=true", "--enable-metrics=true", "--leader-elect=true", "--worker-threads=3", "-v=4", "2>&1"]


@contextmanager
def pumice(*arguments: str, kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", "from pumice.cli.program import main; main()", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"KUBECONFIG": str(kubeconfig)})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition: Callable[[], Any], limit_s: float = 60.0) -> Any:
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def page(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""


def test_a_replica_leads_works_is_measured_and_hands_over(tmp_path: Path) -> None:
    health, metrics = free_port(), free_port()
    with in_thread() as running:
        running.call(lambda store: store.create("namespaces", {"metadata": {"name": "volcano-system"}}))
        running.call(lambda store: store.create("queues.scheduling.volcano.sh", {"metadata": {"name": "default"}, "spec": {"weight": 1}}))
        addresses = [f"--healthz-address=127.0.0.1:{health}", f"--listen-address=127.0.0.1:{metrics}"]
        with pumice("controllers", *VOLCANOS, *addresses, kubeconfig=kubeconfig_of(running, tmp_path)) as process:

            def state() -> Any:
                return (running.call(lambda store: store.find("queues.scheduling.volcano.sh", "", "default")).get("status") or {}).get(
                    "state"
                )

            def lease() -> Any:
                return running.call(lambda store: store.find("leases.coordination.k8s.io", "volcano-system", "vc-controller-manager"))

            wait_for(lambda: state() == "Open")
            assert lease()["spec"]["holderIdentity"]
            assert page(health, "/healthz") == "ok" and wait_for(lambda: page(health, "/readyz") == "ok")
            measured = page(metrics, "/metrics")
            assert (
                'pumice_leading{program="controllers"} 1\n' in measured
                and 'volcano_queue_pod_group_pending_count{queue_name="default"} 0' in measured
            )
            assert 'pumice_controllers_objects{kind="Queue.scheduling.volcano.sh"} 1\n' in measured
            assert {"pumice_controllers_waiting 0", "pumice_events_dropped 0"} <= set(measured.splitlines())
            of_process = dict(line.split() for line in measured.splitlines() if line.startswith("process_"))
            assert 0 < float(of_process["process_open_fds"]) < float(of_process["process_max_fds"])
            assert 1e6 < float(of_process["process_resident_memory_bytes"]) < float(of_process["process_virtual_memory_bytes"])
            assert of_process.keys() >= {"process_cpu_seconds_total", "process_start_time_seconds"}
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
            assert lease()["spec"]["holderIdentity"] == "", "a successor need not wait"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("*", None),
        ("+job-controller,+queue-controller", {"job", "queue"}),
        ("job-controller", {"job"}),
        ("job-controller,sharding-controller,colocation-config-controller", {"job", "sharding"}),
        (
            "*,-gc-controller,-hyperNode-controller",
            {"job", "jobflow", "jobtemplate", "podgroup", "queue", "cronjob.batch.volcano.sh", "sharding"},
        ),
    ],
)
def test_controllers_are_chosen_by_volcanos_names(words: str, kept: set[str] | None) -> None:
    assert chosen(words.split(",")) == (None if kept is None else frozenset(kept))


def test_a_controller_that_is_not_here_is_told_at_the_start(caplog: pytest.LogCaptureFixture) -> None:
    chosen(["+colocation-config-controller", "-colocation-config-controller", "-jb-controller", "of-the-next-release"])
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
        "there is no colocation-config-controller here",
        'there is no jb-controller here; did you mean "job-controller"?',
        "there is no of-the-next-release here",
    ]


def test_the_sharding_controller_runs_if_it_is_asked_for_with_its_flags() -> None:
    def made(*arguments: str) -> NodeShards | None:
        return settings_of(controllers.make_context("controllers", list(arguments)).params).sharding

    assert made() is None and made("--controllers=*,-sharding-controller") is None
    assert made("--controllers=*") is not None
    flags = ["--sharding-configmap=shards", "--sharding-configmap-namespace=here", "--shard-sync-period=5s"]
    sharding = made("--controllers=job-controller", "--controllers=sharding-controller", *flags)
    assert sharding is not None and sharding.config_map == Key("here", "shards")
    with pytest.raises(InputError, match="seven parts"):
        made("--controllers=*", "--scheduler-configs=a:b:0:1:false:1:2,c")


EVERY_FLAG = """--scheduler-name=volcano --max-requeue-num=-1 --worker-threads=3 --worker-threads-for-podgroup=5
    --worker-threads-for-queue=5 --worker-threads-for-gc=1 --worker-threads-for-cronjob=3 --inherit-owner-annotations=true
    --kube-api-qps=50 --kube-api-burst=100 --resync-period=10h
    --controllers=*,-sharding-controller --leader-elect=true --leader-elect-resource-namespace=volcano-system --kubeconfig= --master=
    --enable-healthz=true --healthz-address=:11251 --enable-metrics=true --listen-address=:8081 --logtostderr -v=4 2>&1"""


def test_every_flag_of_volcanos_deployment_is_taken() -> None:
    flags = controllers.make_context("controllers", EVERY_FLAG.split()).params
    settings = settings_of(flags)
    assert settings.scheduler_names == ("volcano",) and (settings.qps, settings.burst) == (50.0, 100.0)
    assert settings.chosen is not None and "job" in settings.chosen and settings.inherit_owner_annotations
    assert settings.lock == ObjectRef("vc-controller-manager", "volcano-system")


def test_a_controller_that_does_not_exist_is_refused_with_advice() -> None:
    with pytest.raises(InputError, match='did you mean "job-controller"'):
        chosen(["jb-controller"])
