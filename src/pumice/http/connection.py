"""One connection to a server: set up layer by layer, then used for one call at a time. An answer is read whole, or in parts as they arrive.

A `Reply` parses an answer as it arrives: its head, then its body, which has a length, comes in chunks, or ends with the connection.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import zlib
from collections.abc import AsyncIterator
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[ \t]*chunked", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[ \t]*close", re.IGNORECASE)
_ZIPPED = re.compile(rb"\r\ncontent-encoding:[ \t]*gzip", re.IGNORECASE)
_WARNING = re.compile(rb'\r\nwarning:[ \t]*299 [^ \r]+ "((?:[^"\\\r]|\\.)*)"', re.IGNORECASE)
_RETRY_AFTER = re.compile(rb"\r\nretry-after:[ \t]*([^\r]*)", re.IGNORECASE)
LONGEST_HEAD = 256 * 1024
GZIP = 16 + zlib.MAX_WBITS
MOST_ZIPPED = 1032  #: bytes that gzip packs into one byte, at most


class TooLong(OSError):
    """An answer has more bytes than the caller allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"more than {max_bytes} bytes")


class _Form(Enum):
    """How the end of a body is marked: by its length, by the last chunk, or by the end of the connection."""

    LENGTH = 1
    CHUNKS = 2
    CLOSE = 3


class Reply:
    """An answer, fed with bytes. `take` returns the new part of the body, `whole` all of it at its end. `status` is 0 before the head."""

    __slots__ = (
        "_body",
        "_form",
        "_left",
        "_max_bytes",
        "_raw",
        "_trailing",
        "_zipped",
        "ended",
        "lasting",
        "retry_after",
        "status",
        "warnings",
    )

    def __init__(self, max_bytes: int | None = None) -> None:
        """Without `max_bytes` the body may be of any length."""
        self.status = 0
        self.retry_after = ""
        self.warnings: tuple[str, ...] = ()
        self.lasting = True  #: the connection can serve another call after this one
        self.ended = False
        self._raw = bytearray()
        self._body = bytearray()
        self._form = _Form.LENGTH
        self._left = 0  #: bytes of the body, or of the chunk and the line break after it, still to come
        self._trailing = False  #: the last chunk has been read, not yet the lines after it
        self._zipped = False
        self._max_bytes = max_bytes

    def feed(self, data: bytes | memoryview) -> None:
        """Parse more bytes of the answer. Raises ValueError if it is not HTTP, and TooLong."""
        self._raw += data
        if self.status == 0 and not self._head():
            return
        if self._form is _Form.CHUNKS:
            self._chunks()
        elif self._form is _Form.LENGTH:
            part = self._raw[: self._left]
            self._body += part
            self._left -= len(part)
            self._raw.clear()
            self.ended = self._left == 0
        else:
            self._body += self._raw
            self._raw.clear()
        if self._max_bytes is not None and len(self._body) > self._max_bytes:
            raise TooLong(self._max_bytes)

    def take(self) -> bytes:
        """The part of the body that has arrived since the last call."""
        body = bytes(self._body)
        self._body.clear()
        return body

    def whole(self) -> bytes:
        """The body, unzipped if it is zipped. Raises OSError."""
        body = self.take()
        try:
            return self._unzipped(body) if self._zipped and body else body
        except zlib.error as error:
            raise ConnectionError(f"the answer cannot be unzipped: {error}") from error

    def _unzipped(self, body: bytes) -> bytes:
        if self._max_bytes is None:
            told = int.from_bytes(body[-4:], "little")  # the size modulo 4 GiB: room for it is made at once
            return zlib.decompress(body, GZIP, min(told, MOST_ZIPPED * len(body)))
        opening = zlib.decompressobj(GZIP)
        found = opening.decompress(body, self._max_bytes)
        if opening.unconsumed_tail:
            raise TooLong(self._max_bytes)
        return found

    def cut(self) -> None:
        """Note that the connection has ended: this ends an answer that has no length and no chunks."""
        self.ended = self.ended or (self.status != 0 and self._form is _Form.CLOSE)

    def _head(self) -> bool:
        """Parse the head, and return whether it is complete. Heads of 1xx, which come before the answer itself, are skipped."""
        raw = self._raw
        end = raw.find(b"\r\n\r\n")
        if end < 0:
            if len(raw) > LONGEST_HEAD:
                raise ValueError("a head without an end")
            return False
        if raw[:5] != b"HTTP/":
            raise ValueError("not HTTP")
        status = int(raw[9:12])
        if status < 200:
            del raw[: end + 4]
            return self._head()
        self.lasting = raw[:8] != b"HTTP/1.0" and not _CLOSE.search(raw, 0, end)
        retry_after = _RETRY_AFTER.search(raw, 0, end)
        self.retry_after = retry_after[1].decode("latin-1").strip() if retry_after else ""
        self.warnings = tuple(re.sub(r"\\(.)", r"\1", text.decode(errors="replace")) for text in _WARNING.findall(raw, 0, end))
        self._zipped = _ZIPPED.search(raw, 0, end) is not None
        if status not in (204, 304):
            if _CHUNKED.search(raw, 0, end):
                self._form = _Form.CHUNKS
            elif length := _LENGTH.search(raw, 0, end):
                self._left = int(length[1])
            else:
                self._form, self.lasting = _Form.CLOSE, False
        del raw[: end + 4]
        self.status = status
        return True

    def _chunks(self) -> None:
        raw, at = self._raw, 0
        with memoryview(raw) as view:
            while not self.ended:
                if self._left:
                    part = min(self._left, len(raw) - at)
                    self._body += view[at : at + min(part, max(self._left - 2, 0))]
                    self._left -= part
                    at += part
                    if self._left:
                        break
                line = raw.find(b"\r\n", at)
                if line < 0:
                    break
                if self._trailing:
                    self.ended = line == at
                else:
                    size = int(raw[at:line].split(b";", 1)[0], 16)
                    self._trailing, self._left = size == 0, size + 2 if size else 0
                at = line + 2
        del raw[:at]


# TLS between two buffers in memory, so that one protocol works over any number of TLS layers: none, one, or two through a proxy.

Bytes = bytes | memoryview
RECORD = 16 * 1024  #: bytes that a TLS record holds at most


class TlsLayer:
    """One side of a TLS connection: the client's, with the `name` of the server, or without it the server's. `open` raises ssl.SSLError."""

    def __init__(self, context: ssl.SSLContext, name: str | None) -> None:
        self.ready = False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        plain = name.encode() if name is not None and name.isascii() else name  # a str would load the tables of international names
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=name is None, server_hostname=plain)

    @property
    def owes(self) -> bool:
        """Whether the layer itself has something to send, such as a reply of the handshake."""
        return self._outgoing.pending > 0

    def open(self, data: Bytes) -> bytes:
        """The plain bytes of the encrypted bytes that were received. Bytes of the handshake are handled too; its reply comes with the next
        `seal`."""
        self._incoming.write(data)
        parts = []
        try:
            if not self.ready:
                self._tls.do_handshake()
                self.ready = True
            while (self._incoming.pending or self._tls.pending()) and (part := self._tls.read(RECORD)):
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seal(self, data: bytes) -> bytes:
        """The encrypted bytes to send for `data`, and for the handshake."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._tls.write(rest) :]
        return self._outgoing.read()

    def end(self) -> bytes:
        """The bytes to send last, which announce the end of the connection."""
        with suppress(ssl.SSLError):
            self._tls.unwrap()
        return self._outgoing.read()


class Answer(NamedTuple):
    status: int
    retry_after: str
    body: bytes
    warnings: tuple[str, ...] = ()  #: the texts of its Warning headers


class Connection(asyncio.BufferedProtocol):
    """A connection to a server. A call that fails, times out or is cancelled closes it, so an answer never reaches another call.

    Received bytes are used at once, so all connections of one event loop may share a `buffer` to receive into.
    """

    def __init__(self, buffer: bytearray) -> None:
        self._buffer = buffer
        self.open = False
        self.idle_since = 0.0
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._layers: list[TlsLayer] = []
        self._reply: Reply | None = None  #: of the call under way
        self._whole = False  #: the reply is of no use before its end
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None  #: why the connection is lost
        self._heard_at = 0.0

    # ---- setting up; raises OSError

    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """Start TLS. Everything after this goes through it."""
        layer = TlsLayer(context, name)
        layer.open(b"")
        self._send(layer.seal(b""))
        self._layers.append(layer)
        while not layer.ready:
            await self._news()

    async def tunnel(self, request: bytes) -> None:
        """Send a CONNECT request to a proxy. Everything after this goes to the server that the request names."""
        reply = self._reply = Reply()
        self._send(request)
        while not reply.status:
            await self._news()
        self._reply = None
        if reply.status >= 300:
            raise ConnectionError(f"the proxy answered {reply.status}")

    # ---- calls; raises OSError, TimeoutError among them

    async def ask(self, request: bytes, timeout_s: float, max_bytes: int | None = None) -> Answer:
        reply = self._reply = Reply(max_bytes)
        self._whole = True
        timer = self._loop.call_later(timeout_s, self._lost, TimeoutError())
        try:
            self._send(request)
            while not reply.ended:
                await self._news()
            return Answer(reply.status, reply.retry_after, reply.whole(), reply.warnings)
        except BaseException:
            self.abort()
            raise
        finally:
            timer.cancel()
            self._ended()

    async def listen(self, request: bytes, idle_s: float) -> AsyncIterator[Answer]:
        """The answer in parts as they arrive, the first as soon as the head is there. The server may be silent for at most `idle_s`."""
        reply = self._reply = Reply()
        self._whole = False
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(idle_s, self._still_speaks, idle_s)
        try:
            self._send(request)
            told = False
            while True:
                body = reply.take()
                if body or (reply.status and not told):
                    told = True
                    yield Answer(reply.status, reply.retry_after, body)
                elif reply.ended:
                    return
                else:
                    await self._news()
        except BaseException:
            self.abort()
            raise
        finally:
            self._timer.cancel()
            self._ended()

    def _still_speaks(self, idle_s: float) -> None:
        """End the call if the server has been silent for `idle_s`, else check again when it could have been."""
        left_s = self._heard_at + idle_s - self._loop.time()
        if left_s <= 0:
            self._lost(TimeoutError())
        else:
            self._timer = self._loop.call_later(left_s, self._still_speaks, idle_s)

    def abort(self) -> None:
        self.open = False
        if self._transport is not None:
            self._transport.abort()

    def _ended(self) -> None:
        if self._reply is not None and not self._reply.lasting:
            self.abort()
        self._reply = None
        self.idle_since = self._loop.time()

    def _send(self, data: bytes) -> None:
        for layer in reversed(self._layers):
            data = layer.seal(data)
        if data and self._transport is not None:
            self._transport.write(data)

    async def _news(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    # ---- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.open = True

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        data: Bytes = memoryview(self._buffer)[:nbytes]
        self._heard_at = self._loop.time()
        try:
            for layer in self._layers:
                data = layer.open(data)
            if any(layer.owes for layer in self._layers):
                self._send(b"")
            if data:
                if self._reply is None:
                    self.abort()  # no call is under way
                    return
                self._reply.feed(data)
        except (ssl.SSLError, TooLong) as error:
            self._lost(error)
        except ValueError:
            self._lost(ConnectionError("the answer is not HTTP"))
        else:
            if not self._whole or self._reply is None or self._reply.ended:
                self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        if self._reply is not None and error is None:
            self._reply.cut()
            if self._reply.ended:
                self._wake()
        self._lost(error or ConnectionResetError("closed by the server"))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _lost(self, error: Exception) -> None:
        self._error = self._error or error
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self.abort()
