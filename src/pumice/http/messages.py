"""Requests and answers of a server as values; header lines, and the value of the header for basic authentication."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote

import msgspec

JSON = "application/json"
_encode = msgspec.json.encode


class Request:
    """One request. Header names are in lower case."""

    __slots__ = ("body", "client", "headers", "local", "method", "path", "query", "target", "user")

    def __init__(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"", local: bool = False) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.local = local  #: the request came over this machine's loopback
        self.client: tuple[str, tuple[str, ...]] | None = None  #: the name and the groups in the client's certificate
        self.user: Any = None  #: the user who sent the request, once it is known
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
    """The connection that a stream writes to."""

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


class Takeover:
    """An answer after which the connection speaks another protocol, which `headers` name. What it sends is not put into chunks."""

    content_type = ""
    version = 0
    headers: tuple[tuple[str, str], ...] = ()

    def start(self, pipe: Pipe) -> None:
        raise NotImplementedError

    def received(self, data: bytes) -> None:
        """Take bytes of the client."""
        raise NotImplementedError

    def resume(self) -> None:
        pass

    def stop(self) -> None:
        pass


Answer = Response | Stream | asyncio.Future[Response | Stream]
Respond = Callable[[Request], Answer]


def head_of(headers: Iterable[tuple[str, str]]) -> bytes:
    """Header lines as bytes. Raises ValueError for a line break or another control character, which would end a line early."""
    return "".join(map(_line, headers)).encode()


def basic(user: str, password: str) -> str:
    """The value of the header Authorization, or Proxy-Authorization, for a user and a password."""
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


def basic_of(url: SplitResult) -> str:
    """The value of the header Authorization for the user and password in a URL; empty if the URL has none."""
    return basic(unquote(url.username), unquote(url.password or "")) if url.username else ""


def _line(header: tuple[str, str]) -> str:
    name, value = header
    if any(ord(letter) < 32 and letter != "\t" for letter in name + value):
        raise ValueError(f"the value for the header {name} has a line break or another control character in it")
    return f"{name}: {value}\r\n"


NAMES_OF_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
