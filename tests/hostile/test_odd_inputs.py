"""Odd texts where a number or an amount belongs, and far too much of something: one clear line, at once, and nothing stops."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pumice.api import files
from pumice.api.errors import InputError
from pumice.cli.main import cli
from pumice.cli.up import _explained
from pumice.cluster.nodes.metrics_server import usage
from pumice.cluster.nodes.node_pools import MOST_NODES, pools_of
from pumice.extensions import plugins
from pumice.http.messages import Request
from pumice.page.server_sent_events import Feed
from pumice.page.simulations import Simulations
from pumice.scheduler.config import config_text, read_configurations
from pumice.scheduler.config.limits import LARGEST_TEXT, MOST_EXTENDERS, MOST_PROFILES, MOST_TIERS, MOST_VALUES
from pumice.scheduler.config.volcano_conf import read_policy
from pumice.simulate.formats.yaml import workload


@pytest.mark.parametrize("odd", ["a lot", "", "1e", "-5", "\u0665", "9" * 5000 + "x"])
def test_an_annotated_usage_that_is_no_amount_counts_as_not_stated(odd: str) -> None:
    """It raised in the kubelet of every node."""
    notes = {"pumice.io/cpu-usage": odd, "pumice.io/memory-usage": odd}
    assert usage({"metadata": {"annotations": notes}}, {"cpu": 1000, "memory": 1024_000_000}) == {"cpu": "800m", "memory": "800Ki"}


def test_an_annotated_usage_is_told_as_it_stands() -> None:
    notes = {"pumice.io/cpu-usage": "3", "pumice.io/memory-usage": "1Gi"}
    assert usage({"metadata": {"annotations": notes}}, {}) == {"cpu": "3", "memory": "1Gi"}


@pytest.mark.parametrize("number", ["9" * 5000, "-1", "\u0661", "x", ""])
def test_the_number_of_a_report_may_be_any_text(number: str) -> None:
    assert Simulations(lambda: None)._report(Request("GET", f"/api/report?number={number}", {})).status == 404  # type: ignore[arg-type]


@pytest.mark.parametrize("pools", ["999999999x8gpu", "9999999999x8gpu", "60000x8gpu,60000x1cpu", "1x" + "9" * 5000 + "gpu", "\u0661x1cpu"])
def test_more_nodes_than_any_cluster_has_are_refused_in_a_line(pools: str) -> None:
    with pytest.raises(InputError) as refused:
        pools_of(pools)
    assert len(str(refused.value)) < 200 and "\n" not in str(refused.value)
    assert sum(pool.size for pool in pools_of(f"{MOST_NODES}x8gpu")) == MOST_NODES


TIER = "- plugins: [{name: gang}]\n"


@pytest.mark.parametrize("tiers", [MOST_TIERS + 1, LARGEST_TEXT // len(TIER) + 1])
def test_a_configuration_of_far_too_many_tiers_is_refused_in_a_line(tiers: int) -> None:
    with pytest.raises(InputError) as refused:
        read_policy('actions: "allocate"\ntiers:\n' + TIER * tiers, plugins(None))
    assert "at most" in str(refused.value) or "may have" in str(refused.value)
    assert "\n" not in str(refused.value)
    read_policy('actions: "allocate"\ntiers:\n' + TIER * MOST_TIERS, plugins(None))


KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MANY = {
    "profiles": "profiles: [{NUMBERS}]\n".replace(
        "NUMBERS", "}, {".join(f"schedulerName: s{number}" for number in range(MOST_PROFILES + 1))
    ),
    "extenders": "extenders: [" + "{urlPrefix: u}," * (MOST_EXTENDERS + 1) + "]\n",
    "plugins": "profiles: [{plugins: {filter: {enabled: [" + "{name: x}," * MOST_VALUES + "]}}}]\n",
    "arguments": "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [" + "a," * MOST_VALUES + "]}}]}]\n",
    "fields": "".join(f"x{number}: 1\n" for number in range(MOST_VALUES)),
    "text": "profiles: []\n" + "#" * LARGEST_TEXT,
}


@pytest.mark.parametrize("body", MANY.values(), ids=MANY)
def test_a_configuration_of_kube_scheduler_with_far_too_much_is_refused_in_a_line(body: str) -> None:
    with pytest.raises(InputError) as refused:
        read_configurations([config_text(KUBE + body, "conf")], plugins(None))
    told = str(refused.value)
    assert ("at most" in told or "may have" in told) and "\n" not in told and len(told) < 200


def test_of_very_many_faults_twenty_are_told() -> None:
    body = "profiles: [{plugins: {filter: {enabled: [" + ", ".join(f"{{name: x{number}}}" for number in range(500)) + "]}}}]\n"
    with pytest.raises(InputError) as refused:
        read_configurations([config_text(KUBE + body, "conf")], plugins(None))
    lines = str(refused.value).splitlines()
    assert len(lines) == 21 and lines[-1] == "and 480 more"


@pytest.mark.parametrize("more", ["pods: 1000001", "pods: {choice: {'999999999': 1}}", "minimum: 99999999999999999999", f"count: {2**31}"])
def test_a_workload_with_a_job_that_no_memory_holds_is_refused_in_a_line(more: str, tmp_path: Path) -> None:
    path = tmp_path / "work.yaml"
    path.write_text(f"nodes: 2x8cpu\njobs:\n- {{arrivals: {{at: [0]}}, run: 1, request: {{cpu: 1}}, {more}}}\n")
    with pytest.raises(InputError) as refused:
        list(workload(str(path), None).jobs)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 200


def test_a_page_that_asks_to_go_on_at_any_place_begins_anew() -> None:
    feed = Feed()
    for number in ("9" * 5000, "\u0661", "-1", ""):
        assert feed.reader(f"{feed._era}-{number}")._number == -1


ZERO = "/dev/zero"


@pytest.mark.parametrize(
    "command",
    [
        *(("cycle", "-f", odd) for odd in (ZERO, "http://", "http://[::1", "http://127.0.0.1:99999/", "https://:1/")),
        ("cycle", "--from-cluster", "--kubeconfig", ZERO),
        *(("simulate", "--nodes", "1x4cpu", "--workload", f"{form}{ZERO}") for form in ("", "swf:", "openb:", "philly:")),
        ("compare", "--nodes", "1x4cpu", "--workload", "/dev/null", "--policy", ZERO),
        ("migrate", "--to", "native", "-f", ZERO),
        *(("up", "--once", "--port=0", *odd) for odd in (("--conf", ZERO), ("-f", ZERO), ("--speed=nan",), ("--name", "x" * 300))),
        *(("up", "--once", "--port=0", "--data", odd) for odd in ("/dev/null", "/dev/null/x", "/proc/1/x", "/proc")),
        ("scheduler", "--kube-api-qps=nan"),
    ],
)
def test_what_is_no_file_no_address_and_no_number_is_refused_in_a_line(command: tuple[str, ...]) -> None:
    error = CliRunner().invoke(cli, command, standalone_mode=False).exception
    assert isinstance(error, InputError | click.ClickException), error
    assert len(str(error)) < 400 and "\n" not in str(error)


def test_a_pipe_without_an_end_is_refused_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 1 << 22)
    with subprocess.Popen(["yes"], stdout=subprocess.PIPE) as endless:
        assert endless.stdout is not None
        try:
            for path in ("-", f"/dev/fd/{endless.stdout.fileno()}"):
                error = CliRunner().invoke(cli, ["cycle", "-f", path], input=endless.stdout, standalone_mode=False).exception
                assert isinstance(error, InputError) and error.message == "has more than 4 MiB, or no end", error
        finally:
            endless.kill()


def test_a_workload_without_a_job_is_told(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("; MaxProcs: 4\n")
    played = CliRunner().invoke(cli, ["simulate", "--nodes", "1x4cpu", "--workload", f"swf:{tmp_path / 'log'}"], standalone_mode=False)
    assert played.exit_code == 0 and played.stderr == "warning: there was no job to play\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_standard_streams_may_be_closed(closed: str, tmp_path: Path) -> None:
    """As of a program that a daemon starts."""
    (tmp_path / "pod.yaml").write_text("kind: Pod\napiVersion: v1\nmetadata: {name: a}\n")
    for given in ("-f -", f"-f {tmp_path}", f"-f {tmp_path} -f nowhere"):
        command = f"{sys.executable} -m pumice cycle {given} {closed}"
        done = subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert done.returncode == (2 if "nowhere" in given else 0) and "Traceback" not in done.stderr, done.stderr


def test_the_address_of_a_server_is_named_if_it_is_none() -> None:
    refused = _explained(socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "no host", 0)
    assert str(refused) == '--host: "no host" is no address of this machine'
