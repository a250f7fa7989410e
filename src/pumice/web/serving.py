"""HTTP/1.1 as a server speaks it: an asyncio.Protocol that parses by hand, since that is several times faster than a framework.

Keep-alive and pipelining; bodies by length or chunked; limits on heads, bodies and time. One request of a connection is answered at a
time, in order; while its answer is awaited, or waits for the journal, or is streamed, the next ones wait in the buffer.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from pumice.web.messages import Answer, Request, Respond, Response, Stream
from pumice.web.request_head import MAX_HEAD, Head, Malformed

LARGEST_BODY = 3 * 1024 * 1024
READ_TIMEOUT_S = 30.0  #: for the rest of a request that has begun
IDLE_TIMEOUT_S = 600.0
MAX_CHUNK_LINE = 256

_log = logging.getLogger(__name__)
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,8})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\Z")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def _in_plain_words(error: Malformed) -> Response:
    return Response.text(f"{error}\n", error.code)


def _at_once(version: int) -> bool:
    return True


def _never(version: int, then: Callable[[], None]) -> None:
    raise NotImplementedError


class Connection(asyncio.Protocol):
    """One client. `durable` says whether a version is in the journal, `when_durable` calls back once it is."""

    def __init__(self, respond: Respond, door: Door) -> None:
        self._respond = respond
        self._door = door
        self._buffer = bytearray()
        self._head: Head | None = None
        self._chunks = bytearray()
        self._continued = False
        self._busy = False
        self._keep_alive = True
        self._stream: Stream | None = None
        self._full = False
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.last_heard_s = 0.0

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=4 * 1024 * 1024)
        self._door.connections.add(self)
        self.last_heard_s = self._door.time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.connections.discard(self)
        self._end_stream()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        if self._stream is not None:
            self._stream.resume()

    def data_received(self, data: bytes) -> None:
        self.last_heard_s = self._door.time()
        self._buffer += data
        if self._busy:
            if len(self._buffer) > self._door.largest_body + MAX_HEAD:
                self._transport.pause_reading()
            return
        self._serve()

    def is_overdue(self, now_s: float) -> bool:
        if self._busy:
            return False
        waiting_s = now_s - self.last_heard_s
        return waiting_s > (READ_TIMEOUT_S if self._buffer or self._head else IDLE_TIMEOUT_S)

    def abort(self) -> None:
        self._transport.abort()

    def close(self) -> None:
        self._end_stream()
        self._transport.close()

    # Requests

    def _serve(self) -> None:
        """Answer as many requests as the buffer holds, one after the other."""
        try:
            while not self._busy and not self._transport.is_closing():
                request = self._next_request()
                if request is None:
                    return
                self._answer(self._respond(request))
        except Malformed as error:
            self._keep_alive = False
            self._send_response(self._door.refuse(error))

    def _next_request(self) -> Request | None:
        """A whole request from the buffer, or None until more has come."""
        if self._head is None:
            while self._buffer[:2] == b"\r\n":
                del self._buffer[:2]
            end = self._buffer.find(b"\r\n\r\n", 0, MAX_HEAD)
            if end < 0:
                if len(self._buffer) >= MAX_HEAD:
                    raise Malformed(431, "the head of the request is too long")
                if self._buffer.count(b"\n") != self._buffer.count(b"\r\n"):
                    raise Malformed(400, "a line ends without CR")
                return None
            self._head = Head(bytes(self._buffer[:end]))
            del self._buffer[: end + 4]
        head = self._head
        body = self._chunked_body() if head.chunked else self._sized_body(head.length)
        if body is None:
            if not self._continued and head.headers.get("expect", "").lower() == "100-continue":
                self._continued = True
                self._transport.write(_CONTINUE)
            return None
        self._head = None
        self._continued = False
        self._keep_alive = head.keep_alive
        return Request(head.method, head.target, head.headers, body)

    def _sized_body(self, length: int) -> bytes | None:
        self._door.check_length(length)
        if len(self._buffer) < length:
            return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return body

    def _chunked_body(self) -> bytes | None:
        while True:
            end = self._buffer.find(b"\r\n", 0, MAX_CHUNK_LINE)
            if end < 0:
                if len(self._buffer) >= MAX_CHUNK_LINE:
                    raise Malformed(400, "a chunk is malformed")
                return None
            line = _CHUNK_LINE.match(self._buffer, 0, end)
            if line is None:
                raise Malformed(400, "the size of a chunk is malformed")
            size = int(line[1], 16)
            self._door.check_length(len(self._chunks) + size)
            if len(self._buffer) < end + 2 + size + 2:
                return None
            if self._buffer[end + 2 + size : end + 4 + size] != b"\r\n":
                raise Malformed(400, "a chunk has not the size it says (trailers are not accepted)")
            self._chunks += self._buffer[end + 2 : end + 2 + size]
            del self._buffer[: end + 4 + size]
            if size == 0:
                body = bytes(self._chunks)
                self._chunks.clear()
                return body

    # Answers

    def _answer(self, answer: Answer) -> None:
        if isinstance(answer, asyncio.Future):
            self._busy = True
            answer.add_done_callback(self._send_awaited)
        elif not isinstance(answer, Response):
            self._begin_stream(answer)
        elif self._door.durable(answer.version):
            self._send_response(answer)
        else:
            self._busy = True
            self._door.when_durable(answer.version, lambda: self._send_late(answer))

    def _send_awaited(self, answer: asyncio.Future[Response]) -> None:
        if answer.cancelled() or self._transport.is_closing():
            self._transport.abort()
        else:
            self._send_late(answer.result())

    def _send_late(self, response: Response) -> None:
        self._send_response(response)
        self._next()

    def _next(self) -> None:
        """The answer under way is finished: go on with what came meanwhile."""
        self._busy = False
        if not self._transport.is_closing():
            self._transport.resume_reading()
            self._serve()

    def _send_response(self, response: Response) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in response.headers) if response.headers else ""
        closing = "" if self._keep_alive else "Connection: close\r\n"
        fields = f"Content-Type: {response.content_type}\r\n{extra}{closing}Content-Length: {len(response.body)}\r\n\r\n"
        self._transport.write((_STATUS_LINES[response.status] + fields).encode("latin-1") + response.body)
        if not self._keep_alive:
            self._transport.close()

    # Streams: this connection is the pipe of the watch it serves

    def _begin_stream(self, stream: Stream) -> None:
        self._busy = True
        self._stream = stream
        closing = "" if self._keep_alive else "Connection: close\r\n"
        self._transport.write(
            f"{_STATUS_LINES[200]}Content-Type: {stream.content_type}\r\n{closing}Transfer-Encoding: chunked\r\n\r\n".encode("latin-1")
        )
        stream.start(self)

    def send(self, chunk: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))

    def is_full(self) -> bool:
        return self._full

    def finish(self) -> None:
        self._end_stream()
        self._transport.write(b"0\r\n\r\n")
        if self._keep_alive:
            self._next()
        else:
            self._transport.close()

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.stop()


class Door:
    """What all connections share: who they are, how large a body may be, and how it is said that a request is none."""

    def __init__(
        self,
        time: Callable[[], float],
        *,
        largest_body: int = LARGEST_BODY,
        refuse: Callable[[Malformed], Response] = _in_plain_words,
        durable: Callable[[int], bool] = _at_once,
        when_durable: Callable[[int, Callable[[], None]], None] = _never,
    ) -> None:
        self.connections: set[Connection] = set()
        self.time = time
        self.largest_body = largest_body
        self.refuse = refuse
        self.durable = durable  #: whether a version is in the journal
        self.when_durable = when_durable  #: calls back once it is

    def check_length(self, length: int) -> None:
        if length > self.largest_body:
            raise Malformed(413, f"Request entity too large: limit is {self.largest_body}")

    def sweep(self) -> None:
        """Cut off clients that began a request and do not go on, or say nothing for long."""
        now_s = self.time()
        for connection in [connection for connection in self.connections if connection.is_overdue(now_s)]:
            connection.abort()

    def close(self) -> None:
        for connection in list(self.connections):
            connection.close()
