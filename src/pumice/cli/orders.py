"""Orders to jobs and queues: Command objects, which the controllers take and follow, as vcctl gives them."""

from __future__ import annotations

from typing import Any

import click

from pumice.api.kinds import COMMANDS, Kind, ObjectRef
from pumice.kube.client import Client
from pumice.kube.transport import as_dict


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
