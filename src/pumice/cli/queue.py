"""`pumice queue`: Volcano's queues, with vcctl's commands, flags and columns.

How many PodGroups of each phase a queue has is counted here, as in vcctl since 1.11: the queue's status no longer says it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import click

from pumice.cli.orders import order
from pumice.cli.remote import Remote, listed, remote_options
from pumice.kube.client import Client
from pumice.kube.errors import ApiError
from pumice.kube.resource import POD_GROUPS, QUEUES, ObjectRef
from pumice.kube.transport import PatchType, Scope, as_dict
from pumice.report.columns import wide_columns

PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
COLUMNS = (("Name", 25), ("Weight", 8), ("State", 8), *((phase, 8) for phase in PHASES))

name_option = click.option("-n", "--name", required=True, help="The queue's name.")


@click.group()
def queue() -> None:
    """Create, look at, open, close and delete Volcano's queues."""


@queue.command()
@remote_options
@name_option
@click.option("-w", "--weight", default=1, show_default=True, help="Its share beside other queues.")
@click.option("-S", "--state", type=click.Choice(["Open", "Closed"]), default="Open", show_default=True, help="Its state.")
def create(remote: Remote, name: str, weight: int, state: str) -> None:
    """Create a queue."""

    async def make(client: Client) -> None:
        spec = {"weight": weight}
        body = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": spec, "status": {"state": state}}
        await client.create(QUEUES, body)
        click.echo(f"queue.scheduling.volcano.sh/{name} created")
        if state == "Closed":  # servers leave out the status of what is created
            await order(client, QUEUES, ObjectRef(name), "CloseQueue")

    remote.run(make)


@queue.command("list")
@remote_options
def list_(remote: Remote) -> None:
    """List queues and how many PodGroups they have."""

    async def ask(client: Client) -> list[dict[str, Any]]:
        return await listed(client, Scope(QUEUES))

    async def both(client: Client) -> tuple[list[dict[str, Any]], Counter[tuple[str, str]]]:
        return await ask(client), await _groups(client)

    found, groups = remote.run(both)
    click.echo(_table(found, groups) if found else "No resources found")


@queue.command()
@remote_options
@name_option
def get(remote: Remote, name: str) -> None:
    """Show one queue."""

    async def both(client: Client) -> tuple[dict[str, Any], Counter[tuple[str, str]]]:
        return as_dict(await client.get(QUEUES, ObjectRef(name))), await _groups(client)

    found, groups = remote.run(both)
    click.echo(_table([found], groups))


async def _groups(client: Client) -> Counter[tuple[str, str]]:
    """PodGroups by queue and phase; none where this user may not list them."""
    try:
        groups = await listed(client, Scope(POD_GROUPS))
    except ApiError as error:
        if error.code != 403:
            raise
        click.echo(f"PodGroups are not counted: {error.message}", err=True)
        return Counter()
    places = ((group.get("spec") or {}, group.get("status") or {}) for group in groups)
    return Counter((spec.get("queue") or "default", status.get("phase") or "Pending") for spec, status in places)


def _table(found: list[dict[str, Any]], groups: Counter[tuple[str, str]]) -> str:
    rows = []
    for item in found:
        name, spec, status = item["metadata"]["name"], item.get("spec") or {}, item.get("status") or {}
        rows.append([name, spec.get("weight") or 0, status.get("state") or "", *(groups[name, phase] for phase in PHASES)])
    return wide_columns(COLUMNS, rows)


@queue.command()
@remote_options
@name_option
@click.option("-a", "--action", type=click.Choice(["open", "close", "update"]), required=True, help="What to do.")
@click.option("-w", "--weight", type=click.IntRange(1), help="The new weight; with update.")
def operate(remote: Remote, name: str, action: str, weight: int | None) -> None:
    """Open or close a queue, or change its weight."""
    ref = ObjectRef(name)
    if action != "update":
        remote.run(lambda client: order(client, QUEUES, ref, f"{action.title()}Queue"))
        return
    if weight is None:
        raise click.UsageError("update needs a weight; add -w/--weight")
    remote.run(lambda client: client.patch(QUEUES, ref, {"spec": {"weight": weight}}, PatchType.MERGE, repeatable=True))
    click.echo(f"queue.scheduling.volcano.sh/{name} patched")


@queue.command()
@remote_options
@name_option
def delete(remote: Remote, name: str) -> None:
    """Delete a queue."""
    remote.run(lambda client: client.delete(QUEUES, ObjectRef(name)))
    click.echo(f'queue.scheduling.volcano.sh "{name}" deleted')
