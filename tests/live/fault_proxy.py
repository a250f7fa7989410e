"""An HTTP proxy before an API server that spoils calls and watches as chance has it, or as a script says.

A call may be dropped before or after it was carried out, delayed, carried out twice, refused (401, 409, 410, 429, 500; 500 also after it
was carried out), answered with half an answer that looks whole, with a redirect, byte by byte, or with what is no HTTP or no answer of an
API server (`LIES`). A list may have no end, or an object that is none. A watch may be none, be cut within a line, end with an error, skip
back (a line again), change the order of two lines, or have lines that are no events.

A script is a sequence of `Step`s: that many lists, watches, calls of a method, or lines of watches are spoiled in this way, the first ones.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Self

from aiohttp import ClientConnectionError, ClientPayloadError, ClientSession, TCPConnector, web

HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
CALL_FAULTS: tuple[str, ...] = ("drop", "lose", "delay", "twice", "half", "torn", "409", "410", "429", "500", "500 though done")
ANSWERED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
#: what a server answers that lies about HTTP itself
LIES = {
    "a chunk of -6 bytes": ANSWERED + b"Transfer-Encoding: chunked\r\n\r\n-6\r\n{}\r\n0\r\n\r\n",
    "two lengths": ANSWERED + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "2,000 heads": b"HTTP/1.1 100 Continue\r\n\r\n" * 2000 + ANSWERED + b"Content-Length: 2\r\n\r\n{}",
    "a head without an end": ANSWERED + b"X: " + b"x" * 100_000,
    "more than was asked for": ANSWERED + b"Content-Length: 1000000000000\r\n\r\n{}",
    "zipped rubbish": ANSWERED + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "zipped and cut": ANSWERED + b"Content-Encoding: gzip\r\nContent-Length: 18\r\n\r\n" + gzip.compress(b'{"items":[]}')[:18],
    "less than comes": ANSWERED + b'Content-Length: 2\r\n\r\n{"kind":"Status"}',
    "a head of 1 MiB": ANSWERED + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 4090) for n in range(256)) + b"Content-Length: 2\r\n\r\n{}",
    "HTML": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 24\r\n\r\n<html>\n<p>Sign in</html>\n",
    "503 and nothing": b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
    "redirect": b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 0\r\n\r\n",
    "another host": b"HTTP/1.1 308 Permanent Redirect\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "no object": ANSWERED + b"Content-Length: 2\r\n\r\n[]",
    "null": ANSWERED + b"Content-Length: 4\r\n\r\nnull",
}
CALL_FAULTS += (*tuple(LIES)[:6], "redirect", "drip")  # chance draws none that says a write was done which was not
DRIPS_S = 0.002
ENORMOUS = 4 * 1024 * 1024
BOMB = gzip.compress(b" " * (64 * 1024 * 1024), 1)
LIES["bomb"] = ANSWERED + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB
#: lines of a watch that are no events, which come before the next event
NO_EVENTS = {
    "no object": b'{"type":"ADDED","object":{}}',
    "an object without a version": b'{"type":"MODIFIED","object":{"metadata":{"name":"x","namespace":"default","resourceVersion":null}}}',
    "an old bookmark": b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}',
    "an error without a Status": b'{"type":"ERROR","object":null}',
    "a line of HTML": b"<html>",
}
STREAM_FAULTS = ("cut", "half a line", "410", "again", "swapped")

AGAIN = "and-again"  #: the token of each page of a list without an end
LONGEST_HOLD_S = 1.0  #: a line that nobody overtakes goes on after this


class Step(NamedTuple):
    """The next `times` of what is spoiled: "list", "watch", "line", or a method."""

    of: str
    fault: str
    times: int


#: the first lists are bombs, enormous, as of version 1, or as of one to which the server never comes; watches end in a storm of 410; events
#: go back, and writes get no answer
SCRIPT = (
    Step("list", "bomb", 2),
    Step("list", "enormous", 2),
    Step("list", "back", 2),
    Step("list", "ahead", 2),
    Step("watch", "410", 12),
    Step("line", "back", 3),
    Step("line", "enormous", 2),
    Step("POST", "lose", 3),
)

#: lists have no end, or objects that are none; watches are pages to sign in, or have lines that are no events; writes are refused
ODD_SCRIPT = (
    Step("list", "no end", 2),
    Step("list", "no object", 2),
    Step("list", "an object without a version", 2),
    Step("list", "not UTF-8", 3),
    Step("list", "null items", 4),
    Step("list", "401", 2),
    Step("list", "null", 1),
    Step("list", "HTML", 1),
    Step("list", "zipped and cut", 1),
    Step("list", "a head of 1 MiB", 1),
    Step("watch", "HTML", 12),
    Step("watch", "401", 2),
    Step("line", "not UTF-8", 2),
    Step("line", "in pieces", 2),
    *(Step("line", fault, 1) for fault in NO_EVENTS),
    Step("GET", "401", 2),
    Step("POST", "no object", 2),
    Step("POST", "null", 1),
    Step("POST", "401", 2),
    Step("POST", "409", 2),
    Step("POST", "503 and nothing", 1),
)


class FaultProxy:
    """`rate` of the calls and of the lines of watches are spoiled while it is above 0. `done` counts the faults."""

    def __init__(self, target: str, seed: int, rate: float, script: Sequence[Step] = ()) -> None:
        self.rate = rate
        self.left = [step for step in script for _ in range(step.times)]  #: of the script
        self.url = ""
        self.done: Counter[str] = Counter()
        self._target = target
        self._chance = random.Random(seed)

    async def __aenter__(self) -> Self:
        self._session = ClientSession(connector=TCPConnector(limit=0), auto_decompress=False)
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_route("*", "/{rest:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._runner.cleanup()
        await self._session.close()

    def _fault(self, faults: tuple[str, ...], of: str, rate: float) -> str:
        step = next((step for step in self.left if step.of == of), None)
        if step is not None:
            self.left.remove(step)
        elif self._chance.random() >= rate:
            return ""
        fault = self._chance.choice(faults) if step is None else step.fault
        self.done[f"{of}: {fault}"] += 1
        return fault

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") == "true":
            return await self._watch(request)
        if AGAIN in request.query_string:
            return web.json_response({"metadata": {"resourceVersion": "1", "continue": AGAIN}, "items": []})
        fault = self._fault(CALL_FAULTS, "list" if "limit" in request.query else request.method, self.rate)
        body = await request.read()
        if fault == "drop":
            return _abort(request)
        if fault.isdigit():
            return _refusal(int(fault))
        if fault in LIES and not (fault in ODD_LISTS and request.method == "GET"):
            return await _raw(request, LIES[fault])
        return await self._forwarded(request, body, fault)

    async def _forwarded(self, request: web.Request, body: bytes, fault: str) -> web.StreamResponse:
        if fault == "delay":
            await asyncio.sleep(self._chance.uniform(0.1, 1.5))
        if fault == "twice":
            await self._forward(request, body)
        status, answer, form = await self._forward(request, body)
        match fault:
            case "lose":
                return _abort(request)
            case "500 though done":
                return _refusal(500)
            case "half" if status < 300:
                return web.Response(status=status, body=answer[: len(answer) // 2], headers=form)
            case "enormous":
                answer, form = _grown(answer, form), {"Content-Type": form["Content-Type"]}
            case "back" | "ahead":
                answer, form = _as_of(1 if fault == "back" else 2**62, answer, form), {"Content-Type": form["Content-Type"]}
            case odd if odd in ODD_LISTS and request.method == "GET":
                answer, form = ODD_LISTS[odd](_plain(answer, form)), {"Content-Type": form["Content-Type"]}
            case "drip":
                return await _dripping(request, status, answer, form)
            case "torn":
                return await _torn(request, status, answer, form)
        return web.Response(status=status, body=answer, headers=form)

    async def _forward(self, request: web.Request, body: bytes) -> tuple[int, bytes, dict[str, str]]:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        data = io.BytesIO(body) if body else None
        async with self._session.request(request.method, self._target + request.path_qs, data=data, headers=headers) as answer:
            form = {name: answer.headers[name] for name in ("Content-Type", "Content-Encoding") if name in answer.headers}
            return answer.status, await answer.read(), form

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        if fault := self._fault(("drop", "429", "500", "410"), "watch", self.rate / 2):
            return _abort(request) if fault == "drop" else _refusal(int(fault)) if fault.isdigit() else await _raw(request, LIES[fault])
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        with suppress(ConnectionError, ClientConnectionError, ClientPayloadError):
            async with self._session.get(self._target + request.path_qs, headers=headers) as stream:
                response.set_status(stream.status)
                await response.prepare(request)
                async for line in self._spoiled(aiter(stream.content)):
                    if line is None:
                        return _abort(request)
                    await response.write(line)
        return response

    async def _spoiled(self, lines: AsyncIterator[bytes]) -> AsyncIterator[bytes | None]:
        """What is sent instead of these lines; None: the connection breaks."""
        async for line in lines:
            match self._fault(STREAM_FAULTS, "line", self.rate / 6):
                case "":
                    yield line
                case "cut":
                    yield line[: len(line) // 2]
                    yield None
                case "half a line":
                    yield line[: len(line) // 2] + b"\n"
                    return
                case "410":
                    yield json.dumps({"type": "ERROR", "object": _status(410)}).encode() + b"\n"
                    return
                case "again":
                    yield line + line
                case "back":
                    yield line + _of_an_older_version(line)
                case "enormous":
                    yield b"%s,%s" % (line[:1] + b'"padding":"' + b"x" * ENORMOUS + b'"', line[1:])
                case "not UTF-8":
                    yield line[:1] + b'"padding":"\xff\xfe",' + line[1:]
                case "in pieces":
                    first, rest = "\N{SNOWMAN}".encode()[:1], "\N{SNOWMAN}".encode()[1:]
                    yield line[:1] + b'"padding":"' + first
                    yield rest + b'",' + line[1:]
                case fault if fault in NO_EVENTS:
                    yield NO_EVENTS[fault] + b"\n" + line
                case "swapped":
                    coming = asyncio.ensure_future(anext(lines, b""))
                    try:
                        await asyncio.wait({coming}, timeout=LONGEST_HOLD_S)
                        if not coming.done():
                            yield line
                            line = b""
                        yield await coming + line
                    finally:
                        coming.cancel()


def _plain(answer: bytes, form: dict[str, str]) -> Any:
    return json.loads(gzip.decompress(answer) if form.get("Content-Encoding") == "gzip" else answer)


def _without_end(whole: Any) -> bytes:
    whole["metadata"]["continue"] = AGAIN
    return json.dumps(whole).encode()


def _with(odd: bytes) -> Callable[[Any], bytes]:
    """What makes one more object of a list, which is this."""

    def listed(whole: Any) -> bytes:
        whole["items"] = [*(whole.get("items") or ()), "HERE"]
        return json.dumps(whole).encode().replace(b'"HERE"', odd)

    return listed


def _null_items(whole: Any) -> bytes:
    return json.dumps(whole | {"items": whole.get("items") or None}).encode()


def _not_utf8(whole: Any) -> bytes:
    for item in whole.get("items") or ():
        item["metadata"].setdefault("annotations", {})["odd"] = "HERE"
    return json.dumps(whole).encode().replace(b'"HERE"', b'"\xff\xfe"')


ODD_LISTS: dict[str, Callable[[Any], bytes]] = {
    "no end": _without_end,
    "no object": _with(b"{}"),
    "an object without a version": _with(b'{"metadata":{"name":"x","namespace":"default"}}'),
    "not UTF-8": _not_utf8,
    "null items": _null_items,
}


def _grown(answer: bytes, form: dict[str, str]) -> bytes:
    """The list, whose objects have become enormous."""
    whole = _plain(answer, form)
    for item in whole.get("items") or ():
        item["padding"] = "x" * ENORMOUS
    return json.dumps(whole).encode()


def _as_of(version: int, answer: bytes, form: dict[str, str]) -> bytes:
    """The list as of another version."""
    whole = _plain(answer, form)
    whole["metadata"]["resourceVersion"] = str(version)
    return json.dumps(whole).encode()


def _of_an_older_version(line: bytes) -> bytes:
    """The same event, as if it had happened long ago."""
    event = json.loads(line)
    event["object"]["metadata"]["resourceVersion"] = "1"
    return json.dumps(event).encode() + b"\n"


def _status(code: int) -> dict[str, object]:
    reason = {401: "Unauthorized", 409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}[code]
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "made to fail"}


def _refusal(code: int) -> web.Response:
    return web.json_response(_status(code), status=code, headers={"Retry-After": "1"} if code == 429 else {})


def _abort(request: web.Request) -> web.StreamResponse:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _raw(request: web.Request, answer: bytes) -> web.StreamResponse:
    """These bytes, whatever they are, and then nothing."""
    assert isinstance(request.transport, asyncio.Transport)
    request.transport.write(answer)
    await asyncio.sleep(0.05)
    return _abort(request)


async def _dripping(request: web.Request, status: int, answer: bytes, form: dict[str, str]) -> web.StreamResponse:
    """The answer as it is, its first bytes one by one."""
    response = web.StreamResponse(status=status, headers={**form, "Content-Length": str(len(answer))})
    await response.prepare(request)
    with suppress(ConnectionError):
        for at in range(min(len(answer), 100)):
            await response.write(answer[at : at + 1])
            await asyncio.sleep(DRIPS_S)
        await response.write(answer[100:])
    return response


async def _torn(request: web.Request, status: int, answer: bytes, form: dict[str, str]) -> web.StreamResponse:
    """The head promises more than comes."""
    response = web.StreamResponse(status=status, headers={**form, "Content-Length": str(len(answer))})
    await response.prepare(request)
    with suppress(ConnectionError):
        await response.write(answer[: len(answer) // 2])
    return _abort(request)
