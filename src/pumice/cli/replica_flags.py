"""The flags that Volcano's three programs share, for `pumice scheduler`, `pumice controllers` and `pumice webhooks`."""

import asyncio
import logging
import ssl
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

import click

from pumice.api import InputError
from pumice.cli.go_flags import Command, Decorator, go_program, seconds, switch, verbosity
from pumice.cli.number_ranges import Finite
from pumice.client.access import Access
from pumice.client.leader_election import Term
from pumice.client.resolve_access import find
from pumice.live.lifecycle import LostLead

log = logging.getLogger(__name__)

SHARED: tuple[Decorator, ...] = (
    click.option("--kubeconfig", default="", help="A kubeconfig file. Default: KUBECONFIG, ~/.kube/config, the pod's service account."),
    click.option("--master", default="", help="The API server's URL, in place of the kubeconfig's."),
    click.option("--context", default="", help="The kubeconfig's context to use."),
    click.option("--scheduler-name", "names", multiple=True, help="Pods with this schedulerName are ours. May be repeated. [volcano]"),
    click.option("--kube-api-qps", type=Finite(), default=2000.0, show_default=True, help="Writes a second."),
    click.option("--kube-api-burst", type=Finite(), default=2000.0, show_default=True, help="Writes at once."),
    switch("--enable-healthz", False, "Serve /healthz, /livez and /readyz at --healthz-address."),
    click.option("--healthz-address", default=":11251", show_default=True),
    click.option("--logging-format", type=click.Choice(["logfmt", "text", "json"]), default="logfmt", show_default=True),
    verbosity,
)

ELECTION: tuple[Decorator, ...] = (
    switch("--leader-elect", True, "Several replicas may run; one of them leads."),
    seconds("--leader-elect-lease-duration", "15s", "A lease not renewed for so long may be taken."),
    seconds("--leader-elect-renew-deadline", "10s", "A leader that cannot renew for so long stops."),
    seconds("--leader-elect-retry-period", "2s", "Between tries."),
    click.option("--leader-elect-resource-namespace", default="", help="The Lease's namespace. [volcano-system]"),
    click.option("--lock-object-namespace", default="", help="The old name of the flag above."),
)

PROBES_TLS: tuple[Decorator, ...] = (
    click.option("--tls-cert-file", default="", help="With the two files below, probes are served over HTTPS."),
    click.option("--tls-private-key-file", default=""),
    click.option("--ca-cert-file", default=""),
)
LOG_FILES = dict.fromkeys(("log-dir", "log-file"), "the log goes to standard error")  #: flags of Go's logging that would change that


def options(own: tuple[Decorator, ...], not_needed: Mapping[str, str]) -> Decorator:
    """A decorator that adds the shared flags, the flags of one program, and those that are accepted but not needed."""

    def decorate(command: Command) -> Command:
        command = go_program(command)
        for name in (*not_needed, *LOG_FILES):
            command = click.option(f"--{name}", default=None, is_flag=False, flag_value="true", hidden=True)(command)
        for option in reversed((*SHARED, *own)):
            command = option(command)
        return command

    return decorate


def tell_of(flags: Mapping[str, Any], not_needed: Mapping[str, str]) -> None:
    """Log which arguments were not read, and which of the given flags have no effect, and why."""
    for sentence in flags["not_read"]:
        log.warning("%s", sentence)
    for name, reason in {**not_needed, **LOG_FILES}.items():
        if flags[name.replace("-", "_")] is not None:
            log.info("--%s is not needed: %s", name, reason)


def term_of(flags: Mapping[str, Any]) -> Term | None:
    """The times of the leader election; None if it is switched off. Raises InputError."""
    if not flags["leader_elect"]:
        return None
    try:
        return Term(int(flags["leader_elect_lease_duration"]), flags["leader_elect_renew_deadline"], flags["leader_elect_retry_period"])
    except ValueError as error:
        raise InputError(str(error), where="--leader-elect-lease-duration") from None


def lock_namespace(flags: Mapping[str, Any]) -> str:
    return str(flags["leader_elect_resource_namespace"] or flags["lock_object_namespace"] or "volcano-system")


def probes_tls(flags: Mapping[str, Any]) -> ssl.SSLContext | None:
    """The TLS context of the probes, if all flags of PROBES_TLS are given, as in Volcano; else None. Raises InputError."""
    if not (flags["tls_cert_file"] and flags["tls_private_key_file"] and flags["ca_cert_file"]):
        return None
    context = own_tls(flags)
    try:
        context.load_verify_locations(Path(flags["ca_cert_file"]))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"cannot be used: {error}", where="--ca-cert-file") from None
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def own_tls(flags: Mapping[str, Any]) -> ssl.SSLContext:
    """A TLS context with the certificate and key of the flags. Raises InputError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(Path(flags["tls_cert_file"]), Path(flags["tls_private_key_file"]))
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"cannot be used: {error}", where="--tls-cert-file") from None
    return context


def access_of(flags: Mapping[str, Any]) -> Access:
    """The API server that the flags mean. Raises InputError."""
    return find(flags["kubeconfig"], context=flags["context"], master=flags["master"])


def until_signal(serve: Coroutine[Any, Any, None], loop: type[asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop) -> None:
    """Run a replica on a new event loop until a signal ends it. If it loses the lead, exit with a message."""
    try:
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(serve)
    except LostLead:
        sys.exit("the lead was lost")
