"""A live cluster as input: all objects of the kinds that scheduling reads are listed, and nothing is written."""

from __future__ import annotations

import click

from pumice.api.kinds import CONFIG_MAPS, EVENTS
from pumice.api.manifests import Objects, read_stream
from pumice.cli.remote import Remote
from pumice.client.client import Client
from pumice.client.transport import ApiError, ListScope
from pumice.live.scheduler.sources import EVERY, SELDOM_SERVED
from pumice.scheduler.framework.past_evictions import EVICTION_REASONS

EVICTIONS = [ListScope(EVENTS, field_selector=f"reason={reason}") for reason in EVICTION_REASONS]
CONFIGURATION = ListScope(CONFIG_MAPS, field_selector="metadata.name=volcano-scheduler-configmap")


def read_cluster(objects: Objects, remote: Remote, *, events: bool = False) -> None:
    """Add the cluster's objects to `objects`. A kind that the server does not know has no objects. Raises InputError, ClickException."""

    async def read(client: Client) -> None:
        for scope in (*map(ListScope, EVERY), *(() if objects.configurations else (CONFIGURATION,))):
            await _read(client, scope, objects)
        for scope in EVICTIONS if events else ():
            await _read(client, scope, objects)

    objects.whole = True
    remote.run(read)


async def _read(client: Client, scope: ListScope, objects: Objects) -> None:
    resource = scope.resource
    try:
        async for page in client.pages(scope):
            head = b'{"apiVersion":"%b","kind":"%bList","items":[' % (resource.api_version.encode(), resource.kind.encode())
            read_stream(head + b",".join(map(bytes, page.items)) + b"]}", resource.plural, objects)
    except ApiError as error:
        if error.code == 403:
            objects.whole = objects.whole and resource == EVENTS
            click.echo(f"{resource.plural} are not read: {error.message}", err=True)
        elif error.code != 404:
            raise


def names() -> str:
    """The kinds as an argument for kubectl, without those that few servers serve. Custom kinds have their group, since other groups may
    use the same names."""
    listed = (each for each in EVERY if each not in SELDOM_SERVED)
    return ",".join(f"{each.plural}.{each.group}" if each.group.endswith("volcano.sh") else each.plural for each in listed)
