"""A long answer that is made while it is sent: one piece at a turn of the loop, and only when the client has taken the one before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from pumice.web.messages import JSON, Pipe


class Pieces:
    """A stream of what an iterator gives."""

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
        piece = next(self._pieces, None)
        if piece is None:
            self._pipe.finish()
        else:
            self._pipe.send(piece)
            self.resume()
