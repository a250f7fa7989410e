"""What a server is asked and answers, as values."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

JSON = "application/json"
_encode = msgspec.json.encode


class Request:
    """One request. Header names are in lower case."""

    __slots__ = ("body", "headers", "local", "method", "path", "query", "target", "user")

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes = b"", local: bool = False) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.local = local  #: it came over this machine's loopback
        self.user: Any = None  #: who asks, once somebody has found out
        path, question, query = target.partition("?")
        self.path = unquote(path) if "%" in path else path
        self.query = dict(parse_qsl(query, keep_blank_values=True)) if question else {}

    def flag(self, name: str) -> bool:
        return self.query.get(name, "") in ("true", "1", "True")


class Response:
    """One answer. It may be sent once everything up to `version` is durable."""

    __slots__ = ("body", "content_type", "headers", "status", "version")

    def __init__(self, body: bytes, status: int = 200, content_type: str = JSON, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.body = body
        self.status = status
        self.content_type = content_type
        self.headers = headers
        self.version = 0

    @classmethod
    def json(cls, value: Any, status: int = 200, content_type: str = JSON, headers: tuple[tuple[str, str], ...] = ()) -> Response:
        return cls(_encode(value), status, content_type, headers)

    @classmethod
    def text(cls, text: str, status: int = 200) -> Response:
        return cls(text.encode(), status, "text/plain; charset=utf-8")


class Pipe(Protocol):
    """Where a stream writes to."""

    def send(self, *parts: bytes) -> None: ...

    def finish(self) -> None: ...

    def is_full(self) -> bool: ...


class Stream(Protocol):
    """An answer in pieces: a watch, a long list. It begins once everything up to `version` is durable."""

    content_type: str
    version: int

    def start(self, pipe: Pipe) -> None: ...

    def resume(self) -> None: ...

    def stop(self) -> None: ...


Answer = Response | Stream | asyncio.Future[Response | Stream]
Respond = Callable[[Request], Answer]


# A long answer that is made while it is sent: one piece at a turn of the loop, and only when the client has taken the one before.


class Pieces:
    """A stream of what an iterator gives."""

    content_type = JSON

    def __init__(self, pieces: Iterator[bytes], version: int) -> None:
        self._pieces = pieces
        self.version = version
        self._pipe: Pipe | None = None
        self._scheduled = False

    def start(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self.resume()

    def resume(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next)

    def stop(self) -> None:
        self._pipe = None

    def _next(self) -> None:
        self._scheduled = False
        if self._pipe is None or self._pipe.is_full():
            return
        piece = next(self._pieces, None)
        if piece is None:
            self._pipe.finish()
        else:
            self._pipe.send(piece)
            self.resume()


# What is on its way to one client.
#
# Parts wait here as they are, not copied and not yet encrypted, and go to the transport in small pieces, as fast as it takes them. So a
# client that does not read holds two pieces and what many may share, however much is meant for it.

PIECE = 64 * 1024


class Outgoing:
    """`seal` encrypts, or does nothing."""

    def __init__(self, transport: asyncio.Transport, seal: Callable[[bytes], bytes]) -> None:
        transport.set_write_buffer_limits(high=PIECE)
        self._transport = transport
        self._seal = seal
        self._parts: deque[bytes | memoryview] = deque()
        self.size = 0  #: bytes that wait
        self.stopped = False  #: the transport takes nothing for now

    def send(self, *parts: bytes) -> None:
        self._parts.extend(parts)
        self.size += sum(map(len, parts))
        self.go_on()

    def go_on(self) -> None:
        while self.size and not self.stopped:
            self._transport.write(self._seal(self._piece()))

    def _piece(self) -> bytes:
        first = self._parts.popleft()
        if len(first) > PIECE:
            whole = memoryview(first)
            self._parts.appendleft(whole[PIECE:])
            piece = bytes(whole[:PIECE])
        else:
            gathered, size = [first], len(first)
            while self._parts and size + len(self._parts[0]) <= PIECE:
                gathered.append(self._parts.popleft())
                size += len(gathered[-1])
            piece = b"".join(gathered)
        self.size -= len(piece)
        return piece
