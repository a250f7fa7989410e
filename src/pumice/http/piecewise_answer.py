"""A long answer that is made while it is sent: one piece in a turn of the event loop, once the client has read the piece before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pumice.http.messages import JSON, Pipe
from pumice.http.watchdog import Handler


class Pieces:
    """A stream of the pieces that an iterator yields."""

    content_type = JSON

    def __init__(self, pieces: Iterator[bytes], version: int) -> None:
        self._pieces = pieces
        self.version = version
        self._pipe: Pipe | None = None
        self._scheduled = False

    def start(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self.resume()

    def resume(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._next)

    def stop(self) -> None:
        self._pipe = None

    def _next(self) -> None:
        self._scheduled = False
        if self._pipe is None or self._pipe.is_full():
            return
        with Handler("a piece of a long answer"):
            piece = next(self._pieces, None)
        if piece is None:
            self._pipe.finish()
        else:
            self._pipe.send(piece)
            self.resume()
