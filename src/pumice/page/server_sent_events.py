"""Server-sent events: one ring of messages for all readers, each of which has its own place in it.

A slow reader takes no memory of its own: it gets messages as fast as it reads them. A reader whose next message is no longer in the ring,
or whose place belongs to an earlier ring, gets `event: reset` and must begin anew.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from math import inf

from pumice.api.integers import integer
from pumice.http.messages import Pipe

KEPT_BYTES = 8 * 1024 * 1024
KEPT = 2000  #: messages
GREETING = b"retry: 1000\n\n"
RESET = b"event: reset\ndata: {}\n\n"


class Feed:
    def __init__(self) -> None:
        self.readers: set[Reader] = set()
        self.begin()

    def begin(self) -> None:
        """Begin with an empty ring. Places that were given out before are no longer valid."""
        self._era = secrets.token_hex(4)
        self._ring: deque[bytes] = deque()
        self._size = 0
        self.last = 0  #: number of the newest message

    @property
    def place(self) -> str:
        """The place of a reader that has all messages so far."""
        return f"{self._era}-{self.last}"

    def publish(self, data: bytes) -> None:
        self.last += 1
        self._ring.append(b"id: %s\ndata: %s\n\n" % (self.place.encode(), data))
        self._size += len(self._ring[-1])
        while self._size > KEPT_BYTES or len(self._ring) > KEPT:
            self._size -= len(self._ring.popleft())
        for reader in list(self.readers):
            reader.resume()

    def after(self, number: int) -> bytes | None:
        """The message after the message with this number; RESET if it is no longer in the ring, None if there is none yet."""
        if number == self.last:
            return None
        first = self.last - len(self._ring) + 1
        return self._ring[number + 1 - first] if first <= number + 1 <= self.last else RESET

    def end(self) -> None:
        for reader in list(self.readers):
            reader.end()

    def reader(self, place: str, lasts_s: float = inf) -> Reader:
        era, _, number = place.partition("-")
        return Reader(self, integer(number, -1) if era == self._era else -1, lasts_s)


class Reader:
    """The stream of one browser tab. `number` is that of the last message that the tab has; -1 if it has none of this ring."""

    content_type = "text/event-stream"
    version = 0

    def __init__(self, feed: Feed, number: int, lasts_s: float) -> None:
        self._feed = feed
        self._number = number
        self._lasts_s = lasts_s
        self._pipe: Pipe | None = None

    def start(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._feed.readers.add(self)
        pipe.send(GREETING)
        loop = asyncio.get_running_loop()
        loop.call_soon(self.resume)
        if self._lasts_s < inf:
            loop.call_later(self._lasts_s, self.end)

    def resume(self) -> None:
        while self._pipe is not None and not self._pipe.is_full():
            message = self._feed.after(self._number)
            if message is None:
                return
            self._number = self._feed.last if message is RESET else self._number + 1
            self._pipe.send(message)

    def end(self) -> None:
        """End the stream, because the server ends or the time of the reader is over."""
        if self._pipe is not None:
            self._pipe.finish()

    def stop(self) -> None:
        self._pipe = None
        self._feed.readers.discard(self)
