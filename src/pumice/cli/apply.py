"""`pumice apply -f`: create or change objects as files state them, for machines without kubectl.

This is server-side apply with the field manager "pumice": fields that the files no longer name are removed, and fields of other managers
are taken over, as with kubectl's ordinary apply. CustomResourceDefinitions come first and are waited for, so that one call may bring
kinds and objects of these kinds.
"""

import asyncio
from typing import Any

import click

from pumice.api import InputError
from pumice.api.kinds import ObjectRef
from pumice.cli.live_cluster import Remote, namespaced_options
from pumice.cli.manifests_to_send import Manifest, manifests
from pumice.cli.tables import say
from pumice.client.client import Client
from pumice.client.discovery import ServedResource, discover, of_kind
from pumice.client.failures import despite
from pumice.client.transport import as_dict

MANAGER = "pumice"
FIRST = ("CustomResourceDefinition", "Namespace")  #: kinds that other objects in the same files may need
ESTABLISHED_TRIES, ESTABLISHED_PAUSE_S = 50, 0.2


@click.command()
@namespaced_options
@click.option(
    "-f",
    "--filename",
    "paths",
    type=click.Path(),
    multiple=True,
    required=True,
    help='A file, a folder, or "-" for standard input; repeatable.',
)
def apply(remote: Remote, namespace: str | None, paths: tuple[str, ...]) -> None:
    """Create or change objects so that they are as files say."""
    wanted = list(manifests(paths))
    if not wanted:
        raise InputError("no objects found in what was given", where="--filename")
    wanted.sort(key=lambda item: FIRST.index(item["kind"]) if item["kind"] in FIRST else len(FIRST))

    defined = {(item.get("spec") or {}).get("group") for item in wanted if item["kind"] == FIRST[0]}

    async def make(client: Client) -> None:
        served = await discover(client)
        for item in wanted:
            if item["apiVersion"].partition("/")[0] in defined and not _has(served, item):
                served = await _once_served(client, item)
            await _apply(client, item, served, remote, namespace)

    remote.run(make)


def _has(served: list[ServedResource], item: Manifest) -> bool:
    return any(one.resource.api_version == item["apiVersion"] and one.resource.kind == item["kind"] for one in served)


async def _once_served(client: Client, item: Manifest) -> list[ServedResource]:
    """The server's resources, once the item's kind is among them or the time is up: a new kind takes a moment to be served."""
    for _ in range(ESTABLISHED_TRIES):
        served = await discover(client)
        if _has(served, item):
            break
        await asyncio.sleep(ESTABLISHED_PAUSE_S)
    return served


async def _apply(client: Client, item: Manifest, served: list[ServedResource], remote: Remote, namespace: str | None) -> None:
    one = of_kind(item["apiVersion"], item["kind"], served)
    metadata = item["metadata"]
    name = metadata.get("name")
    if not name:
        raise InputError("is missing; generateName is for create only", where=item["kind"], field="metadata.name")
    where = ""
    if one.resource.namespaced:
        where = remote.namespace(metadata.get("namespace") or namespace)
        if namespace and where != namespace:
            raise InputError(f'{one.title} {name} is for namespace "{where}", and "{namespace}" was asked for', where="--namespace")
        metadata["namespace"] = where
    ref = ObjectRef(name, where)
    before = await _version(client, one, ref)
    after = as_dict(await client.apply(one.resource, ref, item, MANAGER))["metadata"]["resourceVersion"]
    say(f"{one.title}/{name} {'created' if before is None else 'unchanged' if before == after else 'configured'}")


async def _version(client: Client, one: ServedResource, ref: ObjectRef) -> Any:
    with despite(404):
        return as_dict(await client.get(one.resource, ref))["metadata"]["resourceVersion"]
    return None
