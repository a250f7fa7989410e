"""An API server for tests: objects in memory, list pages, watches, and faults on demand.

It keeps the promises of the real one (rising resource versions, 410 for what is forgotten, optimistic locking, bookmarks) except where a
`Fault` or a `StreamFault` says otherwise. A fault meets the next request that it applies to; a stream fault the next watch.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web
from multidict import CIMultiDict

PATH = re.compile(r"^/(?:api/v1|apis/[^/]+/[^/]+)(?:/namespaces/([^/]+))?/([^/]+)(?:/([^/]+))?(?:/([^/]+))?$")
Key = tuple[str, str, str]  # plural, namespace, name


@dataclass
class Fault:
    """What happens to one request: an answer of our own, or a lost connection before or after the work was done."""

    code: int = 0
    reason: str = ""
    retry_after: str = ""
    lose: str = ""  #: "request", "answer" or "half" of it, so that it seems whole
    says: bytes = b""  #: instead of the answer, with the code 200; with `lose` "request" nothing was done
    delay_s: float = 0.0
    until: asyncio.Event | None = None  #: nothing is done before it is set
    method: str = ""  #: empty: any
    watch: bool | None = None  #: None: any
    ahead: int = 0  #: a list says that it is so many versions newer


@dataclass
class StreamFault:
    """What happens to one watch, counted in its events."""

    cut_after: int | None = None
    mid_line: bool = False
    twice: int | None = None  #: this event is sent twice
    swap: int | None = None  #: this event changes places with the next
    error: int = 0  #: instead of a cut: an ERROR event with this code
    garbage: bool = False  #: instead of a cut: a line that is not JSON
    ahead: int = 0  #: the first bookmark says that so many versions more were sent


@dataclass
class FakeApi:
    """The server. `objects` is its state; `requests` the method, path and body of everything asked."""

    objects: dict[Key, dict[str, Any]] = field(default_factory=dict)
    log: list[tuple[int, str, str, dict[str, Any]]] = field(default_factory=list)
    faults: deque[Fault] = field(default_factory=deque)
    stream_faults: deque[StreamFault] = field(default_factory=deque)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    headers: list[CIMultiDict[str]] = field(default_factory=list)
    version: int = 100
    oldest: int = 0  #: watches from before this are answered 410
    pages_expire: bool = False
    ahead: int = 0
    url: str = ""

    async def __aenter__(self) -> Self:
        self._watches: list[web.Request] = []
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        self.cut_streams()
        await self._runner.cleanup()

    async def put(self, plural: str, name: str, namespace: str = "default", **content: Any) -> dict[str, Any]:
        """Create or change an object."""
        old = self.objects.get((plural, namespace, name))
        metadata = {"name": name, "namespace": namespace, "uid": old["metadata"]["uid"] if old else uuid.uuid4().hex}
        return await self._store(plural, "MODIFIED" if old else "ADDED", {**(old or {}), **content, "metadata": metadata})

    async def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        gone = self.objects.pop((plural, namespace, name), None)
        if gone:
            await self._store(plural, "DELETED", gone)

    async def compact(self) -> None:
        """Forget the past."""
        self.oldest = self.version
        self.cut_streams()

    def cut_streams(self) -> None:
        for request in list(self._watches):
            _abort(request)

    async def _store(self, plural: str, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        if kind != "DELETED":
            self.objects[plural, body["metadata"].get("namespace", ""), body["metadata"]["name"]] = body
        self.log.append((self.version, plural, kind, body))
        return body

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        watch = request.query.get("watch") == "true"
        body = await request.read()
        self.requests.append((request.method, request.path_qs, json.loads(body) if body else None))
        self.headers.append(request.headers.copy())
        fault = self._fault(request.method, watch)
        await asyncio.sleep(fault.delay_s)
        if fault.until is not None:
            await fault.until.wait()
        if fault.lose == "request":
            return web.Response(body=fault.says, content_type="application/json") if fault.says else _abort(request)
        if fault.code:
            return _status(fault.code, fault.reason, "made to fail", fault.retry_after)
        self.ahead = fault.ahead
        answer = await (self._watch(request) if watch else self._answer(request, json.loads(body) if body else None))
        if fault.says:
            return web.Response(body=fault.says, content_type="application/json")
        if fault.lose == "half" and isinstance(answer, web.Response):
            assert isinstance(answer.body, bytes)
            return web.Response(body=answer.body[: len(answer.body) // 2], status=answer.status, content_type="application/json")
        return _abort(request) if fault.lose == "answer" else answer

    def _fault(self, method: str, watch: bool) -> Fault:
        for fault in self.faults:
            if fault.method in ("", method) and fault.watch in (None, watch):
                self.faults.remove(fault)
                return fault
        return Fault()

    async def _answer(self, request: web.Request, body: Any) -> web.Response:
        found = PATH.match(request.path)
        if not found:
            return _status(404, "NotFound", request.path)
        namespace, plural, name, subresource = (part or "" for part in found.groups())
        if request.method == "POST" and subresource == "binding":
            return await self._bind((plural, namespace, name), body)
        if request.method == "POST":
            return await self._create((plural, namespace, body["metadata"]["name"]), body)
        if not name:
            answer = self._list(plural, request.query)
            if "gzip" in request.headers["Accept-Encoding"]:
                answer.enable_compression(web.ContentCoding.gzip)
            return answer
        old = self.objects.get((plural, namespace, name))
        if old is None:
            return _status(404, "NotFound", name)
        return await self._change(request.method, (plural, namespace, name), old, body)

    async def _create(self, key: Key, body: dict[str, Any]) -> web.Response:
        if key in self.objects:
            return _status(409, "AlreadyExists", key[2])
        body["metadata"] = {**body["metadata"], "uid": uuid.uuid4().hex}
        return web.json_response(await self._store(key[0], "ADDED", body), status=201)

    async def _bind(self, key: Key, body: dict[str, Any]) -> web.Response:
        pod = self.objects.get(key)
        if pod is None:
            return _status(404, "NotFound", key[2])
        uid = body["metadata"].get("uid")
        if pod.get("spec", {}).get("nodeName") or (uid and uid != pod["metadata"]["uid"]):
            return _status(409, "Conflict", "assigned already")
        await self._store(key[0], "MODIFIED", {**pod, "spec": {**pod.get("spec", {}), "nodeName": body["target"]["name"]}})
        return web.json_response({"kind": "Status", "status": "Success", "code": 201}, status=201)

    async def _change(self, method: str, key: Key, old: dict[str, Any], body: Any) -> web.Response:
        if method == "GET":
            return web.json_response(old)
        if method == "DELETE":
            wanted = (body or {}).get("preconditions", {}).get("uid")
            if wanted and wanted != old["metadata"]["uid"]:
                return _status(409, "Conflict", "another uid")
            await self.remove(key[0], key[2], key[1])
            return web.json_response({"kind": "Status", "status": "Success"})
        if method == "PUT" and body["metadata"].get("resourceVersion") not in (None, old["metadata"]["resourceVersion"]):
            return _status(409, "Conflict", "modified meanwhile")
        return web.json_response(await self._store(key[0], "MODIFIED", body if method == "PUT" else {**old, **body}))

    def _list(self, plural: str, query: Any) -> web.Response:
        start, version = 0, self.version + self.ahead
        items = self._state(plural)
        if int(query.get("resourceVersion", "0")) > self.version:
            return _status(504, "Timeout", f"Too large resource version: {query['resourceVersion']}, current: {self.version}")
        if query.get("continue"):
            if self.pages_expire:
                return _status(410, "Expired", "continue token is too old")
            version, start = json.loads(query["continue"])
            items = self._state(plural, version)
        end = start + int(query.get("limit", "0") or 0) or len(items)
        metadata = {"resourceVersion": str(version)} | ({"continue": json.dumps([version, end])} if end < len(items) else {})
        return web.json_response({"kind": "List", "metadata": metadata, "items": items[start:end]})

    def _state(self, plural: str, version: int | None = None) -> list[dict[str, Any]]:
        """The objects of a kind, now or as they were."""
        if version is None:
            return [body for key, body in sorted(self.objects.items()) if key[0] == plural]
        state: dict[tuple[str, str], dict[str, Any]] = {}
        for at, kind, event, body in self.log:
            key = body["metadata"].get("namespace", ""), body["metadata"]["name"]
            if at <= version and kind == plural:
                state[key] = body
                if event == "DELETED":
                    del state[key]
        return [body for _, body in sorted(state.items())]

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        position = int(request.query["resourceVersion"])
        if position < self.oldest:
            return _status(410, "Expired", "too old resource version")
        response = web.StreamResponse()
        await response.prepare(request)
        self._watches.append(request)
        try:
            await _Stream(self, request, response, self.stream_faults.popleft() if self.stream_faults else StreamFault()).run(position)
        except ConnectionError:
            pass
        finally:
            self._watches.remove(request)
        return response


class _Stream:
    """One watch under way."""

    def __init__(self, api: FakeApi, request: web.Request, response: web.StreamResponse, fault: StreamFault) -> None:
        self.api = api
        self.request = request
        self.response = response
        self.fault = fault
        self.sent = 0
        self.held: bytes = b""

    async def run(self, position: int) -> None:
        plural = PATH.match(self.request.path).group(2)  # type: ignore[union-attr]
        while self.request.transport is not None and not self.request.transport.is_closing():
            news = [entry for entry in self.api.log if entry[0] > position and entry[1] == plural]
            position = self.api.version
            for _, _, event, body in news:
                await self.send(event, body)
            if news:
                stands_at, self.fault.ahead = position + self.fault.ahead, 0
                await self.send("BOOKMARK", {"metadata": {"resourceVersion": str(stands_at)}, "spec": {"containers": None}})
            await asyncio.sleep(0.002)

    async def send(self, kind: str, body: dict[str, Any]) -> None:
        line = json.dumps({"type": kind, "object": body}).encode() + b"\n"
        fault, number = self.fault, self.sent
        self.sent += 1
        if fault.cut_after == number:
            await self.end(line)
        elif fault.swap == number and kind != "BOOKMARK":
            self.held = line
        elif kind == "BOOKMARK":
            await self.response.write(self.held + line * (1 + (fault.twice == number)))
            self.held = b""
        else:
            await self.response.write(line * (1 + (fault.twice == number)) + self.held)
            self.held = b""

    async def end(self, line: bytes) -> None:
        if self.fault.error:
            status = {
                "kind": "Status",
                "code": self.fault.error,
                "reason": "Expired" if self.fault.error == 410 else "",
                "message": "fault",
            }
            await self.response.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
        elif self.fault.garbage:
            await self.response.write(b'{"type":"ADDED","obj\n')
        elif self.fault.mid_line:
            await self.response.write(line[: len(line) // 2])
        await asyncio.sleep(0.001)
        _abort(self.request)
        raise ConnectionResetError


def _abort(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _status(code: int, reason: str, message: str, retry_after: str = "") -> web.Response:
    headers = {"Retry-After": retry_after} if retry_after else {}
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": message}, status=code, headers=headers)
