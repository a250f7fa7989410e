"""A pool of kept-alive connections to one server, as many as there are calls at a time. The connection used last is used next.

Through a proxy, HTTPS goes in a tunnel (CONNECT), and plain HTTP is requested by whole URLs, which every proxy understands.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from urllib.parse import SplitResult, quote, urlsplit

from pumice.http.connection import MOST_BYTES, Answer, Connection
from pumice.http.messages import basic_of, head_of

CONNECT_S = 10.0
KEPT_ALIVE_S = 60.0
RECEIVED_AT_ONCE = 64 * 1024


class NotConnected(Exception):
    """No connection could be made; no request was sent."""


class ConnectionPool:
    """A pool of connections. `server` is the URL that targets are appended to; `server_name` is the name that the server's certificate must
    have, if it is not the host of the URL."""

    def __init__(self, server: str, server_name: str = "", proxy: str = "") -> None:
        url = urlsplit(server)
        self._url = url
        self._name = server_name or url.hostname or ""
        self._proxy = urlsplit(proxy) if proxy else None
        self._buffer = bytearray(RECEIVED_AT_ONCE)
        self._idle: list[Connection] = []
        self._tls: ssl.SSLContext | None = None
        host = url.netloc.rpartition("@")[2]
        self._origin, self._own_head = url.path, head_of([("Host", host)])
        if self._proxy and url.scheme == "http":
            self._origin, self._own_head = f"http://{host}{url.path}", head_of([("Host", host), *_proof(self._proxy)])

    async def ask(
        self,
        method: str,
        target: str,
        head: bytes,
        body: bytes | None,
        tls: ssl.SSLContext | None,
        timeout_s: float,
        max_bytes: int = MOST_BYTES,
    ) -> Answer:
        """Send a request, and return the whole answer. `head` has all header lines except Host and Content-Length.

        Raises NotConnected, TimeoutError, or OSError if the connection failed after the request was sent.
        """
        connection = self._take(tls) or await self._connect(tls)
        answer = await connection.ask(self._request(method, target, head, body), timeout_s, max_bytes)
        if connection.open:
            self._idle.append(connection)
        return answer

    async def listen(self, target: str, head: bytes, tls: ssl.SSLContext | None, idle_s: float) -> AsyncIterator[Answer]:
        """The answer to a GET in parts, as they arrive. Its connection serves no other call after it."""
        connection = self._take(tls) or await self._connect(tls)
        try:
            async with aclosing(connection.listen(self._request("GET", target, head, None), idle_s)) as parts:  # type: ignore[type-var]
                async for part in parts:
                    yield part
        finally:
            connection.abort()

    async def begin(
        self, method: str, target: str, head: bytes, tls: ssl.SSLContext | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request without a body over a connection that is the caller's from then on. No proxy is used. Raises NotConnected."""
        named = {"ssl": tls, "server_hostname": self._name} if tls is not None else {}
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(self._url.hostname, _port(self._url), **named)  # type: ignore[arg-type]
        except OSError as error:
            raise NotConnected(str(error) or "timed out") from error
        writer.write(self._request(method, target, head, None))
        return reader, writer

    def close(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle = []

    def _request(self, method: str, target: str, head: bytes, body: bytes | None) -> bytes:
        length = b"Content-Length: %d\r\n\r\n" % len(body) if body is not None else b"\r\n"
        return b"".join((f"{method} {self._origin}{target} HTTP/1.1\r\n".encode("ascii"), self._own_head, head, length, body or b""))

    def _take(self, tls: ssl.SSLContext | None) -> Connection | None:
        """The idle connection used last, or None. Connections that are too old, or were made with another TLS context, are closed."""
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

    async def _connect(self, tls: ssl.SSLContext | None) -> Connection:
        first = self._proxy or self._url
        connection: Connection | None = None
        try:
            async with asyncio.timeout(CONNECT_S):
                made = partial(Connection, self._buffer)
                _, connection = await asyncio.get_running_loop().create_connection(made, first.hostname or "", _port(first))
                if self._proxy is not None:
                    await self._pass_proxy(connection, self._proxy, tls)
                if tls is not None:
                    await connection.secure(tls, self._name)
        except BaseException as error:  # a timeout, a failed handshake and an unknown host are OSErrors, too
            if connection is not None:
                connection.abort()
            if isinstance(error, OSError):
                raise NotConnected(str(error) or "timed out") from error
            raise
        return connection

    async def _pass_proxy(self, connection: Connection, proxy: SplitResult, tls: ssl.SSLContext | None) -> None:
        """Connect through the proxy. The certificate of a proxy with TLS is verified as the server's is, which is what Go does."""
        if proxy.scheme == "https":
            await connection.secure(tls or ssl.create_default_context(), proxy.hostname or "")
        if self._url.scheme == "https":
            name = self._url.hostname or ""
            host = f"{f'[{name}]' if ':' in name else name}:{_port(self._url)}"
            head = head_of([("Host", host), *_proof(proxy)])
            await connection.tunnel(f"CONNECT {host} HTTP/1.1\r\n".encode("ascii") + head + b"\r\n")


def _port(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def _proof(proxy: SplitResult) -> list[tuple[str, str]]:
    known = basic_of(proxy)
    return [("Proxy-Authorization", known)] if known else []


LARGEST_ANSWER = 64 * 1024 * 1024
AS_WRITTEN = "!$%&'()*+,/:;=?@[]~"  #: characters of a URL that are sent as they are, as letters and digits are; all others are quoted


async def fetch(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    timeout_s: float,
    max_bytes: int = LARGEST_ANSWER,
) -> Answer:
    """Send a GET, or a POST if there is a body, and return the answer. Raises OSError, such as TooLong, or ValueError.

    The whole call may take `timeout_s`. `tls` is for https; by default, the certificate authorities of the machine are trusted.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f'"{url}" is not an http or https URL')
    known = basic_of(parts)
    named = {"Accept-Encoding": "identity", **({"Authorization": known} if known else {}), **(headers or {})}
    head = head_of(named.items())
    target = quote(f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/", safe=AS_WRITTEN)
    pool = ConnectionPool(f"{parts.scheme}://{parts.netloc}")
    context = tls or ssl.create_default_context() if parts.scheme == "https" else None
    try:
        async with asyncio.timeout(timeout_s):
            return await pool.ask("GET" if body is None else "POST", target, head, body, context, timeout_s, max_bytes)
    except NotConnected as error:
        raise ConnectionError(f"no connection: {error}") from error
    finally:
        pool.close()
