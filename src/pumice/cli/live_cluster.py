"""What commands need to use a live cluster: the options, a client that lives as long as the command, and failures as one clear line.

    @click.command()
    @remote_options
    def command(remote: Remote, ...):
        remote.run(lambda client: story(client, ...))

The flags are vcctl's: -k/--kubeconfig and -s/--master; --context comes from kubectl. The exit code is 1 if the server
refuses a request or does not answer, and 2 for wrong input, as everywhere.
"""

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import click

from pumice.api.kinds import Kind
from pumice.cli.data_dir import DataDir
from pumice.cli.tables import say
from pumice.client.access import Access
from pumice.client.client import Client
from pumice.client.failures import ApiError, KubeError
from pumice.client.kubeconfig import files
from pumice.client.resolve_access import find
from pumice.client.transport import ListScope, as_dict

KUBECONFIG_HELP = "Path of the kubeconfig. Default: KUBECONFIG, then ~/.kube/config, then that of `pumice up`."

T = TypeVar("T")
Command = Callable[..., Any]


class Remote:
    """The cluster that the options mean. The constructor reads no file and sends nothing."""

    def __init__(self, kubeconfig: str, context: str, master: str) -> None:
        self._where = {"kubeconfig": kubeconfig, "context": context, "master": master}

    @functools.cached_property
    def access(self) -> Access:
        kubeconfig = self._where["kubeconfig"] or _of_our_own(self._where["master"])
        return find(kubeconfig, context=self._where["context"], master=self._where["master"])

    def namespace(self, asked: str | None, everywhere: bool = False) -> str:
        """The namespace that was asked for, else that of the kubeconfig; "" for all namespaces."""
        return "" if everywhere else asked or self.access.namespace

    def run(self, story: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
        warnings: list[str] = []

        async def connected() -> T:
            async with Client(self.access, warned=warnings.append) as client:
                try:
                    return await story(client)
                finally:
                    for warning in dict.fromkeys(warnings):
                        say(f"Warning: {warning}", err=True)

        try:
            return asyncio.run(connected())
        except KubeError as error:
            raise click.ClickException(explained(error, self.access.server)) from None
        except KeyboardInterrupt:
            raise SystemExit(130) from None


def _of_our_own(master: str) -> str:
    """The kubeconfig of the cluster that `pumice up` runs for this user, if nothing names another cluster; else empty."""
    place = DataDir()
    named = master or "KUBERNETES_SERVICE_HOST" in os.environ or files("", dict(os.environ))
    return str(place.kubeconfig) if not named and place.holder() is not None else ""


def explained(error: KubeError, server: str) -> str:
    """The message for a failure, in kubectl's words."""
    if isinstance(error, ApiError):
        return f"from server ({error.reason}): {error.message}" if error.reason else f"from server: {error.message}"
    return f"{server} did not answer: {error}"


def remote_options(command: Command) -> Command:
    """Give a command the options that name a cluster; it gets them as its first argument, a `Remote`."""

    @functools.wraps(command)
    def with_remote(kubeconfig: str, context: str, master: str, **rest: Any) -> None:
        command(Remote(kubeconfig, context, master), **rest)

    options = (
        click.option("-s", "--master", default="", help="The API server's URL, in place of the kubeconfig's."),
        click.option("--context", default="", help="The context of the kubeconfig to use."),
        click.option("-k", "--kubeconfig", type=click.Path(), default="", help=KUBECONFIG_HELP),
    )
    return functools.reduce(lambda decorated, option: option(decorated), options, with_remote)


namespace_option = click.option("-n", "--namespace", help="The namespace. Default: the context's.")


def namespaced_options(command: Command) -> Command:
    """Give a command the options that name a cluster and a namespace in it."""
    return remote_options(namespace_option(command))


output_option = click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml", "name"]), help="Another form than the table.")
everywhere_option = click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="All namespaces.")


def print_all(resource: Kind, items: list[dict[str, Any]], output: str) -> None:
    """Print objects of one resource as names, or as a List in JSON or YAML."""
    from pumice.cli.server_table import print_objects
    from pumice.client.discovery import ServedResource

    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    print_objects([(ServedResource(resource), head | item) for item in items], output)


async def listed(client: Client, scope: ListScope) -> list[dict[str, Any]]:
    """All objects of a scope, sorted by namespace and name."""
    found = [as_dict(raw) async for page in client.pages(scope, limit=500) for raw in page.items]
    return sorted(found, key=lambda item: (item["metadata"].get("namespace") or "", item["metadata"]["name"]))


def name_option(letter: str, what: str) -> Callable[[Command], Command]:
    """Give a command its `name`, as an argument or an option: `job view train` and `job view -N train` are the same. As for kubectl, it may
    have its kind before it (`job/train`); if the command has a namespace, it may have that as well (`team/train`, `job/team/train`)."""
    kind = what.removeprefix("the ")

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_name(*args: Any, word: str | None, name: str | None, **rest: Any) -> Any:
            if (word is None) == (name is None):
                raise click.UsageError(f"say {what}'s name, and once: as an argument or with {letter}/--name")
            *before, given = str(word or name).split("/")
            if before and before[0] in (kind, f"{kind}s", f"vc{kind}"):
                del before[0]
            if len(before) > ("namespace" in rest):
                raise click.UsageError(f'"{word or name}" is no {kind}; write NAME or {kind}/NAME')
            return command(*args, name=given, **(rest | ({"namespace": before[0]} if before else {})))

        forms = f"NAME, {kind}/NAME{', NAMESPACE/NAME' if kind == 'job' else ''}"
        option = click.option(letter, "--name", help=f"{what.capitalize()}'s name: {forms}; or as an argument.")
        return click.argument("word", metavar="[NAME]", required=False)(option(with_name))

    return decorate
