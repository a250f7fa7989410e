"""The webhooks by path, and the configurations by which an API server calls them: Volcano's names, rules and policies."""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Kind, ObjectRef
from pumice.client.transport import ApiError, Transport, as_dict
from pumice.controllers import admission
from pumice.live.object_cache import RESOURCES

TIMEOUT_S = 10
SERVICE = "volcano-admission-service"  #: as Volcano's charts call it


class Webhook(msgspec.Struct, frozen=True):
    """A webhook, which is served at one path."""

    path: str  #: such as "/queues/validate"
    name: str  #: such as "validatequeue.volcano.sh"; refusals show it
    kind: str
    mutating: bool
    operations: tuple[str, ...]

    @property
    def resource(self) -> Kind:
        """The kind of the configuration that registers the webhook."""
        return MUTATING_WEBHOOKS if self.mutating else VALIDATING_WEBHOOKS


_WORDS = {kinds.HYPER_NODE: "hypernodes"}  #: the word for a kind in names of webhooks, where it is not the kind in lower case


def _hooks() -> list[Webhook]:
    found = []
    for kind, rules in admission.RULES.items():
        word = _WORDS.get(kind, kind.partition(".")[0].lower())
        plural = RESOURCES[kind].plural
        if rules.mutate is not None:
            found.append(Webhook(f"/{plural}/mutate", f"mutate{word}.volcano.sh", kind, True, (admission.CREATE,)))
        if rules.validate is not None:
            found.append(Webhook(f"/{plural}/validate", f"validate{word}.volcano.sh", kind, False, tuple(sorted(rules.operations))))
    return found


HOOKS = {hook.path: hook for hook in _hooks()}


class Caller(msgspec.Struct, frozen=True):
    """How an API server reaches us: a service, or a URL for servers that run outside of the cluster."""

    namespace: str = ""
    service: str = ""
    url: str = ""

    @property
    def known(self) -> bool:
        return bool(self.url or (self.namespace and self.service))

    @property
    def service_hosts(self) -> tuple[str, ...]:
        """The DNS names of the service. The first of them is the one that API servers use."""
        name = f"{self.service}.{self.namespace}"
        return (f"{name}.svc", name, self.service, f"{name}.svc.cluster.local")

    def configuration(self, hook: Webhook) -> str:
        """The name of the webhook configuration. It begins with the name of our service, which in charts does not depend on the release."""
        return f"{self.service or SERVICE}{hook.path.replace('/', '-')}"

    def client(self, hook: Webhook, authority: bytes) -> dict[str, Any]:
        bundle = {"caBundle": base64.b64encode(authority).decode()}
        if self.url:
            return {"url": self.url.rstrip("/") + hook.path, **bundle}
        return {"service": {"name": self.service, "namespace": self.namespace, "path": hook.path, "port": 443}, **bundle}


def configuration(hook: Webhook, caller: Caller, authority: bytes) -> dict[str, Any]:
    """The whole webhook configuration, for a cluster that has none yet."""
    resource = RESOURCES[hook.kind]
    spared = [name for name in (caller.namespace, "kube-system") if name]
    webhook: dict[str, Any] = {
        "name": hook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": caller.client(hook, authority),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "NotIn", "values": spared}]},
        "rules": [
            {
                "apiGroups": [resource.group],
                "apiVersions": [resource.version],
                "resources": [resource.plural],
                "operations": list(hook.operations),
                "scope": "*",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
    }
    if hook.mutating:
        webhook["reinvocationPolicy"] = "Never"
    head = {"apiVersion": hook.resource.api_version, "kind": hook.resource.kind, "metadata": {"name": caller.configuration(hook)}}
    return {**head, "webhooks": [webhook]}


# To make API servers call the webhooks, configurations are created, or get our certificate authority where a chart created them.
#
# The role says whose they are: with the right to create them, as in the plain manifests, missing ones are created at the start. Without it,
# as in a chart, which removes what it has made when it is uninstalled, missing ones are waited for. In an existing configuration only the
# webhooks that point to our path are changed: they get the authority, and the address if a URL was given. Names, selectors and policies
# belong to the administrator.

log = logging.getLogger(__name__)
TRIES = 5


async def register(transport: Transport, hooks: Sequence[Webhook], caller: Caller, authority: bytes, *, create: bool = True) -> list[str]:
    """Write our authority into the configurations, and with `create` create missing ones. Return the names of those that are missing
    because our role does not let us create them. Raises KubeError."""
    missing = []
    for hook in hooks:
        for left in reversed(range(TRIES)):
            try:
                if not await _register(transport, hook, caller, authority, create):
                    missing.append(caller.configuration(hook))
                break
            except ApiError as error:
                if error.code != 409 or not left:  # at 409 another replica writes it too
                    raise
    return missing


async def _register(transport: Transport, hook: Webhook, caller: Caller, authority: bytes, create: bool) -> bool:
    """Whether the configuration trusts us now, or is left missing on purpose."""
    ref = ObjectRef(caller.configuration(hook))
    try:
        found = as_dict(await transport.get(hook.resource, ref))
    except ApiError as error:
        if error.code != 404:
            raise
        return not create or await _created(transport, hook, caller, authority)
    if _trusting(found, hook, caller, authority):
        await transport.update(hook.resource, ref, found)
        log.info("%s %s was given our authority", hook.resource.kind, ref)
    return True


async def _created(transport: Transport, hook: Webhook, caller: Caller, authority: bytes) -> bool:
    try:
        await transport.create(hook.resource, configuration(hook, caller, authority))
    except ApiError as error:
        if error.code != 403:
            raise
        return False
    log.info("%s %s was created", hook.resource.kind, caller.configuration(hook))
    return True


def _trusting(found: dict[str, Any], hook: Webhook, caller: Caller, authority: bytes) -> bool:
    """Put the authority, and our URL if we have one, into the found configuration, and return whether that changed anything."""
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
