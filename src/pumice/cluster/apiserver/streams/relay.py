"""What other servers send, passed on to clients: watches; and connections that go on in another protocol (exec, attach, port-forward)."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress

from pumice.http.connection import Reply
from pumice.http.connection_pool import ConnectionPool
from pumice.http.messages import Pipe, Request, Response, Takeover
from pumice.http.parser import MAX_HEAD, Head, Malformed, take_head

PIECE = 64 * 1024
MOST_WAITING = 64 * 1024 * 1024  #: bytes of a client that the other server does not read
LARGEST_REFUSAL = 3 * 1024 * 1024
_SWITCHED = b" 101"


class Relay:
    """A stream of the pieces that another server sends, as fast as the client reads them."""

    version = 0

    def __init__(self, pieces: AsyncIterator[bytes], content_type: str = "") -> None:
        self.content_type = content_type
        self._pieces = pieces
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, pipe: Pipe) -> None:
        self._task = asyncio.get_running_loop().create_task(self._pass(pipe))

    def resume(self) -> None:
        self._room.set()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _pass(self, pipe: Pipe) -> None:
        with suppress(OSError):
            async for piece in self._pieces:
                if piece:  # an empty chunk would end the stream
                    pipe.send(piece)
                while pipe.is_full():
                    self._room.clear()
                    await self._room.wait()
        pipe.finish()


class Tunnel(Relay, Takeover):
    """What either end sends is passed on as it is. `ahead` are bytes that the other server has sent with its head."""

    def __init__(self, head: Head, ahead: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(_pieces(ahead, reader))
        own = ("connection", "content-length", "transfer-encoding")
        self.headers = tuple((name.title(), value) for name, value in head.headers.items() if name not in own)
        self._writer = writer

    def received(self, data: bytes) -> None:
        self._writer.write(data)
        if self._writer.transport.get_write_buffer_size() > MOST_WAITING:
            self._writer.transport.abort()  # which ends what is passed on

    def stop(self) -> None:
        super().stop()
        self._writer.transport.abort()


async def _pieces(ahead: bytes, reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    yield ahead
    while data := await reader.read(PIECE):
        yield data


async def switched(pool: ConnectionPool, request: Request, head: bytes, tls: ssl.SSLContext | None, timeout_s: float) -> Tunnel | Response:
    """The other server's answer to a request to go on in another protocol: a tunnel, or its refusal. Raises NotConnected or OSError."""
    reader, writer = await pool.begin(request.method, request.target, head, tls)
    goes_on = False
    try:
        async with asyncio.timeout(timeout_s):
            raw = bytearray()
            while b"\r\n\r\n" not in raw and len(raw) < MAX_HEAD:
                raw += await _more(reader)
            if raw[8:12] == _SWITCHED and (begun := take_head(raw)) is not None:
                goes_on = True
                return Tunnel(begun, bytes(raw), reader, writer)
            return await _refusal(reader, raw)
    except Malformed as error:
        raise ConnectionError(f"the answer is not HTTP: {error}") from None
    finally:
        if not goes_on:
            writer.transport.abort()


async def _refusal(reader: asyncio.StreamReader, begun: bytearray) -> Response:
    reply = Reply(LARGEST_REFUSAL)
    reply.feed(memoryview(begun))
    while not reply.ended:
        reply.feed(await _more(reader))
    return Response(reply.whole(), reply.status, reply.content_type)


async def _more(reader: asyncio.StreamReader) -> bytes:
    data = await reader.read(PIECE)
    if not data:
        raise ConnectionResetError("closed by the server")
    return data
