"""What queues held over the last hour, a point each half minute, for tabs that are opened later."""

from __future__ import annotations

from collections import deque

import msgspec

from pumice.page.rows import Amounts, QueueRow

EVERY_S = 30.0
KEPT = 120


class Point(msgspec.Struct):
    at: float
    held: dict[str, Amounts]  #: by queue


class History:
    """See the module. Times are the cluster's."""

    def __init__(self) -> None:
        self._points: deque[Point] = deque(maxlen=KEPT)

    def note(self, at: float, queues: dict[str, bytes]) -> None:
        if not self._points or at - self._points[-1].at >= EVERY_S:
            rows = {name: msgspec.json.decode(row, type=QueueRow) for name, row in queues.items()}
            self._points.append(Point(at, {name: row.held for name, row in rows.items()}))

    def encoded(self) -> bytes:
        return msgspec.json.encode(list(self._points))
