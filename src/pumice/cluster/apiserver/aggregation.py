"""Groups of kinds that another server answers for: requests of an APIService's group and version go to the service that it names.

That server is stated the user in headers. It believes them because of the certificate that this server presents, and finds whose
certificate that is in a ConfigMap. Whether it answers is looked at when an APIService or its service changes, and every few seconds.
A request to go on in another protocol (exec, attach, port-forward) becomes a tunnel. OpenAPI v2 has what the other servers' v3 tells.

Each group and version that this server answers for itself has an APIService, too, which is always available.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from pumice.api import InputError, Object, rfc3339
from pumice.api.json_objects import condition
from pumice.api.kinds import API_SERVICES
from pumice.client.certificates import Authority
from pumice.client.tls import KeyPair, Trust
from pumice.cluster.apiserver.admission.attributes import UserInfo
from pumice.cluster.apiserver.discovery import Remote, entries_of
from pumice.cluster.apiserver.metadata import set_identity
from pumice.cluster.apiserver.patches.patch import PatchRequest
from pumice.cluster.apiserver.pending_calls import Unanswered
from pumice.cluster.apiserver.scheme.crd import CRDS
from pumice.cluster.apiserver.status import StatusError, unavailable
from pumice.cluster.apiserver.storage.watch import WatchEvent
from pumice.cluster.apiserver.streams.relay import Relay, switched
from pumice.http.connection import Answer
from pumice.http.connection_pool import ConnectionPool, NotConnected
from pumice.http.messages import Request, Response, Stream, head_of

if TYPE_CHECKING:
    from pumice.cluster.apiserver.store import Store

RESOURCE = API_SERVICES.resource
CONFIGURATION = "extension-apiserver-authentication"  #: the ConfigMap
USER = "front-proxy-client"  #: in the certificate that this server presents
TIMEOUT_S, SILENT_S, CHECK_S = 60.0, 3600.0, 5.0
_MANAGED = "kube-aggregator.kubernetes.io/automanaged"  #: the label of the APIServices that this server makes
_FAILED = (NotConnected, OSError, InputError, ValueError, Unanswered)  # a timeout is an OSError, too
_OURS = ("authorization", "connection", "content-length", "host", "accept-encoding", "transfer-encoding", "upgrade", "expect")


class Aggregation:
    """The other servers. `authority` signs the certificate that they know this server by."""

    def __init__(self, store: Store, authority: Callable[[], Authority]) -> None:
        self._store = store
        self._authority = authority
        self._check: asyncio.Task[None] | None = None
        self.served: Remote = {}  #: what the servers that answer serve

    @cached_property
    def _pair(self) -> KeyPair:
        return self._authority().issue(USER)

    # Requests

    def service_of(self, group: str, version: str) -> Object | None:
        """The APIService of a group and version that another server answers for."""
        found = self._store.find(RESOURCE, "", f"{version}.{group}")
        return found if found is not None and found["spec"].get("service") and not self._store.kinds.serves(group, version) else None

    async def forward(self, request: Request, user: UserInfo, service: Object) -> Response | Stream:
        """The answer of the server that an APIService names. Raises StatusError."""
        try:
            pool, tls = self._reach(service)
            head = _head(request, user)
            if protocol := request.headers.get("upgrade"):
                return await switched(pool, request, head + head_of([("Connection", "Upgrade"), ("Upgrade", protocol)]), tls, TIMEOUT_S)
            if request.method == "GET" and request.flag("watch"):
                return await self._begun(pool.listen(request.target, head, tls, SILENT_S))
            method = "GET" if request.method == "HEAD" else request.method
            answer = await pool.ask(method, request.target, head, request.body or None, tls, TIMEOUT_S)
        except _FAILED as error:
            raise unavailable(f"error trying to reach service: {error or 'no answer in time'}") from None
        return Response(answer.body, _status(answer.status), answer.content_type)

    def _reach(self, service: Object) -> tuple[ConnectionPool, ssl.SSLContext | None]:
        """Connections to the server that an APIService names. Raises Unanswered, InputError or ValueError."""
        return self._store.caller.reach(service["spec"]["service"], _trust(service), self._pair)

    async def _begun(self, parts: AsyncIterator[Answer]) -> Response | Stream:
        first = await anext(parts)
        if first.status == HTTPStatus.OK:
            return Relay(_bodies(first, parts), first.content_type)
        body = first.body + b"".join([part.body async for part in parts])
        return Response(body, _status(first.status), first.content_type)

    async def documents(self) -> list[Object]:
        """The OpenAPI documents of version 3 of the other servers, of those that have any."""
        found = []
        for group, version in list(self.served):
            if (service := self.service_of(group, version)) is not None:
                with suppress(*_FAILED):
                    found.append(await self._fetched(service, f"/openapi/v3/apis/{group}/{version}"))
        return found

    async def _fetched(self, service: Object, target: str) -> Any:
        """What another server tells this one itself, read as JSON. Raises one of _FAILED."""
        pool, tls = self._reach(service)
        answer = await pool.ask("GET", target, head_of([*_names(_CHECKER), ("Accept", "application/json")]), None, tls, CHECK_S)
        if answer.status != HTTPStatus.OK:
            raise Unanswered(f"bad status from its server: {answer.status}")
        return msgspec.json.decode(answer.body)

    # Whether they answer

    def start(self) -> None:
        """Tell the other servers how they know this one, and begin to look after them."""
        pem = self._authority().pem.decode()
        data = {"client-ca-file": pem, "requestheader-client-ca-file": pem, "requestheader-allowed-names": json.dumps([USER])} | {
            f"requestheader-{name}": json.dumps([header])
            for name, header in (
                ("username-headers", "X-Remote-User"),
                ("uid-headers", "X-Remote-Uid"),
                ("group-headers", "X-Remote-Group"),
                ("extra-headers-prefix", "X-Remote-Extra-"),
            )
        }
        if self._store.find("configmaps", "kube-system", CONFIGURATION) is None:
            self._store.create("configmaps", {"metadata": {"name": CONFIGURATION}, "data": data}, "kube-system")
        else:
            self._store.patch("configmaps", CONFIGURATION, PatchRequest("merge", {"data": data}), "kube-system")
        self._store.storage.listen(self._on_write, CRDS, RESOURCE)
        self._own()
        self._look()

    def stop(self) -> None:
        if self._check is not None:
            self._check.cancel()

    def _on_write(self, storage: str, event: WatchEvent) -> None:
        if storage == CRDS:
            asyncio.get_running_loop().call_soon(self._own)
        elif event.type == "ADDED" and event.object["spec"].get("service"):
            self._look()

    def _own(self) -> None:
        """Make the APIServices of what this server itself serves, and remove those of what it serves no more."""
        served = {(kind.group, kind.version): kind.custom for kind in self._store.kinds}
        for (group, version), custom in served.items():
            name = f"{version}.{group}"
            if self._store.find(RESOURCE, "", name) is None:
                made: Object = {"kind": API_SERVICES.kind, "apiVersion": API_SERVICES.api_version}
                made["metadata"] = {"name": name, "labels": {_MANAGED: "true" if custom else "onstart"}}
                made["spec"] = {"group": group, "version": version, "groupPriorityMinimum": 1000, "versionPriority": 100}
                stated = "True", "Local", "Local APIServices are always available"
                made["status"] = {"conditions": [_available(*stated, rfc3339(self._store.now()))]}
                set_identity(self._store.kind(RESOURCE), made, "", self._store.new_uid(), self._store.now())
                self._store.put_trusted(RESOURCE, ("", name), made)
        for one in list(self._store.all(RESOURCE)):
            spec = one["spec"]
            if _MANAGED in one["metadata"].get("labels", {}) and (spec.get("group", ""), spec["version"]) not in served:
                self._store.delete(RESOURCE, one["metadata"]["name"])

    def _look(self) -> None:
        if self._check is not None:
            self._check.cancel()
        self._check = asyncio.get_running_loop().create_task(self._go_on_looking())

    async def _go_on_looking(self) -> None:
        while remote := [one for one in self._store.all(RESOURCE) if self.service_of(one["spec"].get("group", ""), one["spec"]["version"])]:
            for place in self.served.keys() - {(one["spec"]["group"], one["spec"]["version"]) for one in remote}:
                del self.served[place]
            for one in remote:
                await self._look_at(one)
            await asyncio.sleep(CHECK_S)
        self.served.clear()

    async def _look_at(self, service: Object) -> None:
        place = service["spec"]["group"], service["spec"]["version"]
        stated = "True", "Passed", "all checks passed"
        try:
            self.served[place] = entries_of((await self._fetched(service, "/apis/{}/{}".format(*place)))["resources"], *place)
        except (*_FAILED, KeyError, TypeError, AttributeError) as error:
            self.served.pop(place, None)
            stated = "False", "FailedDiscoveryCheck", f"failing or missing response: {error or 'no answer in time'}"
        now = self._store.find(RESOURCE, "", service["metadata"]["name"])
        if now is not None and now["metadata"]["uid"] == service["metadata"]["uid"]:
            with suppress(StatusError):  # admission may refuse it
                self._tell(now, *stated)

    def _tell(self, service: Object, status: str, reason: str, message: str) -> None:
        before = condition(service, "Available") or {}
        since = before["lastTransitionTime"] if before.get("status") == status else rfc3339(self._store.now())
        stated = _available(status, reason, message, since)
        if before != stated:
            change = PatchRequest("merge", {"status": {"conditions": [stated]}})
            self._store.patch(RESOURCE, service["metadata"]["name"], change, subresource="status")


def _available(status: str, reason: str, message: str, since: str) -> Object:
    return {"type": "Available", "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


_KNOWN = frozenset(HTTPStatus)
_CHECKER = UserInfo("system:kube-aggregator", ("system:masters",))


def _names(user: UserInfo) -> list[tuple[str, str]]:
    extra = [(f"X-Remote-Extra-{quote(key, safe='')}", value) for key, values in user.extra for value in values]
    uid = [("X-Remote-Uid", user.uid)] if user.uid else []
    return [("X-Remote-User", user.name), *uid, *(("X-Remote-Group", group) for group in user.groups), *extra]


def _head(request: Request, user: UserInfo) -> bytes:
    """The header lines of a request, with its user and without what proves who that is."""
    passed = [
        (name, value) for name, value in request.headers.items() if name not in _OURS and not name.startswith(("x-remote-", "impersonate-"))
    ]
    return head_of([*passed, ("Accept-Encoding", "identity"), *_names(user)])


async def _bodies(first: Answer, parts: AsyncIterator[Answer]) -> AsyncIterator[bytes]:
    yield first.body
    async for part in parts:
        yield part.body


def _trust(service: Object) -> Trust:
    spec = service["spec"]
    return Trust(base64.b64decode(spec.get("caBundle") or ""), insecure=bool(spec.get("insecureSkipTLSVerify")))


def _status(code: int) -> int:
    return code if code in _KNOWN else HTTPStatus.BAD_GATEWAY
