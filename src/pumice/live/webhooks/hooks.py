"""The webhooks by path, and the configurations by which an API server calls them: Volcano's names, rules and policies."""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from pumice.api.annotations import NAMESPACE_NAME
from pumice.api.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Kind
from pumice.controllers import admission, kinds
from pumice.live.object_kinds import RESOURCES

TIMEOUT_S = 10
SERVICE = "volcano-admission-service"  #: as Volcano's charts call it


class Hook(msgspec.Struct, frozen=True):
    """One path."""

    path: str  #: such as "/queues/validate"
    name: str  #: such as "validatequeue.volcano.sh", which refusals are told under
    kind: str
    mutating: bool
    operations: tuple[str, ...]

    @property
    def resource(self) -> Kind:
        """Where its configuration lives."""
        return MUTATING_WEBHOOKS if self.mutating else VALIDATING_WEBHOOKS


_WORDS = {kinds.HYPER_NODE: "hypernodes"}  #: in names of webhooks, where it is not the kind in lower case


def _hooks() -> list[Hook]:
    found = []
    for kind, rules in admission.RULES.items():
        word = _WORDS.get(kind, kind.partition(".")[0].lower())
        plural = RESOURCES[kind].plural
        if rules.mutate is not None:
            found.append(Hook(f"/{plural}/mutate", f"mutate{word}.volcano.sh", kind, True, (admission.CREATE,)))
        if rules.validate is not None:
            found.append(Hook(f"/{plural}/validate", f"validate{word}.volcano.sh", kind, False, tuple(sorted(rules.operations))))
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
        """The names of the service, the one that API servers use first."""
        name = f"{self.service}.{self.namespace}"
        return (f"{name}.svc", name, self.service, f"{name}.svc.cluster.local")

    def configuration(self, hook: Hook) -> str:
        """The name of the object that makes API servers call us: after our service, as charts call it whatever the release is called."""
        return f"{self.service or SERVICE}{hook.path.replace('/', '-')}"

    def client(self, hook: Hook, authority: bytes) -> dict[str, Any]:
        bundle = {"caBundle": base64.b64encode(authority).decode()}
        if self.url:
            return {"url": self.url.rstrip("/") + hook.path, **bundle}
        return {"service": {"name": self.service, "namespace": self.namespace, "path": hook.path, "port": 443}, **bundle}


def configuration(hook: Hook, caller: Caller, authority: bytes) -> dict[str, Any]:
    """The whole object, for a cluster that has none yet."""
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
