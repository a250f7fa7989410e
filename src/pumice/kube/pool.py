"""Kept-alive HTTP/1.1 connections to one server, for calls that fit into memory: a third of the processor time of a general client.

Half of what a scheduler spends on a bind is its HTTP client, so this one does only what an API server needs: one request at a time on a
connection, answers with a length, in chunks, or ended by the connection. Nothing is repeated here. A call that is cancelled or late takes
its connection with it, so an answer never reaches another call.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from typing import NamedTuple
from urllib.parse import urlsplit

CONNECT_S = 10.0
KEPT_ALIVE_S = 60.0

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_RETRY_AFTER = re.compile(rb"\r\nretry-after:[ \t]*([^\r]*)", re.IGNORECASE)


class Answer(NamedTuple):
    status: int
    retry_after: str
    body: bytes


class NotConnected(Exception):
    """No connection could be made; nothing was sent."""


class _Connection(asyncio.Protocol):
    """One connection. Between `ask` and its answer there is a `_waiter`; otherwise it is idle."""

    def __init__(self) -> None:
        self.open = False
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._received = bytearray()

    def ask(self, request: bytes, timeout_s: float) -> asyncio.Future[Answer]:
        assert self._transport is not None
        self._waiter = self._loop.create_future()
        self._timer = self._loop.call_later(timeout_s, self._late)
        self._transport.write(request)
        return self._waiter

    def abort(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.open = True

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            self.abort()  # nobody asked
            return
        self._received += data
        try:
            self._read()
        except (ValueError, IndexError):
            self._fail(ConnectionError("the answer is not HTTP"))

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        head = self._received.find(b"\r\n\r\n")
        if head >= 0 and error is None and not _LENGTH.search(self._received, 0, head) and not _CHUNKED.search(self._received, 0, head):
            self._done(head, bytes(self._received[head + 4 :]))
        else:
            self._fail(error or ConnectionResetError("closed by the server"))

    def _read(self) -> None:
        received = self._received
        head = received.find(b"\r\n\r\n")
        if head < 0:
            return
        status = int(received[9:12])
        if status < 200:
            del received[: head + 4]
            self._read()
        elif status in (204, 304):
            self._done(head, b"")
        elif length := _LENGTH.search(received, 0, head):
            end = head + 4 + int(length[1])
            if len(received) >= end:
                self._done(head, bytes(received[head + 4 : end]))
        elif _CHUNKED.search(received, 0, head):
            body = _unchunked(received, head + 4)
            if body is not None:
                self._done(head, body)

    def _done(self, head: int, body: bytes) -> None:
        received = self._received
        retry_after = _RETRY_AFTER.search(received, 0, head)
        answer = Answer(int(received[9:12]), retry_after[1].decode("latin-1").strip() if retry_after else "", body)
        if _CLOSE.search(received, 0, head):
            self.abort()
        received.clear()
        waiter = self._released()
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    def _late(self) -> None:
        self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        waiter = self._released()
        self.abort()
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _released(self) -> asyncio.Future[Answer] | None:
        waiter, self._waiter = self._waiter, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return waiter


class Pool:
    """As many connections as there are calls under way; the one used last is used next."""

    def __init__(self, server: str, server_name: str = "") -> None:
        parts = urlsplit(server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._server_name = server_name or self._host
        self._idle: list[_Connection] = []
        self._tls: ssl.SSLContext | None = None

    async def ask(self, request: bytes, tls: ssl.SSLContext | None, timeout_s: float) -> Answer:
        """Raises NotConnected, TimeoutError, or OSError when the connection broke after sending."""
        connection = self._take(tls) or await self._connect(tls)
        try:
            answer = await connection.ask(request, timeout_s)
        except asyncio.CancelledError:
            connection.abort()
            raise
        if connection.open:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        return answer

    def close(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle = []

    def _take(self, tls: ssl.SSLContext | None) -> _Connection | None:
        """The idle connection used last. Those that are old, or made with another certificate, are given up."""
        if tls is not self._tls:
            self.close()
            self._tls = tls
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.open and now - connection.idle_since < KEPT_ALIVE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self, tls: ssl.SSLContext | None) -> _Connection:
        loop = asyncio.get_running_loop()
        name = self._server_name if tls else None
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await loop.create_connection(_Connection, self._host, self._port, ssl=tls, server_hostname=name)
        except OSError as error:  # a TimeoutError, a failed handshake and an unknown host among them
            raise NotConnected(str(error) or "timed out") from error
        return connection


def _unchunked(received: bytearray, start: int) -> bytes | None:
    """The body of a chunked answer, None if it is not all there."""
    parts: list[bytes] = []
    while (line := received.find(b"\r\n", start)) >= 0:
        size = int(received[start:line].split(b";", 1)[0], 16)
        begin, start = line + 2, line + 2 + size + 2
        if size == 0:
            return b"".join(parts) if received.find(b"\r\n", begin) >= 0 else None
        if len(received) < start:
            return None
        parts.append(bytes(received[begin : begin + size]))
    return None
