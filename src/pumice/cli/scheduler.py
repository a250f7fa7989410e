"""`pumice scheduler`: Volcano's scheduler, or kube-scheduler, or both, on a live cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import click

from pumice.actions.registry import actions
from pumice.api.errors import InputError
from pumice.api.kinds import ObjectRef
from pumice.cli.loading import read_file
from pumice.cli.replica_flags import access_of, lock_namespace, options, probes_tls, tell_of, term_of, until_told
from pumice.cli.scheduler_flags import NOT_NEEDED, OWN
from pumice.config.reading import config_text, read_configurations, schedulers_of
from pumice.config.volcano import DEFAULT
from pumice.framework.policy import Policy
from pumice.live.logs import set_up
from pumice.live.loop import Scheduler
from pumice.live.options import Options, Sharding
from pumice.live.process import Replica, Settings
from pumice.live.ring import Ring, numbered
from pumice.plugins.registry import plugins
from pumice.web.loopback import NAMES_OF_LOOPBACK

log = logging.getLogger(__name__)


@click.command()
@options(OWN, NOT_NEEDED)
def scheduler(**flags: Any) -> None:
    """Schedule the pods of a live cluster, in the place of vc-scheduler: its flags, its configuration, its objects."""
    set_up(flags["logging_format"], flags["verbosity"])
    tell_of(flags, NOT_NEEDED)
    configuration = Configuration(flags["scheduler_conf"], flags["plugins_dir"], flags["strict"])
    names = flags["names"] or schedulers_of(configuration.load())
    until_told(Replica(access_of(flags), settings_of(flags, names, configuration)).serve())


class Configuration:
    """The file of --scheduler-conf, or the built-in configuration."""

    def __init__(self, path: str, plugins_dir: str | None, strict: bool) -> None:
        self._path = path
        self._plugins_dir = plugins_dir
        self._strict = strict
        self._text = DEFAULT  #: as last taken over

    def text(self) -> str:
        return self._text

    def load(self) -> Policy:
        """Read it. Raises InputError."""
        text = read_file(self._path) if self._path else DEFAULT
        found = [config_text(text, self._path or "built-in configuration")]
        policy, warnings = read_configurations(found, plugins(self._plugins_dir), strict=self._strict, actions=actions(self._plugins_dir))
        for warning in warnings:
            log.warning("%s", warning)
        self._text = text
        return policy


def settings_of(flags: dict[str, Any], names: tuple[str, ...], configuration: Configuration) -> Settings:
    ring = ring_of(os.environ)
    return Settings(
        options=Options(
            schedulers=tuple(names),
            default_queue=flags["default_queue"],
            period_s=flags["schedule_period"],
            sync_timeout_s=flags["resource_sync_timeout"],
            node_labels=tuple(_label(text) for text in flags["node_selector"]),
            priority_classes=flags["priority_class"],
            storage_capacity=flags["csi_storage"],
            sharding=Sharding(flags["scheduler_sharding_mode"], flags["scheduler_sharding_name"], ring),
        ),
        load=configuration.load,
        configuration=configuration.text,
        conf_path=flags["scheduler_conf"],
        qps=flags["kube_api_qps"],
        burst=flags["kube_api_burst"],
        term=term_of(flags),
        lock=ObjectRef(_lock_name(flags["leader_elect_resource_name"], ring), lock_namespace(flags)),
        metrics_address=flags["listen_address"] if flags["enable_metrics"] else "",
        healthz_address=flags["healthz_address"] if flags["enable_healthz"] else "",
        tls=probes_tls(flags),
        dump_folder=flags["cache_dump_dir"] if flags["cache_dumper"] else "",
        beside=page_at(flags["page_address"]),
    )


def page_at(address: str) -> Callable[[Scheduler], AbstractAsyncContextManager[object]]:
    """It has no users, so it is for this machine; kubectl port-forward leads there. Raises InputError."""
    if not address:
        return nullcontext
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or host not in NAMES_OF_LOOPBACK:
        raise InputError(f'"{address}" is no address of loopback; write 127.0.0.1:7480', where="--page-address")
    from pumice.page.server import Page

    return lambda scheduler: Page(scheduler, address)


def ring_of(environment: Mapping[str, str]) -> Ring | None:
    """The replicas that share the work, as Volcano's variables say it; None if there is but one, or one that leads. Raises InputError."""
    if environment.get("MULTI_SCHEDULER_ENABLE") != "true":
        return None
    count = environment.get("SCHEDULER_NUM") or "1"
    if not count.isdecimal() or not int(count):
        raise InputError(f'"{count}" is not a number of replicas', where="SCHEDULER_NUM")
    try:
        return numbered(environment.get("SCHEDULER_POD_NAME", ""), int(count))
    except ValueError as error:
        raise InputError(str(error), where="SCHEDULER_POD_NAME") from None


def _lock_name(name: str, ring: Ring | None) -> str:
    """Replicas that all work do not compete for one lease; a replica and its successor do."""
    return name if ring is None else f"{name}-{ring.mine.rpartition('-')[2]}"


def _label(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not key:
        raise InputError(f'"{text}" is not a label; write it as "label:value"', where="--node-selector")
    return key.strip(), value.strip()
