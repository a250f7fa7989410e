"""The registration of our webhooks with an API server.

To make API servers call the webhooks, configurations are created, or get our certificate authority where a chart created them. The role
says whose they are: with the right to create them missing ones are created at the start. Without it, as in our chart and manifests, which
have the configurations themselves, missing ones are waited for. In an existing configuration only the webhooks that point to our path are
changed: they get the authority, and the address if a URL was given. Names, selectors and policies belong to the administrator.
"""

import base64
import logging
from collections.abc import Sequence
from enum import Enum
from typing import Any

from pumice.api.kinds import ObjectRef
from pumice.client.failures import ApiError, despite
from pumice.client.transport import Transport, as_dict
from pumice.controllers.admission.webhooks import ClientConfig, OwnWebhook, configuration

log = logging.getLogger(__name__)
TRIES = 5


class _Outcome(Enum):
    AS_IT_WAS = ""
    TRUSTED = "these webhook configurations were given our authority"
    CREATED = "these webhook configurations were created"
    MISSING = "missing"


async def register(
    transport: Transport, hooks: Sequence[OwnWebhook], config: ClientConfig, authority: bytes, *, create: bool = True
) -> list[str]:
    """Write our authority into the configurations, and with `create` create missing ones. Return the names of those that are missing
    because our role does not let us create them. Raises KubeError."""
    found: dict[_Outcome, list[str]] = {outcome: [] for outcome in _Outcome}
    for hook in hooks:
        for left in reversed(range(TRIES)):
            try:
                outcome, name = await _register(transport, hook, config, authority, create)
                found[outcome].append(name)
                break
            except ApiError as error:
                if error.code != 409 or not left:  # at 409 another replica writes it too
                    raise
    for outcome in (_Outcome.CREATED, _Outcome.TRUSTED):
        if found[outcome]:
            log.info("%s: %s", outcome.value, ", ".join(found[outcome]))
    return found[_Outcome.MISSING]


async def _register(transport: Transport, hook: OwnWebhook, config: ClientConfig, authority: bytes, create: bool) -> tuple[_Outcome, str]:
    """What became of a webhook's configuration, and its name."""
    found = await _found(transport, hook, config)
    if found is None:
        outcome = await _created(transport, hook, config, authority) if create else _Outcome.AS_IT_WAS
        return outcome, config.configuration(hook)
    name = found["metadata"]["name"]
    if not _trusting(found, hook, config, authority):
        return _Outcome.AS_IT_WAS, name
    await transport.update(hook.resource, ObjectRef(name), found)
    return _Outcome.TRUSTED, name


async def _found(transport: Transport, hook: OwnWebhook, config: ClientConfig) -> dict[str, Any] | None:
    """The configuration of the webhook, made by whomever. One under Volcano's name may be another's: it must call our service."""
    for name in config.configurations(hook):
        try:
            found = as_dict(await transport.get(hook.resource, ObjectRef(name)))
        except ApiError as error:
            if error.code != 404:
                raise
            continue
        if name == config.configuration(hook) or any(config.is_called_by(each["clientConfig"]) for each in found.get("webhooks") or ()):
            return found
    return None


async def _created(transport: Transport, hook: OwnWebhook, config: ClientConfig, authority: bytes) -> _Outcome:
    with despite(403):
        await transport.create(hook.resource, configuration(hook, config, authority))
        return _Outcome.CREATED
    return _Outcome.MISSING


def _trusting(found: dict[str, Any], hook: OwnWebhook, config: ClientConfig, authority: bytes) -> bool:
    """Put the authority, and our URL if we have one, into the found configuration, and return whether that changed anything."""
    bundle = base64.b64encode(authority).decode()
    changed = False
    for webhook in found.get("webhooks") or ():
        client = webhook["clientConfig"]
        path = (client.get("service") or {}).get("path") or client.get("url") or ""
        wanted = config.client(hook, authority) if config.url else {**client, "caBundle": bundle}
        if path.endswith(hook.path) and client != wanted:
            webhook["clientConfig"] = wanted
            changed = True
    return changed
