"""The webhooks by path, and the configurations by which an API server calls them: Volcano's names, rules and policies.

`pumice webhooks` serves these paths over HTTPS. The embedded cluster has the same rules behind the same service, without HTTP."""

import base64
from typing import Any

import msgspec

from pumice.api import kinds
from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Kind
from pumice.controllers import admission

TIMEOUT_S = 10
SERVICE = "volcano-admission-service"  #: as Volcano's charts call it


class OwnWebhook(msgspec.Struct, frozen=True):
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


def _hooks() -> list[OwnWebhook]:
    found = []
    for kind, rules in admission.RULES.items():
        word = _WORDS.get(kind, kind.partition(".")[0].lower())
        plural = kinds.named(kind).plural
        if rules.mutate is not None:
            found.append(OwnWebhook(f"/{plural}/mutate", f"mutate{word}.volcano.sh", kind, True, (admission.CREATE,)))
        if rules.validate is not None:
            found.append(OwnWebhook(f"/{plural}/validate", f"validate{word}.volcano.sh", kind, False, tuple(sorted(rules.operations))))
    return found


HOOKS = {hook.path: hook for hook in _hooks()}


class ClientConfig(msgspec.Struct, frozen=True):
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

    def configuration(self, hook: OwnWebhook) -> str:
        """The name of the webhook configuration. It begins with the name of our service."""
        return f"{self.service or SERVICE}{hook.path.replace('/', '-')}"

    def configurations(self, hook: OwnWebhook) -> tuple[str, ...]:
        """The names under which it may be found: ours, and that of Volcano's charts, which is the same whatever the release is called."""
        return tuple(dict.fromkeys((self.configuration(hook), ClientConfig().configuration(hook))))

    def is_called_by(self, client: dict[str, Any]) -> bool:
        """Whether a webhook's clientConfig names our service."""
        service = client.get("service") or {}
        return bool(self.service) and (service.get("namespace"), service.get("name")) == (self.namespace, self.service)

    def client(self, hook: OwnWebhook, authority: bytes) -> dict[str, Any]:
        bundle = {"caBundle": base64.b64encode(authority).decode()} if authority else {}
        if self.url:
            return {"url": self.url.rstrip("/") + hook.path, **bundle}
        return {"service": {"name": self.service, "namespace": self.namespace, "path": hook.path, "port": 443}, **bundle}


def configuration(hook: OwnWebhook, config: ClientConfig, authority: bytes) -> dict[str, Any]:
    """The whole webhook configuration, for a cluster that has none yet."""
    resource = kinds.named(hook.kind)
    spared = [name for name in (config.namespace, "kube-system") if name]
    webhook: dict[str, Any] = {
        "name": hook.name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": config.client(hook, authority),
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
    head = {"apiVersion": hook.resource.api_version, "kind": hook.resource.kind, "metadata": {"name": config.configuration(hook)}}
    return {**head, "webhooks": [webhook]}
