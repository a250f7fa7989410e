"""Makes API servers call the webhooks: configurations are created, or given the authority where a chart created them.

In a configuration that is there only the authority is changed, of the webhooks that point to our path, and the address if a URL was
given. Names, selectors and policies are the administrator's.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Any

from pumice.api.kinds import ObjectRef
from pumice.kube.errors import ApiError
from pumice.kube.transport import Transport, as_dict
from pumice.live.webhooks.hooks import Caller, Hook, configuration

log = logging.getLogger(__name__)
TRIES = 5


async def register(transport: Transport, hooks: Sequence[Hook], caller: Caller, authority: bytes, *, create: bool = True) -> None:
    """Give configurations our authority, and perhaps create those that are missing. Raises KubeError."""
    for hook in hooks:
        for left in reversed(range(TRIES)):
            try:
                await _register(transport, hook, caller, authority, create)
                break
            except ApiError as error:
                if error.code != 409 or not left:  # another replica is at it
                    raise


async def _register(transport: Transport, hook: Hook, caller: Caller, authority: bytes, create: bool) -> None:
    ref = ObjectRef(caller.configuration(hook))
    try:
        found = as_dict(await transport.get(hook.resource, ref))
    except ApiError as error:
        if error.code != 404:
            raise
        if create:
            await transport.create(hook.resource, configuration(hook, caller, authority))
            log.info("%s %s was created", hook.resource.kind, ref)
        return
    if _trusting(found, hook, caller, authority):
        await transport.update(hook.resource, ref, found)
        log.info("%s %s was given our authority", hook.resource.kind, ref)


def _trusting(found: dict[str, Any], hook: Hook, caller: Caller, authority: bytes) -> bool:
    """Put the authority, and a URL if we have one, where they belong; whether that changed anything."""
    bundle = base64.b64encode(authority).decode()
    changed = False
    for webhook in found.get("webhooks") or ():
        client = webhook["clientConfig"]
        path = (client.get("service") or {}).get("path") or client.get("url") or ""
        wanted = caller.client(hook, authority) if caller.url else {**client, "caBundle": bundle}
        if path.endswith(hook.path) and client != wanted:
            webhook["clientConfig"] = wanted
            changed = True
    return changed
