"""The bytes that wait for one client.

Parts wait here as they are, not copied and not yet encrypted, and go to the transport in small pieces, as fast as it takes them. So a
client that does not read costs the memory of two pieces, and of parts that many clients may share, however much waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable

PIECE = 64 * 1024


class Outgoing:
    """The bytes that wait for one client. `seal` encrypts them, or returns them as they are."""

    def __init__(self, transport: asyncio.Transport, seal: Callable[[bytes], bytes]) -> None:
        transport.set_write_buffer_limits(high=PIECE)
        self._transport = transport
        self._seal = seal
        self._parts: deque[bytes | memoryview] = deque()
        self.size = 0  #: bytes that wait
        self.stopped = False  #: the transport takes no bytes for now

    def send(self, *parts: bytes) -> None:
        self._parts.extend(parts)
        self.size += sum(map(len, parts))
        self.go_on()

    def go_on(self) -> None:
        while self.size and not self.stopped:
            self._transport.write(self._seal(self._piece()))

    def _piece(self) -> bytes:
        if self.size <= PIECE:
            piece = b"".join(self._parts)
            self._parts.clear()
            self.size = 0
            return piece
        first = self._parts.popleft()
        if len(first) > PIECE:
            whole = memoryview(first)
            self._parts.appendleft(whole[PIECE:])
            piece = bytes(whole[:PIECE])
        else:
            gathered, size = [first], len(first)
            while self._parts and size + len(self._parts[0]) <= PIECE:
                gathered.append(self._parts.popleft())
                size += len(gathered[-1])
            piece = b"".join(gathered)
        self.size -= len(piece)
        return piece
