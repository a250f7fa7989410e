"""A live cluster as input: every kind that scheduling reads is listed, and nothing is written."""

from __future__ import annotations

import click

from pumice.api.kinds import CONFIG_MAPS
from pumice.api.read import Objects, read_stream
from pumice.cli.remote import Remote
from pumice.kube.client import Client
from pumice.kube.errors import ApiError
from pumice.kube.transport import Scope
from pumice.live.sources import EVERY, SELDOM_SERVED

CONFIGURATION = Scope(CONFIG_MAPS, field_selector="metadata.name=volcano-scheduler-configmap")


def read_cluster(objects: Objects, kubeconfig: str, context: str) -> None:
    """Add what the cluster holds. A kind that the server does not know has no objects. Raises InputError, ClickException."""

    async def read(client: Client) -> None:
        for scope in (*map(Scope, EVERY), *(() if objects.configurations else (CONFIGURATION,))):
            await _read(client, scope, objects)

    objects.whole = True
    Remote(kubeconfig, context, "").run(read)


async def _read(client: Client, scope: Scope, objects: Objects) -> None:
    resource = scope.resource
    try:
        async for page in client.pages(scope):
            head = b'{"apiVersion":"%b","kind":"%bList","items":[' % (resource.api_version.encode(), resource.kind.encode())
            read_stream(head + b",".join(map(bytes, page.items)) + b"]}", resource.plural, objects)
    except ApiError as error:
        if error.code == 403:
            objects.whole = False
            click.echo(f"{resource.plural} are not read: {error.message}", err=True)
        elif error.code != 404:
            raise


def names() -> str:
    """The kinds as kubectl is told them, but for what few servers have; those of custom definitions with their group, which
    others may have names for, too."""
    listed = (each for each in EVERY if each not in SELDOM_SERVED)
    return ",".join(f"{each.plural}.{each.group}" if each.group.endswith("volcano.sh") else each.plural for each in listed)
