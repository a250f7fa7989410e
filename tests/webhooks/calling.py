"""The webhook server beside an embedded API server, and calls as an API server makes them."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from pumice.cli.webhooks import hooks_of
from pumice.client.access import Access, Fixed
from pumice.cluster.apiserver.admission.attributes import UserInfo
from pumice.cluster.apiserver.patches.json_patch import json_patch
from pumice.controllers.admission import Settings as Rules
from pumice.controllers.admission.webhooks import HOOKS, SERVICE, ClientConfig
from pumice.live.webhooks.server import WebhookReplica, WebhookSettings
from tests.live_controllers.scene import Scene

CALLER = ClientConfig("volcano-system", "volcano-admission-service")
HOSTS = ("volcano-admission-service.volcano-system.svc", "localhost", "127.0.0.1")


def review(operation: str, new: dict[str, Any] | None, old: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    body = {"uid": "u-1", "operation": operation, "object": new, "oldObject": old, **request}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": body}


class Called:
    """Posts reviews, trusting only what the configurations say."""

    def __init__(self, replica: WebhookReplica, stage: Scene) -> None:
        self.replica = replica
        self._stage = stage

    def authority(self, name: str = "volcano-admission-service-queues-validate") -> bytes:
        found = self._stage.find("validatingwebhookconfigurations.admissionregistration.k8s.io", name, "")
        assert found is not None
        return base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])

    async def raw(self, path: str, body: bytes) -> tuple[int, bytes]:
        trust = ssl.create_default_context(cadata=self.authority().decode())
        async with aiohttp.ClientSession() as session:
            url = f"https://127.0.0.1:{self.replica.port}{path}?timeout=10s"
            async with session.post(url, data=body, ssl=trust, server_hostname=HOSTS[0]) as answer:
                return answer.status, await answer.read()

    async def __call__(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        status, answer = await self.raw(path, json.dumps(body).encode())
        assert status == 200, answer
        found = json.loads(answer)
        assert (found["apiVersion"], found["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: dict[str, Any] = found["response"]
        assert response["uid"] == body["request"]["uid"]
        return response

    async def mutated(self, path: str, subject: dict[str, Any]) -> Any:
        """The object as the answer's patch makes it."""
        response = await self(path, review("CREATE", subject))
        assert response["allowed"]
        return json_patch(subject, json.loads(base64.b64decode(response["patch"]))) if "patch" in response else subject


def prepare(stage: Scene) -> None:
    """The namespace for Volcano. The server itself asks nobody about its writes: the tests make the calls."""
    stage.create("namespaces", {"metadata": {"name": "volcano-system"}}, "")
    stage.store.webhooks.services[("volcano-system", SERVICE)] = lambda path, review: None


LISTER = {"lister-token": UserInfo("lister", ("system:authenticated",))}


def allow_listing(stage: Scene, *, creates: bool = True) -> None:
    """The lister may list queues and namespaces but not watch them, as Volcano's webhook manager may; it `creates` configurations."""
    lists = {"apiGroups": ["scheduling.volcano.sh", ""], "resources": ["queues", "namespaces"], "verbs": ["get", "list"]}
    keeps = {"apiGroups": [""], "resources": ["*"], "verbs": ["get", "create", "update"]}
    configures = {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["get", "update"] + ["create"] * creates}
    subject = {"kind": "User", "name": "lister", "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "lister"}
    stage.create("clusterroles.rbac.authorization.k8s.io", {"metadata": {"name": "lister"}, "rules": [lists, keeps, configures]}, "")
    binding = {"metadata": {"name": "lister"}, "subjects": [subject], "roleRef": reference}
    stage.create("clusterrolebindings.rbac.authorization.k8s.io", binding, "")


@asynccontextmanager
async def served(stage: Scene, rules: Rules | None = None, *, token: str = "", url: str = "", **settings: Any) -> AsyncIterator[Called]:
    """All webhooks, until the block ends; with the rights of a token, by default all rights. `url`: of what stands before the server."""
    chosen = {"hooks": hooks_of(",".join(HOOKS)), "address": ("127.0.0.1", 0), "client_config": CALLER, "hosts": HOSTS, **settings}
    access = Access(url or stage.server.url, Fixed(f"Bearer {token or stage.server.token}"))
    replica = WebhookReplica(access, WebhookSettings(rules=lambda: rules or Rules(), **chosen))
    serving = asyncio.create_task(replica.serve())
    waiting = asyncio.create_task(replica.listening.wait())
    try:
        await asyncio.wait([serving, waiting], return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield Called(replica, stage)
    finally:
        waiting.cancel()
        serving.cancel()
        await asyncio.gather(serving, waiting, return_exceptions=True)
