"""`pumice queue`: Volcano's queues, with vcctl's commands, flags and columns.

The PodGroups of each phase in a queue are counted here, as in vcctl since 1.11: the queue's status no longer has these numbers.
"""

from collections import Counter
from typing import Any

import click

from pumice.api.defaults import DEFAULT_QUEUE
from pumice.api.kinds import POD_GROUPS, QUEUES, ObjectRef
from pumice.api.quantity import format_bytes, format_milli, quantity
from pumice.cli.bus_commands import order
from pumice.cli.live_cluster import Remote, listed, name_option, output_option, print_all, remote_options
from pumice.cli.tables import print_table, say
from pumice.client.client import Client
from pumice.client.failures import ApiError
from pumice.client.transport import ListScope, PatchType, as_dict
from pumice.text_table import wide_columns

PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
BYTES = ("memory", "ephemeral-storage")
AMOUNTS = (("Used", 8), ("Deserved", 10), ("Capability", 12), ("Waiting", 8))
COLUMNS = (("Name", 25), ("Weight", 8), ("State", 8), *((phase, 8) for phase in PHASES))

one_queue = name_option("-n", "the queue")


@click.group()
def queue() -> None:
    """Create, look at, open, close and delete Volcano's queues."""


@queue.command()
@remote_options
@one_queue
@click.option("-w", "--weight", default=1, show_default=True, help="Its share beside other queues.")
@click.option("-S", "--state", type=click.Choice(["Open", "Closed"]), default="Open", show_default=True, help="Its state.")
def create(remote: Remote, name: str, weight: int, state: str) -> None:
    """Create a queue."""

    async def make(client: Client) -> None:
        spec = {"weight": weight}
        body = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": spec, "status": {"state": state}}
        await client.create(QUEUES, body)
        say(f"queue.scheduling.volcano.sh/{name} created")
        if state == "Closed":  # servers ignore the status of an object that is created
            await order(client, QUEUES, ObjectRef(name), "CloseQueue")

    remote.run(make)


@queue.command("list")
@remote_options
@output_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
def list_(remote: Remote, output: str | None, names: tuple[str, ...]) -> None:
    """List queues, all or those named, and how many PodGroups they have; with -o wide what they use, deserve, may use and wait for."""

    async def both(client: Client) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        return await listed(client, ListScope(QUEUES)), await _groups(client)

    found, groups = remote.run(both)
    found = [item for item in found if not names or item["metadata"]["name"] in names]
    if output in ("json", "yaml", "name"):
        print_all(QUEUES, found, output)
    else:
        print_table(_table(found, groups, wide=output == "wide") if found else "No resources found")


@queue.command()
@remote_options
@one_queue
def get(remote: Remote, name: str) -> None:
    """Show one queue."""

    async def both(client: Client) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        return as_dict(await client.get(QUEUES, ObjectRef(name))), await _groups(client)

    found, groups = remote.run(both)
    print_table(_table([found], groups))


async def _groups(client: Client) -> list[dict[str, Any]]:
    """All PodGroups; none if this user may not list them."""
    try:
        return await listed(client, ListScope(POD_GROUPS))
    except ApiError as error:
        if error.code != 403:
            raise
        say(f"PodGroups are not counted: {error.message}", err=True)
        return []


def _table(found: list[dict[str, Any]], groups: list[dict[str, Any]], *, wide: bool = False) -> str:
    places = [(_queue_of(group), (group.get("status") or {}).get("phase") or "Pending") for group in groups]
    counts = Counter(places)
    rows: list[list[object]] = []
    for item in found:
        name, spec, status = item["metadata"]["name"], item.get("spec") or {}, item.get("status") or {}
        row = [name, spec.get("weight") or 0, status.get("state") or "", *(counts[name, phase] for phase in PHASES)]
        if wide:
            waiting = [
                group for group, place in zip(groups, places, strict=True) if place[0] == name and place[1] in ("Pending", "Inqueue")
            ]
            row += [_amounts(status.get("allocated")), _amounts(spec.get("deserved")), _amounts(spec.get("capability")), _asked(waiting)]
        rows.append(row)
    return wide_columns((*COLUMNS, *AMOUNTS) if wide else COLUMNS, rows)


def _queue_of(group: dict[str, Any]) -> str:
    return str((group.get("spec") or {}).get("queue") or DEFAULT_QUEUE)


def _amounts(found: dict[str, Any] | None) -> str:
    """A resource list as text such as `cpu=4,memory=8Gi`, without zero amounts; "-" if none is left."""
    return ",".join(f"{name}={amount}" for name, amount in sorted((found or {}).items()) if quantity(amount).milli) or "-"


def _asked(groups: list[dict[str, Any]]) -> str:
    """The sum of the minResources of these PodGroups, as text."""
    sums: Counter[str] = Counter()
    for group in groups:
        for name, amount in ((group.get("spec") or {}).get("minResources") or {}).items():
            sums[name] += quantity(amount).milli
    return _amounts({name: format_bytes(milli / 1000) if name in BYTES else format_milli(milli) for name, milli in sums.items()})


@queue.command()
@remote_options
@one_queue
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
    say(f"queue.scheduling.volcano.sh/{name} patched")


@queue.command()
@remote_options
@one_queue
def delete(remote: Remote, name: str) -> None:
    """Delete a queue."""
    remote.run(lambda client: client.delete(QUEUES, ObjectRef(name)))
    say(f'queue.scheduling.volcano.sh "{name}" deleted')
