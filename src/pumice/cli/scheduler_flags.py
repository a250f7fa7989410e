"""The flags of vc-scheduler, as `pumice scheduler` takes them.

Each has the meaning that Volcano gives it, or stands in NOT_NEEDED with a line that says why nothing is lost: a Deployment made for
vc-scheduler needs another image and nothing else.
"""

from __future__ import annotations

import click

from pumice.api.names import DEFAULT_QUEUE
from pumice.cli.go_flags import Decorator, seconds, switch
from pumice.cli.replica_flags import ELECTION, PROBES_TLS

NOT_NEEDED = {
    "resync-period": "watches are never replayed; a dead one is noticed by its silence",
    "node-worker-threads": "nodes are taken over by one thread",
    "gate-removal-worker-num": "gates are removed by the loop",
    "percentage-nodes-to-find": "every node is scored",
    "minimum-percentage-nodes-to-find": "every node is scored",
    "minimum-feasible-nodes": "every node is scored",
    "ignored-provisioners": "CSI volumes are counted by CSINode",
    "feature-gates": "what gates switch on is on",
    "leader-elect-resource-lock": "only leases are served by API servers of today",
    "enable-pprof": "there is no Go to profile; see /debug/state and /metrics",
    "disable-default-scheduler-config": "a --scheduler-conf that cannot be read always ends the start",
}

OWN: tuple[Decorator, ...] = (
    click.option("--scheduler-conf", default="", help="The configuration file; read again when it changes. Default: a built-in one."),
    seconds("--schedule-period", "1s", "Waiting pods are looked at again after so long; news are answered at once."),
    click.option(
        "--default-queue", default=DEFAULT_QUEUE, show_default=True, help="Created at the start; for PodGroups that name no queue."
    ),
    click.option("--node-selector", "node_selector", multiple=True, help="label:value; only nodes with any of these are used."),
    click.option("--plugins-dir", default=None, help="A folder of Python files with plugins."),
    seconds("--resource-sync-timeout", "60s", "How long resources that can be done without are waited for."),
    switch("--priority-class", True, "Read PriorityClasses; without, every job has priority 0."),
    switch("--csi-storage", True, "Volumes are made only where their driver publishes room for them."),
    *ELECTION,
    click.option("--leader-elect-resource-name", default="volcano", show_default=True, help="The Lease's name."),
    switch("--enable-metrics", False, "Serve /metrics and /debug/state at --listen-address."),
    click.option("--listen-address", default=":8080", show_default=True),
    *PROBES_TLS,
    click.option("--page-address", default="", help="Serve the page, read-only, at this address of loopback: 127.0.0.1:7480."),
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
    switch("--strict", False, "Warnings about the configuration are errors."),
)
