"""A bare HTTP client: what is sent and what comes back, byte by byte."""

from __future__ import annotations

import json
import socket
from types import TracebackType
from typing import Any

from tests.apiserver.server_process import Running

TIMEOUT_S = 60


class Wire:
    """One connection."""

    def __init__(self, running: Running) -> None:
        self._open(running.url, running.server.token)

    @classmethod
    def to(cls, url: str, token: str) -> Wire:
        """One to a server in another process."""
        made = cls.__new__(cls)
        made._open(url, token)
        return made

    def _open(self, url: str, token: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT_S)
        self._token = token
        self._buffer = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str) -> tuple[int, Any]:
        """The status, and the body read as JSON."""
        self.send(self.request(method, path, body, content_type, **headers))
        status, _, text = self.answer()
        return status, json.loads(text) if text[:1] in (b"{", b"[") else text

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json", **headers: str) -> bytes:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {self._token}", f"Content-Type: {content_type}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._buffer:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError(self._buffer[:200])
            self._buffer += data
        found, _, self._buffer = self._buffer.partition(mark)
        return found

    def exactly(self, count: int) -> bytes:
        while len(self._buffer) < count:
            data = self._socket.recv(65536)
            if not data:
                raise EOFError(self._buffer[:200])
            self._buffer += data
        found, self._buffer = self._buffer[:count], self._buffer[count:]
        return found

    def head(self) -> tuple[int, dict[str, str]]:
        first, *lines = self._until(b"\r\n\r\n").decode().split("\r\n")
        return int(first.split(" ")[1]), {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = self.head()
        return status, headers, self.exactly(int(headers["content-length"]))

    def watch(self, path: str, **headers: str) -> dict[str, str]:
        self.send(self.request("GET", path, **headers))
        status, found = self.head()
        assert status == 200
        return found

    def events(self, count: int) -> list[dict[str, Any]]:
        """The next events of a watch."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += self.chunk()
        assert len(found) == count, found
        return found

    def piece(self) -> bytes:
        """The next chunk, empty at the end."""
        size = int(self._until(b"\r\n"), 16)
        return self.exactly(size + 2)[:-2]

    def chunk(self) -> list[dict[str, Any]]:
        lines = self.piece().splitlines()
        if not lines:
            raise EOFError("the watch has ended")
        return [json.loads(line) for line in lines]

    def is_closed(self) -> bool:
        return self._socket.recv(1) == b""
