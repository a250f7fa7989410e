"""`pumice controllers`: Volcano's controllers on a live cluster, in place of vc-controller-manager."""

import logging
import os
from collections.abc import Iterable
from typing import Any

import click

from pumice.api import InputError, Key, did_you_mean
from pumice.api.kinds import ObjectRef
from pumice.cli.go_flags import GoCommand, seconds, switch
from pumice.cli.replica_flags import ELECTION, PROBES_TLS, access_of, lock_namespace, options, probes_tls, tell_of, term_of, until_signal
from pumice.controllers.volcano.hypernode_discovery import HyperNodeDiscovery
from pumice.controllers.volcano.hypernode_tree import HyperNodeTree, by_labels
from pumice.controllers.volcano.job.controller import MAX_FAILURES
from pumice.controllers.volcano.sharding import CONFIG_MAP, DEFAULT_SHARDS, NodeShards, ShardingSettings, of_flag
from pumice.live.controllers.controller_replica import ControllerReplica, ControllerSettings
from pumice.live.log_format import set_up

log = logging.getLogger(__name__)

CONTROLLERS = {
    "gc-controller": ("job-ttl",),
    "job-controller": ("job",),
    "jobflow-controller": ("jobflow",),
    "jobtemplate-controller": ("jobtemplate",),
    "pg-controller": ("podgroup",),
    "queue-controller": ("queue",),
    "cronjob-controller": ("cronjob.batch.volcano.sh",),
    "hyperNode-controller": ("hypernode-count", "hypernode-discovery"),
    "sharding-controller": ("sharding",),
}  #: by Volcano's name of a controller, our names of the controllers that do its work
DEFAULT = "*,-sharding-controller"
NOT_HERE = {
    "colocation-config-controller": "ColocationConfigurations are carried out by Volcano's node agent; run Volcano's controller for them"
}  #: Volcano's controllers that we do not have, and what to do instead

NOT_NEEDED = {
    "worker-threads": "32 objects are worked on at a time",
    "worker-threads-for-podgroup": "32 objects are worked on at a time",
    "worker-threads-for-queue": "32 objects are worked on at a time",
    "worker-threads-for-gc": "32 objects are worked on at a time",
    "worker-threads-for-cronjob": "32 objects are worked on at a time",
    "feature-gates": "what gates switch on is on",
    "resync-period": "watches are never replayed; a dead one is noticed by its silence",
    "leader-elect-resource-lock": "only leases are served by API servers of today",
}

OWN = (
    *ELECTION,
    click.option("--leader-elect-resource-name", default="vc-controller-manager", show_default=True, help="The Lease's name."),
    click.option(
        "--controllers",
        "chosen",
        multiple=True,
        default=[DEFAULT],
        show_default=True,
        help="Which to run: *, +name or name, -name; by commas.",
    ),
    click.option("--max-requeue-num", type=int, default=MAX_FAILURES, show_default=True, help="So many failures in a row end a job."),
    switch("--inherit-owner-annotations", True, "PodGroups of plain pods take over the annotations of the pods' owners."),
    switch("--gangs-of-others", True, "Native PodGroups, JobSets, RayClusters and the like get PodGroups: docs/gangs-of-others.md."),
    click.option("--topology", "topologies", multiple=True, help="name=label,label: find HyperNodes by node labels, the widest first."),
    click.option("--sharding-configmap", default=CONFIG_MAP.name, show_default=True, help="The ConfigMap of the sharding controller."),
    click.option("--sharding-configmap-namespace", default=CONFIG_MAP.namespace, show_default=True, help="Its namespace."),
    click.option(
        "--scheduler-configs",
        multiple=True,
        default=[",".join(DEFAULT_SHARDS)],
        show_default=True,
        help="Without that ConfigMap: name:type:minCPU:maxCPU:preferWarmup:minNodes:maxNodes; by commas.",
    ),
    seconds("--shard-sync-period", "60s", "How often the sharding controller decides anew."),
    switch("--enable-node-event-trigger", True, "It decides anew when nodes change, too."),
    switch("--enable-metrics", False, "Serve /metrics at --listen-address."),
    click.option("--listen-address", default=":8081", show_default=True),
    *PROBES_TLS,
)


@click.command(cls=GoCommand)
@options(OWN, NOT_NEEDED)
def controllers(**flags: Any) -> None:
    """Run Volcano's controllers, in the place of vc-controller-manager: its flags, its objects."""
    set_up(flags["logging_format"], flags["verbosity"])
    tell_of(flags, NOT_NEEDED)
    settings = settings_of(flags)
    until_signal(ControllerReplica(access_of(flags), settings).serve())


def settings_of(flags: dict[str, Any]) -> ControllerSettings:
    namespace, kept = lock_namespace(flags), chosen(",".join(flags["chosen"]).split(","))
    return ControllerSettings(
        scheduler_names=tuple(flags["names"]) or ("volcano",),
        chosen=kept,
        sharding=_sharding(flags) if kept is None or "sharding" in kept else None,
        inherit_owner_annotations=flags["inherit_owner_annotations"],
        gangs_of_others=flags["gangs_of_others"],
        max_failures=flags["max_requeue_num"],
        discovery=HyperNodeDiscovery([_topology(text) for text in flags["topologies"]], _config_map(namespace)),
        qps=flags["kube_api_qps"],
        burst=flags["kube_api_burst"],
        term=term_of(flags),
        lock=ObjectRef(flags["leader_elect_resource_name"], namespace),
        metrics_address=flags["listen_address"] if flags["enable_metrics"] else "",
        healthz_address=flags["healthz_address"] if flags["enable_healthz"] else "",
        tls=probes_tls(flags),
    )


def chosen(words: Iterable[str]) -> frozenset[str] | None:
    """Our names of the controllers that --controllers chooses; None for all. Raises InputError."""
    words = [word.strip() for word in words if word.strip()]
    if words == ["*"]:
        return None
    kept: set[str] = set()
    for word in words:
        name = word.lstrip("+-")
        if name != "*" and name not in CONTROLLERS:
            _tell_of_unknown(name, is_left_out=word.startswith("-"))
        meant = {each for names in CONTROLLERS.values() for each in names} if name == "*" else set(CONTROLLERS.get(name, ()))
        kept = kept - meant if word.startswith("-") else kept | meant
    return frozenset(kept)


def _tell_of_unknown(name: str, *, is_left_out: bool) -> None:
    """Warn of a controller that we do not have, as a newer chart may name one. Raises InputError if it is to run and looks misspelt."""
    meant = did_you_mean(name, CONTROLLERS)
    if name in NOT_HERE:
        if not is_left_out:
            log.warning("--controllers: there is no %s here: %s", name, NOT_HERE[name])
    elif meant and not is_left_out:
        raise InputError(f'"{name}" is not a controller{meant}', where="--controllers")
    else:
        log.warning("--controllers: there is no %s here%s", name, meant)


def _sharding(flags: dict[str, Any]) -> NodeShards:
    stated = [text for texts in flags["scheduler_configs"] for text in texts.split(",") if text.strip()]
    settings = ShardingSettings(tuple(map(of_flag, stated)), flags["shard_sync_period"], flags["enable_node_event_trigger"])
    return NodeShards(settings, Key(flags["sharding_configmap_namespace"], flags["sharding_configmap"]))


def _config_map(namespace: str) -> Key:
    """The ConfigMap with volcano-controller.conf. The Deployment's environment states its namespace, and the release in its name."""
    release = os.environ.get("HELM_RELEASE_NAME") or "volcano"
    return Key(os.environ.get("KUBE_POD_NAMESPACE") or namespace, f"{release}-controller-configmap")


def _topology(text: str) -> HyperNodeTree:
    name, equals, labels = text.partition("=")
    if not equals or not name or not all(labels.split(",")):
        raise InputError(f'"{text}" is not a topology; write one such as "network=example.org/spine,example.org/leaf"', where="--topology")
    return by_labels(name, tuple(labels.split(",")))
