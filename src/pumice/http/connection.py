"""One connection to a server: set up layer by layer, then used for one call at a time. An answer is read whole, or in parts as they arrive.

A `Reply` reads an answer as it arrives, with the parser that the server side uses, too.
"""

import asyncio
import re
import ssl
import zlib
from collections.abc import AsyncIterator
from typing import NamedTuple

from pumice.http.parser import Body, BodyTooLong, Framing, Head, Malformed, take_head
from pumice.http.tls_layer import Bytes, TlsLayer

_STATUS_LINE = re.compile(r"HTTP/1\.[01] ([1-9][0-9]{2})(?: .*)?\Z")
_WARNING = re.compile(r'(?:\A|, *)299 [^ ]+ "((?:[^"\\]|\\.)*)"')
GZIP = 16 + zlib.MAX_WBITS
MOST_BYTES = 1 << 30  #: of an answer that is read whole, zipped or not, if its caller allows no fewer
MOST_INTERIM = 32  #: heads of 1xx before an answer
_NO_BODY = (204, 304)


class TooLong(OSError):
    """An answer has more bytes than the caller allows."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"more than {max_bytes} bytes")


class Reply:
    """An answer, fed with bytes. `take` returns the new part of the body, `whole` all of it at its end. `status` is 0 before the head."""

    __slots__ = ("_body", "_interim", "_max_bytes", "_raw", "_zipped", "content_type", "lasting", "retry_after", "status", "warnings")

    def __init__(self, max_bytes: int | None = MOST_BYTES) -> None:
        """With None the body may be of any length: whoever takes it piece by piece keeps nothing."""
        self.status = 0
        self.content_type = self.retry_after = ""
        self.warnings: tuple[str, ...] = ()
        self.lasting = True  #: the connection can serve another call after this one
        self._raw = bytearray()
        self._body: Body | None = None  #: after the head
        self._interim = 0
        self._zipped = False
        self._max_bytes = max_bytes

    @property
    def ended(self) -> bool:
        return self._body is not None and self._body.ended

    def feed(self, data: bytes | memoryview) -> None:
        """Parse more bytes of the answer. Raises Malformed if it is not HTTP, and TooLong."""
        self._raw += data
        try:
            while self._body is None:
                head = take_head(self._raw)
                if head is None:
                    return
                self._begin(head)
            self._body.read(self._raw)
        except BodyTooLong:
            raise TooLong(self._max_bytes or 0) from None
        if self._body.ended and self._raw:
            self.lasting = False  # nobody asked for what follows

    def take(self) -> bytes:
        """The part of the body that has arrived since the last call."""
        if self._body is None:
            return b""
        part = bytes(self._body.data)
        self._body.data.clear()
        return part

    def whole(self) -> bytes:
        """The body, unzipped if it is zipped. Raises OSError."""
        body = self.take()
        try:
            return self._unzipped(body, self._max_bytes or MOST_BYTES) if self._zipped and body else body
        except zlib.error as error:
            raise ConnectionError(f"the answer cannot be unzipped: {error}") from error

    def _unzipped(self, body: bytes, most: int) -> bytes:
        opening = zlib.decompressobj(GZIP)
        found = opening.decompress(body, most)
        if opening.unconsumed_tail:
            raise TooLong(most)
        if not opening.eof:
            raise ConnectionError("the answer cannot be unzipped: it is not whole")
        return found

    def cut(self) -> None:
        """Note that the connection has ended: this ends an answer that has no length and no chunks."""
        if self._body is not None:
            self._body.close()

    def _begin(self, head: Head) -> None:
        """Begin with the body, unless this is a head of 1xx: those come before the answer itself, and are skipped."""
        line = _STATUS_LINE.match(head.first)
        if line is None:
            raise Malformed(400, "not HTTP")
        status = int(line[1])
        if status < 200:
            self._interim += 1
            if self._interim > MOST_INTERIM:
                raise Malformed(400, f"more than {MOST_INTERIM} heads before the answer")
            return
        headers, version = head.headers, head.first[:8]
        framing = 0 if status in _NO_BODY else head.framing(version, unstated=Framing.CLOSE)
        self._body = Body(framing, self._max_bytes)
        closes = "close" in map(str.strip, headers.get("connection", "").lower().split(","))
        self.lasting = version != "HTTP/1.0" and not closes and framing is not Framing.CLOSE
        self.content_type, self.retry_after = headers.get("content-type", ""), headers.get("retry-after", "")
        self.warnings = tuple(re.sub(r"\\(.)", r"\1", _utf8(text)) for text in _WARNING.findall(headers.get("warning", "")))
        self._zipped = headers.get("content-encoding", "").lower() == "gzip"
        self.status = status


def _utf8(text: str) -> str:
    """The text of a header, which Kubernetes writes in UTF-8."""
    return text.encode("latin-1").decode(errors="replace")


class Answer(NamedTuple):
    status: int
    retry_after: str
    body: bytes
    warnings: tuple[str, ...] = ()  #: the texts of its Warning headers
    content_type: str = ""


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
        self._last_read_at = 0.0

    # ---- setting up; raises OSError

    async def secure(self, context: ssl.SSLContext, name: str) -> None:
        """Start TLS. Everything after this goes through it."""
        layer = TlsLayer(context, name)
        layer.open(b"")
        self._send(layer.seal(b""))
        self._layers.append(layer)
        while not layer.ready:
            await self._progress()

    async def tunnel(self, request: bytes) -> None:
        """Send a CONNECT request to a proxy. Everything after this goes to the server that the request names."""
        reply = self._reply = Reply()
        self._send(request)
        while not reply.status:
            await self._progress()
        self._reply = None
        if reply.status >= 300:
            raise ConnectionError(f"the proxy answered {reply.status}")

    # ---- calls; raises OSError, TimeoutError among them

    async def ask(self, request: bytes, timeout_s: float, max_bytes: int = MOST_BYTES) -> Answer:
        reply = self._reply = Reply(max_bytes)
        self._whole = True
        timer = self._loop.call_later(timeout_s, self._lost, TimeoutError())
        try:
            self._send(request)
            while not reply.ended:
                await self._progress()
            return Answer(reply.status, reply.retry_after, reply.whole(), reply.warnings, reply.content_type)
        except BaseException:
            self.abort()
            raise
        finally:
            timer.cancel()
            self._ended()

    async def listen(self, request: bytes, idle_s: float) -> AsyncIterator[Answer]:
        """The answer in parts as they arrive, the first as soon as the head is there. The server may be silent for at most `idle_s`."""
        reply = self._reply = Reply(None)
        self._whole = False
        self._last_read_at = self._loop.time()
        self._timer = self._loop.call_later(idle_s, self._still_speaks, idle_s)
        try:
            self._send(request)
            begun = False
            while True:
                body = reply.take()
                if body or (reply.status and not begun):
                    begun = True
                    yield Answer(reply.status, reply.retry_after, body, content_type=reply.content_type)
                elif reply.ended:
                    return
                else:
                    await self._progress()
        except BaseException:
            self.abort()
            raise
        finally:
            self._timer.cancel()
            self._ended()

    def _still_speaks(self, idle_s: float) -> None:
        """End the call if the server has been silent for `idle_s`, else check again when it could have been."""
        left_s = self._last_read_at + idle_s - self._loop.time()
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

    async def _progress(self) -> None:
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
        self._last_read_at = self._loop.time()
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
        except Malformed as error:
            self._lost(ConnectionError(f"the answer is not HTTP: {error}"))
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
