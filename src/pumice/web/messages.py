"""What a server is asked and answers, as values."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote

import msgspec

JSON = "application/json"
_encode = msgspec.json.encode


@dataclass(slots=True)
class Request:
    """One request. Header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    local: bool = False  #: it came over this machine's loopback
    user: Any = None  #: who asks, once somebody has found out
    path: str = field(init=False)
    query: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        path, question, query = self.target.partition("?")
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
