"""Forwarded ports of pods: over SPDY, over SPDY inside of WebSocket messages as kubectl does today, and over plain WebSocket.

What is asked on a port is HTTP, and `Containers.page` answers it.
"""

import struct
from collections.abc import Callable
from urllib.parse import parse_qs

from pumice.api import Object
from pumice.cluster.apiserver import status
from pumice.cluster.apiserver.streams.remote import Containers
from pumice.cluster.apiserver.streams.wires import SocketWire, SpdyWire
from pumice.http import spdy
from pumice.http.messages import Pipe, Request

LONGEST_HEAD = 64 * 1024  #: bytes of a request that are not answered yet
Send = Callable[[bytes], None]
FORWARD, TUNNEL = "portforward.k8s.io", "SPDY/3.1+portforward.k8s.io"


class Ports:
    """Connections to the ports of a pod. Each has two streams with the same request id: for its bytes, and for an error."""

    def __init__(self, frames: spdy.Frames, pod: Object, containers: Containers, write: Send) -> None:
        self._frames = frames
        self._pod = pod
        self._containers = containers
        self._write = write
        self._errors: dict[str, int] = {}  #: by request id
        self._connections: dict[int, tuple[str, int, bytearray]] = {}  #: request id, port, and what was asked so far

    def happened(self, event: spdy.Event) -> None:
        if isinstance(event, spdy.Opened):
            self._open(event)
        elif isinstance(event, spdy.Data):
            if event.stream in self._connections:
                self._asked(event.stream, event.data)
        elif event.stream in self._connections:
            self._end(event.stream)
        elif event.reset:
            self._frames.forget(event.stream)

    def _open(self, event: spdy.Opened) -> None:
        request, port = event.headers.get("requestid", ""), event.headers.get("port", "")
        self._write(self._frames.reply(event.stream))
        if event.headers.get("streamtype") == "error":
            self._errors[request] = event.stream
        elif port.isascii() and port.isdigit() and len(port) < 6:
            self._connections[event.stream] = (request, int(port), bytearray())

    def _asked(self, stream: int, data: bytes) -> None:
        _, port, asked = self._connections[stream]
        asked += data
        try:
            for answer in answers(self._containers, self._pod, port, asked):
                self._write(self._frames.data(stream, answer))
        except ConnectionRefusedError:
            self._end(stream, refused(self._pod, port))

    def _end(self, stream: int, error: str = "") -> None:
        request, _, _ = self._connections.pop(stream)
        self._write(self._frames.data(stream, b"", last=True))
        self._frames.forget(stream)
        if (beside := self._errors.pop(request, None)) is not None:
            self._write(self._frames.data(beside, error.encode(), last=True))
            self._frames.forget(beside)


def refused(pod: Object, port: int) -> str:
    return f"error forwarding port {port} to pod {pod['metadata']['uid']}, uid : connection refused: no container has this port"


def answers(containers: Containers, pod: Object, port: int, asked: bytearray) -> list[bytes]:
    """The answers to the HTTP requests that are whole in `asked`, which are taken from it. Raises ConnectionRefusedError."""
    found = []
    while (end := asked.find(b"\r\n\r\n")) >= 0:
        found.append(containers.page(pod, port, bytes(asked[: end + 4])))
        del asked[: end + 4]
    if len(asked) > LONGEST_HEAD:
        raise ConnectionRefusedError
    if not found:
        containers.page(pod, port, b"")
    return found


class SpdyForward(SpdyWire):
    def __init__(self, pod: Object, containers: Containers) -> None:
        super().__init__(FORWARD)
        self.happened = Ports(self.frames, pod, containers, self.write).happened  # type: ignore[method-assign]


class TunnelForward(SocketWire):
    """The same inside of WebSocket messages, as kubectl forwards ports today."""

    def __init__(self, request: Request, pod: Object, containers: Containers) -> None:
        super().__init__(request, TUNNEL)
        self._inner = SpdyForward(pod, containers)

    def start(self, pipe: Pipe) -> None:
        super().start(pipe)
        self._inner.start(self)  # type: ignore[arg-type]

    def send(self, *parts: bytes) -> None:
        self.write(b"".join(parts))

    def finish(self) -> None:
        self.end()

    def message(self, data: bytes) -> None:
        self._inner.received(data)


class SocketForward(SocketWire):
    """Ports over plain WebSocket, as other languages' clients forward them: two channels a port, for its bytes and for an error."""

    def __init__(self, request: Request, protocol: str, pod: Object, containers: Containers, ports: list[int]) -> None:
        super().__init__(request, protocol)
        self._pod = pod
        self._containers = containers
        self._ports = [(port, bytearray()) for port in ports]

    def start(self, pipe: Pipe) -> None:
        super().start(pipe)
        for index, (port, _) in enumerate(self._ports):
            for channel in (2 * index, 2 * index + 1):
                self.write(struct.pack("<BH", channel, port))

    def message(self, data: bytes) -> None:
        index, is_error = divmod(data[0], 2)
        if is_error or index >= len(self._ports):
            return
        port, asked = self._ports[index]
        asked += data[1:]
        try:
            for answer in answers(self._containers, self._pod, port, asked):
                self.write(data[:1] + answer)
        except ConnectionRefusedError:
            self.write(bytes((data[0] + 1,)) + refused(self._pod, port).encode())
            self.end()


def ports_of(request: Request) -> list[int]:
    """The ports that a query names, as `ports=80,81` or `ports=80&ports=81`. Raises StatusError."""
    texts = [each for value in parse_qs(request.target.partition("?")[2]).get("ports", []) for each in value.split(",")]
    if not texts or not all(each.isascii() and each.isdigit() and 0 < int(each[:6]) < 65536 for each in texts):
        raise status.bad_request('query parameter "ports" is required, and names ports by their numbers')
    return [int(each) for each in texts]
