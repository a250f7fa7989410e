"""Orders to jobs and queues: Command objects, as vcctl creates them; the controllers carry them out and delete them."""

from typing import Any

from pumice.api.kinds import COMMANDS, Kind, ObjectRef
from pumice.cli.tables import say
from pumice.client.client import Client
from pumice.client.transport import as_dict


async def order(client: Client, resource: Kind, ref: ObjectRef, action: str) -> None:
    """Order an action for this object. The Command has the object's uid, so a later object of the same name is not affected."""
    target = as_dict(await client.get(resource, ref))
    owner = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": ref.name,
        "uid": target["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    namespace = ref.namespace or "default"  # queues have no namespace, but Commands need one
    command: dict[str, Any] = {
        "apiVersion": COMMANDS.api_version,
        "kind": COMMANDS.kind,
        "metadata": {"generateName": f"{ref.name}-{action.lower()}-", "namespace": namespace, "ownerReferences": [owner]},
        "target": owner,
        "action": action,
    }
    made = as_dict(await client.create(COMMANDS, command, namespace))
    say(f"command.bus.volcano.sh/{made['metadata']['name']} created")
