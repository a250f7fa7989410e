"""The flags of vc-scheduler, as `pumice scheduler` takes them.

Each has the meaning that Volcano gives it, or stands in NOT_NEEDED with a line that says why nothing is lost: a Deployment made for
vc-scheduler needs another image and nothing else.
"""

from __future__ import annotations

import click

from pumice.cli.go_flags import Command, go_program, seconds, switch, verbosity

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
FLAGS_WITHOUT_VALUE = ("enable-pprof", "disable-default-scheduler-config")


OPTIONS = (
    click.option("--kubeconfig", default="", help="A kubeconfig file. Default: KUBECONFIG, ~/.kube/config, the pod's service account."),
    click.option("--master", default="", help="The API server's URL, in place of the kubeconfig's."),
    click.option("--context", default="", help="The kubeconfig's context to use."),
    click.option("--scheduler-conf", default="", help="The configuration file; read again when it changes. Default: a built-in one."),
    click.option("--scheduler-name", "names", multiple=True, help="Pods with this schedulerName are ours. May be repeated. [volcano]"),
    seconds("--schedule-period", "1s", "Waiting pods are looked at again after so long; news are answered at once."),
    click.option("--default-queue", default="default", show_default=True, help="Created at the start; for PodGroups that name no queue."),
    click.option("--node-selector", "node_selector", multiple=True, help="label:value; only nodes with any of these are used."),
    click.option("--plugins-dir", default=None, help="A folder of Python files with plugins."),
    click.option("--kube-api-qps", type=float, default=2000.0, show_default=True, help="Writes a second."),
    click.option("--kube-api-burst", type=float, default=2000.0, show_default=True, help="Writes at once."),
    seconds("--resource-sync-timeout", "60s", "How long resources that can be done without are waited for."),
    switch("--priority-class", True, "Read PriorityClasses; without, every job has priority 0."),
    switch("--csi-storage", True, "Volumes are made only where their driver publishes room for them."),
    switch("--leader-elect", True, "Several replicas may run; one of them leads."),
    seconds("--leader-elect-lease-duration", "15s", "A lease not renewed for so long may be taken."),
    seconds("--leader-elect-renew-deadline", "10s", "A leader that cannot renew for so long stops."),
    seconds("--leader-elect-retry-period", "2s", "Between tries."),
    click.option("--leader-elect-resource-name", default="volcano", show_default=True, help="The Lease's name."),
    click.option("--leader-elect-resource-namespace", default="", help="The Lease's namespace. [volcano-system]"),
    click.option("--lock-object-namespace", default="", help="The old name of the flag above."),
    switch("--enable-metrics", False, "Serve /metrics and /debug/state at --listen-address."),
    click.option("--listen-address", default=":8080", show_default=True),
    switch("--enable-healthz", False, "Serve /healthz, /livez and /readyz at --healthz-address."),
    click.option("--healthz-address", default=":11251", show_default=True),
    click.option("--tls-cert-file", default="", help="With the two files below, probes are served over HTTPS."),
    click.option("--tls-private-key-file", default=""),
    click.option("--ca-cert-file", default=""),
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
    click.option("--logging-format", type=click.Choice(["logfmt", "text", "json"]), default="logfmt", show_default=True),
    verbosity,
    switch("--strict", False, "Warnings about the configuration are errors."),
)


def scheduler_options(command: Command) -> Command:
    """All of OPTIONS, and those that are accepted and not needed, hidden."""
    for name, reason in NOT_NEEDED.items():
        option = (
            switch(f"--{name}", False, reason)
            if name in FLAGS_WITHOUT_VALUE
            else click.option(f"--{name}", multiple=True, expose_value=True, hidden=True)
        )
        command = option(command)
    for given in reversed(OPTIONS):
        command = given(command)
    return go_program(command)
