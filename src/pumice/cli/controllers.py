"""`pumice controllers`: Volcano's controllers on a live cluster, in place of vc-controller-manager."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import click

from pumice.api.errors import InputError, did_you_mean
from pumice.api.json_objects import Key
from pumice.api.kinds import ObjectRef
from pumice.cli.go_flags import GoCommand, switch
from pumice.cli.replica_flags import (
    ELECTION,
    PROBES_TLS,
    access_of,
    lock_namespace,
    options,
    probes_tls,
    tell_of,
    term_of,
    until_told,
)
from pumice.controllers.volcano.hypernode import HyperNodeDiscovery, HyperNodeTree, by_labels
from pumice.controllers.volcano.job.controller import MAX_FAILURES
from pumice.live.controllers.process import ControllerReplica, ControllerSettings
from pumice.live.lifecycle import set_up

CONTROLLERS = {
    "gc-controller": ("job-ttl",),
    "job-controller": ("job",),
    "jobflow-controller": ("jobflow",),
    "jobtemplate-controller": ("jobtemplate",),
    "pg-controller": ("podgroup",),
    "queue-controller": ("queue",),
    "cronjob-controller": ("cronjob.batch.volcano.sh",),
    "hyperNode-controller": ("hypernode-count", "hypernode-discovery"),
}  #: by Volcano's name of a controller, our names of the controllers that do its work
NOT_HERE = ("sharding-controller", "colocation-config-controller", "resourcequota-controller")  #: accepted, but we have none of them

NOT_NEEDED = {
    "worker-threads": "32 objects are worked on at a time",
    "worker-threads-for-podgroup": "32 objects are worked on at a time",
    "worker-threads-for-queue": "32 objects are worked on at a time",
    "worker-threads-for-gc": "32 objects are worked on at a time",
    "worker-threads-for-cronjob": "32 objects are worked on at a time",
    "feature-gates": "what gates switch on is on",
    "resync-period": "watches are never replayed; a dead one is noticed by its silence",
    "leader-elect-resource-lock": "only leases are served by API servers of today",
    "sharding-configmap": "there is no sharding controller",
    "sharding-configmap-namespace": "there is no sharding controller",
    "scheduler-configs": "there is no sharding controller",
    "shard-sync-period": "there is no sharding controller",
    "enable-node-event-trigger": "there is no sharding controller",
}

OWN = (
    *ELECTION,
    click.option("--leader-elect-resource-name", default="vc-controller-manager", show_default=True, help="The Lease's name."),
    click.option("--controllers", "chosen", default="*", show_default=True, help="Which to run: *, +name or name, -name; by commas."),
    click.option("--max-requeue-num", type=int, default=MAX_FAILURES, show_default=True, help="So many failures in a row end a job."),
    switch("--inherit-owner-annotations", True, "PodGroups of plain pods take over the annotations of the pods' owners."),
    click.option("--topology", "topologies", multiple=True, help="name=label,label: find HyperNodes by node labels, the widest first."),
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
    until_told(ControllerReplica(access_of(flags), settings).serve())


def settings_of(flags: dict[str, Any]) -> ControllerSettings:
    namespace = lock_namespace(flags)
    return ControllerSettings(
        scheduler_names=tuple(flags["names"]) or ("volcano",),
        chosen=chosen(flags["chosen"].split(",")),
        inherit_owner_annotations=flags["inherit_owner_annotations"],
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
        if name not in CONTROLLERS and name not in NOT_HERE and name != "*":
            raise InputError(f'"{name}" is not a controller{did_you_mean(name, CONTROLLERS)}', where="--controllers")
        meant = {each for names in CONTROLLERS.values() for each in names} if name == "*" else set(CONTROLLERS.get(name, ()))
        kept = kept - meant if word.startswith("-") else kept | meant
    return frozenset(kept)


def _config_map(namespace: str) -> Key:
    """The ConfigMap with volcano-controller.conf. The Deployment's environment states its namespace, and the release in its name."""
    release = os.environ.get("HELM_RELEASE_NAME") or "volcano"
    return Key(os.environ.get("KUBE_POD_NAMESPACE") or namespace, f"{release}-controller-configmap")


def _topology(text: str) -> HyperNodeTree:
    name, equals, labels = text.partition("=")
    if not equals or not name or not all(labels.split(",")):
        raise InputError(f'"{text}" is not a topology; write one such as "network=example.org/spine,example.org/leaf"', where="--topology")
    return by_labels(name, tuple(labels.split(",")))
