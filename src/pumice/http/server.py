"""The server side of HTTP/1.1: an asyncio.Protocol over `parser`, since that is several times faster than a framework.

It supports keep-alive and pipelining, and bodies with a length or in chunks. A connection answers one request at a time, in order. While
an answer is awaited, waits for the journal, or is streamed, the next requests wait in the buffer.

A client that requests nothing costs little: heads, bodies, connections and the bytes that wait in either direction are limited, and so is
the time of every wait for a client. TLS is done here too, since asyncio's TLS keeps a quarter of a megabyte for each connection.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import cast

from pumice.http.loopback import is_loopback
from pumice.http.messages import Answer, Request, Respond, Response, Stream, Takeover
from pumice.http.parser import MAX_HEAD, Body, BodyTooLong, Malformed, take_head
from pumice.http.request_head import RequestHead
from pumice.http.tls_layer import TlsLayer
from pumice.http.watchdog import Handler
from pumice.http.write_buffer import Outgoing

LARGEST_BODY = 3 * 1024 * 1024
READ_TIMEOUT_S = 30.0  #: from the first byte of a request to its last, and from a connection to its first request
IDLE_TIMEOUT_S = 90.0  #: between two requests
WRITE_TIMEOUT_S = 60.0  #: for a client that reads nothing of its answer
MOST_CONNECTIONS = 4096
FILES_LEFT = 128  #: file descriptors that are left for everything except connections
RECEIVED_BYTES = 256 * 1024 * 1024  #: of all requests that are not complete yet
SENT_BYTES = 256 * 1024 * 1024  #: of all answers that wait for their clients
SMALL = 64 * 1024  #: bytes; a connection that holds no more is not cut off when RECEIVED_BYTES is exceeded

_log = logging.getLogger(__name__)
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def _in_plain_words(error: Malformed) -> Response:
    return Response.text(f"{error}\n", error.code)


def _at_once(version: int) -> bool:
    return True


def _never(version: int, then: Callable[[], None]) -> None:
    raise NotImplementedError


class ServerConnection(asyncio.Protocol):
    """The connection of one client. `respond` answers its requests; `door` is what all connections share."""

    def __init__(self, respond: Respond, door: Connections) -> None:
        self._respond = respond
        self._door = door
        self._tls = TlsLayer(door.tls, None) if door.tls else None
        self._buffer = bytearray()
        self._head: RequestHead | None = None
        self._body: Body | None = None  #: of the request whose head that is
        self._received = 0  #: bytes of `_buffer` and `_body`, as they are counted in the door
        self._continued = False
        self._busy = False
        self._keep_alive = True
        self._local = False
        self._framed = True  #: a stream is sent in chunks; for a client of HTTP/1.0 it ends when the connection is closed
        self._ending = False
        self._taken_over = False  #: the connection speaks another protocol than HTTP
        self._stream: Stream | None = None
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._out: Outgoing = cast(Outgoing, None)
        self.since_s = 0.0  #: since when the client is waited for, or does not read
        self._patience_s = READ_TIMEOUT_S

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._out = Outgoing(self._transport, self._tls.seal if self._tls else bytes)
        self._local = is_loopback(transport.get_extra_info("peername"))
        self.since_s = self._door.time()
        self._door.admit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.connections.discard(self)
        self._buffer.clear()
        self._head = self._body = None
        self._account()
        self._end_stream()

    def pause_writing(self) -> None:
        self._out.stopped = True
        self.since_s = self._door.time()

    def resume_writing(self) -> None:
        self._out.stopped = False
        self._out.go_on()
        self.since_s = self._door.time()
        self._sent()

    def data_received(self, data: bytes) -> None:
        if self._tls is not None:
            data = self._opened(self._tls, data)
        if not data or self._ending:
            return
        if isinstance(self._stream, Takeover) and self._taken_over:
            self._stream.received(data)
            return
        if not (self._buffer or self._head or self._busy):
            self._wait_for_client(READ_TIMEOUT_S)
        self._buffer += data
        if not (self._busy or self._out.stopped):
            self._serve()
        elif len(self._buffer) > self._door.largest_body + MAX_HEAD:
            self._transport.pause_reading()
        self._account()

    def _opened(self, tls: TlsLayer, data: bytes) -> bytes:
        try:
            return tls.open(data)
        except ssl.SSLError:  # raised, too, when the client ends its side of the connection
            self._end_stream()
            self._ending = True
        finally:
            self._transport.write(tls.seal(b""))  # what TLS itself has to send
            if self._ending:
                self._sent()
        return b""

    def _account(self) -> None:
        """Count in the door the bytes of incomplete requests that are kept here. Cut the client off if all clients hold too many."""
        received = len(self._buffer) + (len(self._body.data) if self._body else 0)
        self._door.received += received - self._received
        self._received = received
        if self._door.received > RECEIVED_BYTES and received > SMALL:
            self.abort()

    def _wait_for_client(self, patience_s: float) -> None:
        self.since_s, self._patience_s = self._door.time(), patience_s

    def is_waited_for(self) -> bool:
        """Whether this connection can go on only when the client sends or reads something."""
        return not self._busy or self._out.stopped

    def is_overdue(self, now_s: float) -> bool:
        return self.is_waited_for() and now_s - self.since_s > (WRITE_TIMEOUT_S if self._out.stopped else self._patience_s)

    def waiting(self) -> int:
        """The number of bytes that wait for the client to read."""
        return self._out.size

    def abort(self) -> None:
        self._transport.abort()

    def close(self) -> None:
        """Close the connection once everything is sent."""
        self._end_stream()
        self._ending = True
        self._sent()

    # Requests

    def _serve(self) -> None:
        """Answer as many requests as the buffer holds, one after the other."""
        try:
            while self._buffer and not (self._busy or self._ending or self._out.stopped):
                request = self._next_request()
                if request is None:
                    return
                with Handler("%s %s", request.method, request.target):
                    answer = self._respond(request)
                self._answer(answer)
        except Malformed as error:
            self._keep_alive = False
            self._send_response(self._door.refuse(error))

    def _next_request(self) -> Request | None:
        """A complete request from the buffer, or None if more bytes must arrive first. Raises Malformed."""
        if self._head is None:
            while self._buffer[:2] == b"\r\n":
                del self._buffer[:2]
            read = take_head(self._buffer)
            if read is None:
                return None
            self._head = RequestHead(read)
        if (body := self._whole_body(self._head)) is None:
            return None
        head, self._head, self._body = self._head, None, None
        self._continued = False
        self._keep_alive, self._framed = head.keep_alive, head.framed
        request = Request(head.method, head.target, head.headers, body, local=self._local)
        request.client = self._tls.client if self._tls is not None else None
        return request

    def _whole_body(self, head: RequestHead) -> bytes | None:
        length = head.framing
        if not length:
            return b""
        if isinstance(length, int) and length <= min(len(self._buffer), self._door.largest_body) and self._body is None:
            body = bytes(self._buffer[:length])
            del self._buffer[:length]
            return body
        try:
            if self._body is None:
                self._body = Body(head.framing, self._door.largest_body)
            self._body.read(self._buffer)
        except BodyTooLong:
            raise Malformed(413, f"Request entity too large: limit is {self._door.largest_body}") from None
        if self._body.ended:
            return bytes(self._body.data)
        if not self._continued and head.headers.get("expect", "").lower() == "100-continue":
            self._continued = True
            self._out.send(_CONTINUE)
        return None

    # Answers

    def _answer(self, answer: Answer, late: bool = False) -> None:
        self._busy = True
        if isinstance(answer, asyncio.Future):
            answer.add_done_callback(self._answer_awaited)
            return
        if not isinstance(answer, Response):
            self._stream = answer
        if self._door.durable(answer.version):
            self._begin(answer, late)
        else:
            self._door.when_durable(answer.version, lambda: self._begin(answer, late=True))

    def _answer_awaited(self, answer: asyncio.Future[Response | Stream]) -> None:
        if answer.cancelled():
            self.abort()
        elif self._ending or self._transport.is_closing():
            if not isinstance(result := answer.result(), Response):
                result.stop()
        else:
            self._answer(answer.result(), late=True)

    def _begin(self, answer: Response | Stream, late: bool) -> None:
        if self._ending or self._transport.is_closing():
            return
        if isinstance(answer, Takeover):
            self._hand_over(answer)
            return
        if not isinstance(answer, Response):
            self._begin_stream(answer)
            return
        self._send_response(answer)
        self._busy = False
        self._wait_for_client(READ_TIMEOUT_S if self._buffer else IDLE_TIMEOUT_S)
        if late:
            self._next()

    def _next(self) -> None:
        """Go on with the requests that have arrived meanwhile, unless an answer is under way."""
        if self._buffer and not (self._busy or self._ending or self._out.stopped):
            self._transport.resume_reading()
            self._serve()
            self._account()

    def _send_response(self, response: Response) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in response.headers) if response.headers else ""
        closing = "" if self._keep_alive else "Connection: close\r\n"
        fields = f"Content-Type: {response.content_type}\r\n{extra}{closing}Content-Length: {len(response.body)}\r\n\r\n"
        self._out.send((_STATUS_LINES[response.status] + fields).encode("latin-1"), response.body)
        if not self._keep_alive:
            self.close()

    # Streams: this connection is the pipe of the stream that it serves

    def _begin_stream(self, stream: Stream) -> None:
        closing = "" if self._keep_alive else "Connection: close\r\n"
        framing = "Transfer-Encoding: chunked\r\n" if self._framed else ""
        self._out.send(f"{_STATUS_LINES[200]}Content-Type: {stream.content_type}\r\n{closing}{framing}\r\n".encode("latin-1"))
        stream.start(self)

    def _hand_over(self, answer: Takeover) -> None:
        """Let the answer have the connection, with what the client has sent ahead."""
        fields = "".join(f"{name}: {value}\r\n" for name, value in (("Connection", "Upgrade"), *answer.headers))
        self._out.send(f"{_STATUS_LINES[101]}{fields}\r\n".encode("latin-1"))
        self._framed = self._keep_alive = False
        self._taken_over = True
        answer.start(self)
        ahead = bytes(self._buffer)
        self._buffer.clear()
        self._transport.resume_reading()
        if ahead and self._stream is answer:
            answer.received(ahead)

    def send(self, *parts: bytes) -> None:
        if self._framed:
            self._out.send(b"%x\r\n" % sum(map(len, parts)), *parts, b"\r\n")
        else:
            self._out.send(*parts)

    def is_full(self) -> bool:
        return self._out.stopped

    def finish(self) -> None:
        self._end_stream()
        self._busy = False
        self._wait_for_client(READ_TIMEOUT_S if self._buffer else IDLE_TIMEOUT_S)
        if self._framed:
            self._out.send(b"0\r\n\r\n")
        if self._keep_alive and self._framed:
            self._next()
        else:
            self.close()

    def _sent(self) -> None:
        """Go on after the client has read some of the bytes that waited: close, answer the next request, or resume the stream."""
        if self._ending and not self._out.size and not self._transport.is_closing():
            if self._tls is not None:
                self._transport.write(self._tls.end())
            self._transport.close()
        elif self._stream is None:
            self._next()
        elif not self._out.stopped:
            self._stream.resume()

    def _end_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.stop()


class Connections:
    """What all connections share: the set of them, the limits on their number and on bodies, and the answer to a malformed request."""

    def __init__(
        self,
        time: Callable[[], float],
        *,
        tls: ssl.SSLContext | None = None,
        largest_body: int = LARGEST_BODY,
        refuse: Callable[[Malformed], Response] = _in_plain_words,
        durable: Callable[[int], bool] = _at_once,
        when_durable: Callable[[int, Callable[[], None]], None] = _never,
    ) -> None:
        self.connections: set[ServerConnection] = set()
        self.time = time
        self.tls = tls
        self.largest_body = largest_body
        self.refuse = refuse
        self.durable = durable  #: whether a version is in the journal
        self.when_durable = when_durable  #: calls back once it is
        self.received = 0  #: bytes of requests that are not complete yet
        self._most = min(MOST_CONNECTIONS, max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_LEFT, 1))

    def admit(self, connection: ServerConnection) -> None:
        """Add a connection. If there are too many, cut off the client waited for longest, or the new client if all others are served."""
        if len(self.connections) >= self._most:
            silent = [one for one in self.connections if one.is_waited_for()]
            victim = min(silent, key=lambda one: one.since_s, default=connection)
            victim.abort()
            self.connections.discard(victim)
            if victim is connection:
                return
        self.connections.add(connection)

    def sweep(self) -> None:
        """Cut off clients that do not finish a request, are idle for too long, or do not read their answers. If too many bytes wait for all
        clients together, cut off those that have not read for longest, too."""
        now_s = self.time()
        for connection in [connection for connection in self.connections if connection.is_overdue(now_s)]:
            connection.abort()
        waiting = sorted((one for one in self.connections if one.waiting()), key=lambda one: one.since_s)
        excess = sum(one.waiting() for one in waiting) - SENT_BYTES
        for connection in waiting:
            if excess > 0:
                excess -= connection.waiting()
                connection.abort()

    def close(self) -> None:
        for connection in list(self.connections):
            connection.close()
            if connection.waiting():
                connection.abort()
