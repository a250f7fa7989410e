"""Rows that come in any order, and are passed on in the order of their numbers, from 0 on.

Early rows wait: the latest in memory, the others on disk, in blocks that are sorted. A single job that runs for a month delays the file,
but fills no memory.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import msgspec

from pumice.simulate.spill import Row, Spill

MOST_KEPT = 4096
BLOCK = 256  #: how many rows are written together

_DECODER = msgspec.msgpack.Decoder(dict[int, tuple[Any, ...]])


class RowsInOrder:
    """Passes each row to `sink` as soon as all rows before it have been passed on."""

    def __init__(self, sink: Callable[[Row], None]) -> None:
        self._sink = sink
        self._next = 0
        self._kept: dict[int, Row] = {}
        self._read: dict[int, Row] = {}  #: the rest of blocks of which the first row has been passed on
        self._blocks: list[tuple[int, int, int]] = []  #: those on disk, as a heap: number of the first row, position, length
        self._spill = Spill()

    def add(self, number: int, row: Row) -> None:
        self._kept[number] = row
        if number == self._next:
            self._go()
        elif len(self._kept) >= MOST_KEPT:
            self._write()

    def _go(self) -> None:
        """Pass on the rows that need not wait any longer."""
        while True:
            if self._blocks and self._blocks[0][0] == self._next:
                _, begin, length = heappop(self._blocks)
                self._read |= _DECODER.decode(self._spill.read(begin, length))
            row = self._kept.pop(self._next, None) or self._read.pop(self._next, None)
            if row is None:
                return
            self._sink(row)
            self._next += 1

    def _write(self) -> None:
        numbers = sorted(self._kept)
        for first in range(0, len(numbers), BLOCK):
            data = msgspec.msgpack.encode({number: self._kept[number] for number in numbers[first : first + BLOCK]})
            heappush(self._blocks, (numbers[first], self._spill.add(data), len(data)))
        self._kept.clear()
