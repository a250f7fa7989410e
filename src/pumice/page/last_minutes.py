"""The last minutes, for readers who go back in time: the state as it was then, and the changes since, as they were sent to readers.

The changes are bounded in time and in bytes; a change that is too old becomes part of the state.
"""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pumice.page.sent_rows import KEPT_BYTES, KEPT_S, KINDS


class PastChange(NamedTuple):
    """One message to readers. `at` is the time of the cluster's clock, `cycle` is the number of the last cycle at that time."""

    number: int
    at: float
    cycle: int
    rows: Mapping[str, Mapping[str, bytes | None]]
    cycles: list[bytes]

    @property
    def size(self) -> int:
        return sum(len(name) + len(row or b"") for rows in self.rows.values() for name, row in rows.items()) + sum(map(len, self.cycles))


class LastMinutes:
    """The state some minutes ago, and the messages since then. The clock is in seconds since any moment."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.first = PastChange(0, 0.0, 0, {}, [])  #: the state before `changes`, once there is one; its cycles are not kept
        self._rows: dict[str, dict[str, bytes]] = {kind: {} for kind in KINDS}
        self._noted: deque[tuple[float, int, PastChange]] = deque()
        self._size = 0

    @property
    def changes(self) -> list[PastChange]:
        return [change for _, _, change in self._noted]

    def note(self, change: PastChange) -> None:
        now_s, size = self._clock(), change.size
        self._noted.append((now_s, size, change))
        self._size += size
        while self._noted and (not self.first.number or self._size > KEPT_BYTES or self._noted[0][0] < now_s - KEPT_S):
            self._fold()

    def _fold(self) -> None:
        _, size, change = self._noted.popleft()
        self._size -= size
        for kind, rows in change.rows.items():
            for name, row in rows.items():
                if row is None:
                    self._rows[kind].pop(name, None)
                else:
                    self._rows[kind][name] = row
        self.first = change._replace(rows=self._rows, cycles=[])
