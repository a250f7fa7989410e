"""`pumice scheduler`: Volcano's scheduler, or kube-scheduler, or both, on a live cluster.

The flags of vc-scheduler, as `pumice scheduler` takes them.
Each flag has the meaning that it has in Volcano, or is listed in NOT_NEEDED with the reason why nothing is lost. So a Deployment made for
vc-scheduler only needs another image.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any

import click

from pumice.api import InputError
from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.files import file_text
from pumice.api.kinds import ObjectRef
from pumice.cli.go_flags import Decorator, GoCommand, seconds, switch
from pumice.cli.inputs import release_of
from pumice.cli.replica_flags import (
    ELECTION,
    PROBES_TLS,
    access_of,
    lock_namespace,
    options,
    own_tls,
    probes_tls,
    tell_of,
    term_of,
    until_signal,
)
from pumice.cli.tables import say
from pumice.extensions import actions, plugins
from pumice.http.messages import NAMES_OF_LOOPBACK
from pumice.live.coalescing_loop import CoalescingLoop
from pumice.live.log_format import set_up
from pumice.live.scheduler.canary_share import CanaryShare, share_of
from pumice.live.scheduler.hash_ring import Ring, numbered
from pumice.live.scheduler.options import Options, Sharding
from pumice.live.scheduler.scheduler_replica import Beside, Replica, SchedulerSettings, WhileWaiting
from pumice.scheduler.config import config_text, read_configurations, schedulers_of
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.feature_gates import DEFAULT as DEFAULT_RELEASE, GATES, MINORS
from pumice.scheduler.framework.policy import Policy

NOT_NEEDED = {
    "resync-period": "watches are never replayed; a dead one is noticed by its silence",
    "node-worker-threads": "nodes are taken over by one thread",
    "gate-removal-worker-num": "gates are removed by the loop",
    "percentage-nodes-to-find": "every node is scored",
    "minimum-percentage-nodes-to-find": "every node is scored",
    "minimum-feasible-nodes": "every node is scored",
    "ignored-provisioners": "CSI volumes are counted by CSINode",
    "leader-elect-resource-lock": "only leases are served by API servers of today",
    "enable-pprof": "there is no Go to profile; see /debug/state and /metrics",
    "disable-default-scheduler-config": "a --scheduler-conf that cannot be read always ends the start",
}

OWN: tuple[Decorator, ...] = (
    click.option("--scheduler-conf", default="", help="The configuration file; read again when it changes. Default: a built-in one."),
    seconds("--schedule-period", "1s", "The longest time between two cycles; a change in the cluster is handled at once."),
    click.option(
        "--default-queue", default=DEFAULT_QUEUE, show_default=True, help="Created at the start; for PodGroups that name no queue."
    ),
    click.option("--node-selector", "node_selector", multiple=True, help="label:value,label:value; only nodes with any of these are used."),
    click.option("--plugins-dir", default=None, help="A folder of Python files with plugins."),
    seconds("--resource-sync-timeout", "60s", "How long resources that can be done without are waited for."),
    switch("--priority-class", True, "Read PriorityClasses; without, every job has priority 0."),
    switch("--csi-storage", True, "Volumes are made only where their driver publishes room for them."),
    *ELECTION,
    click.option("--leader-elect-resource-name", default="volcano", show_default=True, help="The Lease's name."),
    switch("--enable-metrics", False, "Serve /metrics and /debug/state at --listen-address."),
    click.option("--listen-address", default=":8080", show_default=True),
    *PROBES_TLS,
    click.option(
        "--page-address",
        default="",
        help="Serve the page, read-only: at 127.0.0.1:7480; or at :7480, over HTTPS, to those whose token may read.",
    ),
    click.option("--record", "record", default="", help="A folder for recordings of what is seen and decided; see docs/recordings.md."),
    click.option("--prometheus", default="", metavar="URL", help="A Prometheus that reads our metrics: the page's past without --record."),
    click.option("--record-size", type=click.IntRange(1), default=256, show_default=True, help="MiB in that folder; the oldest go."),
    switch("--cache-dumper", True, "SIGUSR1 and SIGUSR2 write the state for `pumice cycle -f`."),
    click.option("--cache-dump-dir", default="/tmp", show_default=True),
    click.option(
        "--scheduler-sharding-mode",
        type=click.Choice(["none", "hard", "soft"]),
        default="none",
        show_default=True,
        help="Use of NodeShards.",
    ),
    click.option("--scheduler-sharding-name", default="volcano", show_default=True, help="Our NodeShard."),
    switch("--shadow", False, "Write nothing; say at the end, and at /debug/shadow, where another scheduler decided otherwise."),
    click.option(
        "--canary", multiple=True, metavar="KIND/NAME", help="queue/NAME or namespace/NAME: write there only; the rest as --shadow."
    ),
    click.option(
        "--check-state-every",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Hold the kept state against a recount once in so many cycles, and end if it differs. 0: never.",
    ),
    switch("--strict", False, "Warnings about the configuration are errors."),
    click.option("--kubernetes-version", default="", help="kube-scheduler's release, whose rules profiles follow. Default: the server's."),
    click.option("--feature-gates", default="", help="kube-scheduler's gates, as GenericWorkload=true. Volcano's are on."),
)
log = logging.getLogger(__name__)


@click.command(cls=GoCommand)
@options(OWN, NOT_NEEDED)
def scheduler(**flags: Any) -> None:
    """Schedule the pods of a live cluster, in the place of vc-scheduler: its flags, its configuration, its objects."""
    set_up(flags["logging_format"], flags["verbosity"])
    tell_of(flags, NOT_NEEDED)
    version, gates = flags["kubernetes_version"], own_gates(flags["feature_gates"])
    configuration = Configuration(flags["scheduler_conf"], flags["plugins_dir"], flags["strict"], version, gates)
    names = flags["names"] or schedulers_of(configuration.load())
    settings = settings_of(flags, names, configuration)
    if flags["shadow"]:
        if flags["canary"]:
            raise InputError("writes for its share, and --shadow nothing: leave one of them out", where="--canary")
        tell_what_a_shadow_lacks(flags)
        from pumice.live.scheduler.shadow_comparison import page
        from pumice.live.scheduler.shadow_replica import ShadowReplica

        say(page(asyncio.run(ShadowReplica(access_of(flags), settings).serve())))
    else:
        replica = Replica(access_of(flags), settings)
        until_signal(replica.serve(), CoalescingLoop)
        if (comparison := replica.comparison) is not None:
            from pumice.live.scheduler.shadow_comparison import page

            say(page(comparison))


def tell_what_a_shadow_lacks(flags: Mapping[str, Any]) -> None:
    for name, instead in {"page-address": "it has no page", "record": "pumice record keeps a recording beside it"}.items():
        if flags[name.replace("-", "_")]:
            log.warning("--%s has no effect on a shadow: %s", name, instead)


def own_gates(text: str) -> str:
    """The gates of kube-scheduler in a --feature-gates. Those of Volcano are passed over: what they switch on is on."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    ours = [part for part in parts if part.partition("=")[0] in GATES]
    if others := [part for part in parts if part not in ours]:
        log.info("--feature-gates: %s has no effect: what gates of Volcano switch on is on", ",".join(others))
    return ",".join(ours)


class Configuration:
    """The scheduler's configuration: the file of --scheduler-conf, or the built-in one. Profiles follow the rules of the release that is
    named, else of the API server's, once that is known."""

    def __init__(self, path: str, plugins_dir: str | None, strict: bool, version: str = "", gates: str = "") -> None:
        self._version, self._gates = version, gates
        self._is_named = bool(version)
        self._path = path
        self._plugins_dir = plugins_dir
        self._strict = strict
        self._text = DEFAULT  #: the text that was last loaded

    def text(self) -> str:
        return self._text

    def load(self) -> Policy:
        """The policy of the configuration, read anew. Raises InputError."""
        text = file_text(self._path) if self._path else DEFAULT
        found = [config_text(text, self._path or "built-in configuration")]
        rules = release_of(self._version or f"1.{MINORS[-1]}", self._gates) if self._version or self._gates else DEFAULT_RELEASE
        policy, warnings = read_configurations(
            found, plugins(self._plugins_dir), strict=self._strict, actions=actions(self._plugins_dir), release=rules
        )
        for warning in warnings:
            log.warning("%s", warning)
        self._text = text
        return policy

    def met(self, version: str) -> bool:
        """Take over the version of the API server, unless a release is named. Return whether the policy must be read anew. Raises
        InputError if the gates are not those of this release."""
        if self._is_named or version == self._version:
            return False
        release_of(version, self._gates)
        self._version = version
        return True


def settings_of(flags: dict[str, Any], names: tuple[str, ...], configuration: Configuration) -> SchedulerSettings:
    ring, share = ring_of(os.environ), share_of(flags["canary"])
    return SchedulerSettings(
        options=Options(
            schedulers=tuple(names),
            default_queue=flags["default_queue"],
            period_s=flags["schedule_period"],
            sync_timeout_s=flags["resource_sync_timeout"],
            node_labels=tuple(_label(text) for texts in flags["node_selector"] for text in texts.split(",")),
            priority_classes=flags["priority_class"],
            storage_capacity=flags["csi_storage"],
            check_every=flags["check_state_every"],
            sharding=Sharding(flags["scheduler_sharding_mode"], flags["scheduler_sharding_name"], ring, share),
        ),
        load=configuration.load,
        configuration=configuration.text,
        met=configuration.met,
        conf_path=flags["scheduler_conf"],
        qps=flags["kube_api_qps"],
        burst=flags["kube_api_burst"],
        term=term_of(flags),
        lock=ObjectRef(_lock_name(flags["leader_elect_resource_name"], ring, share), lock_namespace(flags)),
        metrics_address=flags["listen_address"] if flags["enable_metrics"] else "",
        healthz_address=flags["healthz_address"] if flags["enable_healthz"] else "",
        tls=probes_tls(flags),
        dump_folder=flags["cache_dump_dir"] if flags["cache_dumper"] else "",
        record=flags["record"],
        record_bytes=flags["record_size"] << 20,
        beside=page_at(flags),
        waiting=waiting_page_at(flags),
    )


def page_at(flags: Mapping[str, Any]) -> Beside | None:
    """The page server. On loopback it serves this machine and kubectl port-forward, else users whose token may read. Raises InputError."""
    address = flags["page_address"]
    if not address:
        return None
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal():
        raise InputError(f'"{address}" has no port; write 127.0.0.1:7480', where="--page-address")
    from pumice.page.reader_access import Readers
    from pumice.page.server import PageServer

    past = {"recordings": flags["record"], "prometheus": flags["prometheus"]}
    if host in NAMES_OF_LOOPBACK:
        return lambda scheduler, _: PageServer(scheduler, address, **past)
    if not (flags["tls_cert_file"] and flags["tls_private_key_file"]):
        fault = f'"{address}" is not on loopback, and tokens must not cross a network in the clear'
        raise InputError(f"{fault}; write 127.0.0.1:{port}, or give --tls-cert-file and --tls-private-key-file", where="--page-address")
    tls = own_tls(flags)
    return lambda scheduler, client: PageServer(scheduler, address, readers=Readers(client), tls=tls, **past)


def waiting_page_at(flags: Mapping[str, Any]) -> WhileWaiting | None:
    """What is at the page's address while another replica leads."""
    address, namespace = flags["page_address"], lock_namespace(flags)
    if not address:
        return None
    from pumice.page.standby_page import WaitingPage, address_of

    return lambda client, leader: WaitingPage(address, leader, address_of(client, namespace))


def ring_of(environment: Mapping[str, str]) -> Ring | None:
    """The replicas that share the work, by Volcano's variables; None unless MULTI_SCHEDULER_ENABLE is true. Raises InputError."""
    if environment.get("MULTI_SCHEDULER_ENABLE") != "true":
        return None
    count = environment.get("SCHEDULER_NUM") or "1"
    if not count.isdecimal() or not int(count):
        raise InputError(f'"{count}" is not a number of replicas', where="SCHEDULER_NUM")
    try:
        return numbered(environment.get("SCHEDULER_POD_NAME", ""), int(count))
    except ValueError as error:
        raise InputError(str(error), where="SCHEDULER_POD_NAME") from None


def _lock_name(name: str, ring: Ring | None, share: CanaryShare | None) -> str:
    """The name of the lease. In a ring, only a replica and its successor share one; a canary does not share that of the main scheduler."""
    if share is not None:
        return f"{name}-canary"
    return name if ring is None else f"{name}-{ring.mine.rpartition('-')[2]}"


def _label(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise InputError(f'"{text}" is not a label; write it as "label:value"', where="--node-selector")
    return key.strip(), value.strip()
