"""The name of the one object that a command is about, as an argument or with the flag that vcctl has for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

from pumice.api.kinds import COMMANDS, Kind, ObjectRef
from pumice.client.client import Client
from pumice.client.transport import as_dict

Command = Callable[..., Any]


def name_option(letter: str, what: str) -> Callable[[Command], Command]:
    """Gives a command `name`: `job view train` and `job view -N train` are the same."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_name(*args: Any, word: str | None, name: str | None, **rest: Any) -> Any:
            if (word is None) == (name is None):
                raise click.UsageError(f"say {what}'s name, and once: as an argument or with {letter}/--name")
            return command(*args, name=word or name, **rest)

        option = click.option(letter, "--name", help=f"{what.capitalize()}'s name; or as an argument.")
        return click.argument("word", metavar="[NAME]", required=False)(option(with_name))

    return decorate


# Orders to jobs and queues: Command objects, which the controllers take and follow, as vcctl gives them.


async def order(client: Client, resource: Kind, ref: ObjectRef, action: str) -> None:
    """Order an action of the object as it is now: a new one under its name is not meant."""
    target = as_dict(await client.get(resource, ref))
    owner = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": ref.name,
        "uid": target["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    namespace = ref.namespace or "default"  # queues have none, Commands must
    command: dict[str, Any] = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {"generateName": f"{ref.name}-{action.lower()}-", "namespace": namespace, "ownerReferences": [owner]},
        "target": owner,
        "action": action,
    }
    made = as_dict(await client.create(COMMANDS, command, namespace))
    click.echo(f"command.bus.volcano.sh/{made['metadata']['name']} created")
