"""Every argument of every release of Volcano is read by the program that takes the other's place, and an unknown one ends nothing."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pytest

from pumice.api import yaml
from pumice.cli.controllers import controllers, settings_of as settings_of_controllers
from pumice.cli.main import cli
from pumice.cli.scheduler import Configuration, scheduler, settings_of as settings_of_scheduler
from pumice.cli.webhooks import settings_of as settings_of_webhooks, webhooks
from pumice.client.certificates import Authority
from pumice.scheduler.config.volcano_conf import DEFAULT
from tests.apiserver.server_process import in_thread, kubeconfig_of
from tests.live_controllers.test_controllers_command import page, pumice, wait_for
from tests.ports import free_port

NAMES = "volcano-admission-service.volcano-system.svc"
COMMANDS = {"scheduler": scheduler, "controllers": controllers, "webhooks": webhooks}
DATA = Path(__file__).parent / "volcano_arguments.yaml"
RELEASES: dict[str, Any] = next(iter(yaml.documents(DATA.read_bytes(), DATA.name))).value


def deployments() -> Iterator[tuple[str, str, list[str]]]:
    for release, found in RELEASES.items():
        for form in ("chart", "manifest"):
            for program, arguments in found[form].items():
                yield f"{release} {form}", program, arguments


@pytest.mark.parametrize("release", RELEASES)
def test_the_programs_start_with_the_arguments_of_the_chart(release: str, tmp_path: Path) -> None:
    """The three at once, with one more argument than any release has. What the arguments call files is in a folder of the test's own."""
    files = files_of_a_pod(tmp_path)
    with in_thread() as server, ExitStack() as stack:
        server.call(lambda store: store.create("namespaces", {"metadata": {"name": "volcano-system"}}))
        kubeconfig, started = kubeconfig_of(server, tmp_path), {}
        for program, arguments in RELEASES[release]["chart"].items():
            healthz, port = free_port(), free_port()
            own = ["--of-the-next-release", "7", f"--healthz-address=127.0.0.1:{healthz}"]
            own += [f"--port={port}", "--listen-address=127.0.0.1"] if program == "webhooks" else [f"--listen-address=127.0.0.1:{port}"]
            if program == "webhooks":
                server.call(lambda store, port=port: store.create("services", service_at(port), "volcano-system"))
            here = [re.sub("/(volcano.scheduler|admission.local.config/[a-z]+|plugins)(?=/|$)", files, each) for each in arguments]
            started[healthz] = stack.enter_context(pumice(program, *here, *own, kubeconfig=kubeconfig))
        for healthz, process in started.items():
            assert wait_for(lambda port=healthz: page(port, "/readyz") == "ok")  # type: ignore[misc]
            process.send_signal(signal.SIGTERM)
        for process in started.values():
            assert process.wait(60) == 0 and process.stderr is not None
            assert "--of-the-next-release is not read: there is no such flag" in process.stderr.read()


def service_at(port: int) -> dict[str, Any]:
    """The Service of the webhooks, whose program listens here. The scheduler is ready once they have let its queues pass."""
    metadata = {"name": "volcano-admission-service", "annotations": {"pumice.io/program-address": f"127.0.0.1:{port}"}}
    return {"metadata": metadata, "spec": {"ports": [{"port": 443, "targetPort": 8443}]}}


def files_of_a_pod(folder: Path) -> str:
    """The folder with what Volcano's Deployments mount: the configurations and the certificates."""
    (folder / "volcano-scheduler.conf").write_text(DEFAULT)
    (folder / "volcano-admission.conf").write_text("#resourceGroups:\n")
    authority = Authority(time.time(), days=1)
    pair = authority.issue(NAMES, NAMES)
    (folder / "ca.crt").write_bytes(authority.pem)
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    return str(folder)


def read(program: str, arguments: list[str]) -> dict[str, Any]:
    return COMMANDS[program].make_context(program, list(arguments), parent=click.Context(cli, **cli.context_settings)).params


@pytest.mark.parametrize(("where", "program", "arguments"), list(deployments()))
def test_the_arguments_of_each_release_are_settings(where: str, program: str, arguments: list[str]) -> None:
    flags = read(program, arguments)
    assert flags["not_read"] == ()
    if program == "scheduler":
        made: Any = settings_of_scheduler(flags, flags["names"], Configuration("", None, strict=False))
        assert made.metrics_address == ":8080" and made.options.period_s == 1
    elif program == "controllers":
        made = settings_of_controllers(flags)
    else:
        made = settings_of_webhooks(flags)
        assert made.hooks and made.client_config.service_hosts[0].startswith("volcano-admission-service.volcano-system")
    assert made.healthz_address == ":11251"


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("program", COMMANDS)
def test_every_flag_that_a_release_declares_is_known_in_both_spellings(release: str, program: str) -> None:
    known = {name for each in COMMANDS[program].params for name in each.opts}
    for name in RELEASES[release]["flags"][program].split():
        assert {f"--{name.replace('_', '-')}"} <= known


@pytest.mark.parametrize("program", COMMANDS)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--enable-healtz=true"], '--enable-healtz is not read: there is no such flag; did you mean "--enable-healthz"?'),
        (["--enable-healtz", "true"], '--enable-healtz is not read: there is no such flag; did you mean "--enable-healthz"?'),
        (["--of-the-next-release", "--enable-healthz"], "--of-the-next-release is not read: there is no such flag"),
        (["-logtostderr"], '-l is not read: there is no such flag; did you mean "--logtostderr"?'),
        (["-x", "4"], "-x is not read: there is no such flag"),
        (["--leader", "--", "--more"], "--leader is not read: there is no such flag"),
        (["--logtostderr", "false"], '"false" is not read: it follows no flag that takes a value'),
    ],
)
def test_an_unknown_flag_is_told_and_ends_the_program_only_if_that_is_asked_for(program: str, arguments: list[str], told: str) -> None:
    flags = read(program, [*arguments, "--kube-api-qps=7", "-v=3", "2>&1"])
    assert flags["not_read"][0].startswith(told)
    assert flags["kube_api_qps"] == 7 or "--" in arguments, "what follows is read"
    assert flags["enable_healthz"] is ("--enable-healthz" in arguments), "a flag is not the value of another"
    with pytest.raises(click.UsageError, match=told.split(":")[0]):
        read(program, ["--strict-flags", *arguments])


@pytest.mark.parametrize("program", COMMANDS)
def test_flags_are_read_as_pflag_reads_them(program: str) -> None:
    flags = read(program, ["--enable_healthz", "--kube_api_qps", "9", "--kubeconfig", "", "-v4", "--log_dir=/var/log", "--log-file", "x"])
    assert (flags["enable_healthz"], flags["kube_api_qps"], flags["kubeconfig"], flags["verbosity"]) == (True, 9, "", 4)
    assert flags["not_read"] == ()
    assert [read(program, given)["verbosity"] for given in (["-v", "2"], ["-v=2"], ["--v=2"], ["--v", "2"])] == [2] * 4
    assert read(program, ["--version=false"])["not_read"] == ()
    with pytest.raises(click.exceptions.BadParameter, match='"maybe" is not true or false'):
        read(program, ["--enable-healthz=maybe"])
    with pytest.raises(click.BadOptionUsage, match="requires an argument"):
        read(program, ["--kubeconfig"])
