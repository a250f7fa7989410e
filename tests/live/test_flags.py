"""A Deployment made for vc-scheduler starts `pumice scheduler` with its own flags."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from pumice.api.errors import InputError
from pumice.cli.go_flags import GoCommand
from pumice.cli.replica_flags import options, tell_of
from pumice.cli.scheduler import NOT_NEEDED, OWN, Configuration, ring_of, settings_of, tell_what_a_shadow_lacks
from pumice.client.certificates import Authority
from pumice.live.scheduler.options import Sharding
from pumice.live.scheduler.scheduler_replica import SchedulerSettings

DOCUMENTED = (
    "master kubeconfig ca-cert-file tls-cert-file tls-private-key-file scheduler-name scheduler-conf schedule-period "
    "resync-period default-queue leader-elect leader-elect-lease-duration leader-elect-renew-deadline "
    "leader-elect-retry-period leader-elect-resource-lock leader-elect-resource-name leader-elect-resource-namespace "
    "lock-object-namespace listen-address healthz-address priority-class kube-api-qps kube-api-burst minimum-feasible-nodes "
    "minimum-percentage-nodes-to-find percentage-nodes-to-find plugins-dir csi-storage enable-healthz enable-metrics "
    "enable-pprof node-selector cache-dumper cache-dump-dir node-worker-threads gate-removal-worker-num ignored-provisioners "
    "resource-sync-timeout disable-default-scheduler-config scheduler-sharding-mode scheduler-sharding-name feature-gates "
    "version"
)


def settings(*arguments: str) -> SchedulerSettings:
    """What the flags come to."""
    made: list[SchedulerSettings] = []

    @click.command(cls=GoCommand)
    @options(OWN, NOT_NEEDED)
    def command(**flags: Any) -> None:
        made.append(settings_of(flags, flags["names"] or ("volcano",), Configuration("", None, strict=False)))

    result = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if result.exception:
        raise result.exception
    return made[0]


@pytest.mark.parametrize("flag", DOCUMENTED.split())
def test_every_documented_flag_is_known(flag: str) -> None:
    @click.command(cls=GoCommand)
    @options(OWN, NOT_NEEDED)
    def command(**flags: Any) -> None:
        """Only its options are looked at."""

    known = {option.lstrip("-") for parameter in command.params for option in parameter.opts}
    assert flag in known


def test_the_chart_of_volcano_starts_it() -> None:
    made = settings(
        "--logtostderr",
        "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
        "--enable-healthz=true",
        "--enable-metrics=true",
        "--leader-elect=false",
        "--kube-api-qps=2000",
        "--kube-api-burst=2000",
        "--schedule-period=1s",
        "--node-worker-threads=20",
        "-v=3",
    )
    assert (made.term, made.metrics_address, made.healthz_address, made.options.period_s) == (None, ":8080", ":11251", 1.0)


def test_names_selectors_and_shards_may_be_given() -> None:
    made = settings("--scheduler-name=a", "--scheduler-name=b", "--node-selector=zone:one", "--scheduler-sharding-mode=soft")
    assert made.options.schedulers == ("a", "b") and made.options.component == "volcano"
    assert made.options.node_labels == (("zone", "one"),) and made.options.sharding == Sharding("soft", "volcano")


def test_the_old_name_of_the_locks_namespace_counts() -> None:
    assert settings("--lock-object-namespace=here").lock.namespace == "here"
    assert settings().lock.namespace == "volcano-system" and settings().lock.name == "volcano"


@pytest.mark.parametrize(
    ("flag", "word"),
    [("--node-selector=zone", "label:value"), ("--leader-elect-renew-deadline=20s", "longer than the renew deadline")],
)
def test_wrong_flags_say_what_to_write(flag: str, word: str) -> None:
    with pytest.raises(InputError, match=word):
        settings(flag)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--enable-pprof"], "--enable-pprof is not needed: there is no Go"),
        (["--enable-pprof=false"], "--enable-pprof is not needed"),
        (["--log_file=/var/log/volcano.log"], "--log-file is not needed: the log goes to standard error"),
        (["--node-worker-threads", "20"], "--node-worker-threads is not needed: nodes are taken over by one thread"),
        (["--ignored-provisioners=a", "--ignored-provisioners=b"], "--ignored-provisioners is not needed"),
        ([], ""),
    ],
)
def test_a_flag_that_is_not_needed_says_why(given: list[str], message: str, caplog: pytest.LogCaptureFixture) -> None:
    assert all(reason and reason[-1] != "." for reason in NOT_NEEDED.values())

    @click.command(cls=GoCommand)
    @options(OWN, NOT_NEEDED)
    def command(**flags: Any) -> None:
        with caplog.at_level(logging.INFO):
            tell_of(flags, NOT_NEEDED)

    CliRunner().invoke(command, given, standalone_mode=False)
    assert message in caplog.text and bool(message) == bool(caplog.text)


def test_what_a_shadow_does_not_do_is_told(caplog: pytest.LogCaptureFixture) -> None:
    tell_what_a_shadow_lacks({"page_address": "", "record": ""})
    assert not caplog.messages
    tell_what_a_shadow_lacks({"page_address": ":7480", "record": "records"})
    assert [message.partition(" has")[0] for message in caplog.messages] == ["--page-address", "--record"]


def test_replicas_that_share_the_work_are_told_so_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings().options.sharding.ring is None
    monkeypatch.setenv("MULTI_SCHEDULER_ENABLE", "true")
    monkeypatch.setenv("SCHEDULER_NUM", "3")
    monkeypatch.setenv("SCHEDULER_POD_NAME", "volcano-scheduler-2")
    made = settings()
    assert made.options.sharding.ring is not None and made.options.sharding.ring.mine == "volcano-scheduler-2"
    assert made.lock.name == "volcano-2", "each has a lease of its own"


@pytest.mark.parametrize(
    ("count", "name", "message"),
    [
        ("three", "scheduler-0", '"three" is not a number of replicas'),
        ("0", "scheduler-0", '"0" is not a number of replicas'),
        ("2", "scheduler-2", '"scheduler-2" is none of 2 replicas'),
        ("", "scheduler-1", '"scheduler-1" is none of 1 replicas'),
        ("2", "scheduler-x7k", "does not end in"),
        ("2", "", "does not end in"),
    ],
)
def test_replicas_without_a_number_are_refused(count: str, name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ring_of({"MULTI_SCHEDULER_ENABLE": "true", "SCHEDULER_NUM": count, "SCHEDULER_POD_NAME": name})


def test_storage_capacity_is_asked_for_unless_it_is_told_not_to_be() -> None:
    assert settings().options.storage_capacity and not settings("--csi-storage=false").options.storage_capacity


def test_probes_are_served_over_https_if_all_three_files_are_given(tmp_path: Path) -> None:
    authority = Authority(time.time(), days=1)
    pair = authority.issue("server", "localhost")
    files = {"tls-cert-file": pair.certificate, "tls-private-key-file": pair.key, "ca-cert-file": authority.pem}
    flags = [f"--{name}={tmp_path / name}" for name in files]
    with pytest.raises(InputError, match="cannot be used"):
        settings(*flags)
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    assert settings(*flags).tls is not None and settings(*flags[:2]).tls is None
