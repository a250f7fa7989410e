"""Rows that come in any order, and are passed on in the order of their numbers, from 0 on.

Early rows wait, a few in memory, the others on disk: a single job that runs for a month delays the file, but fills no memory.
"""

import struct
from collections.abc import Callable

import msgspec

from pumice.simulate.spill import Row, Spill

MOST_KEPT = 4096
_PLACE = struct.Struct("<QQ")  #: position and length of a row; the length is 0 where no row was written


class RowsInOrder:
    """Passes each row to `sink` as soon as all rows before it have been passed on."""

    def __init__(self, sink: Callable[[Row], None]) -> None:
        self._sink = sink
        self._next = 0
        self._kept: dict[int, Row] = {}
        self._written = 0  #: how many rows wait on disk
        self._rows, self._places = Spill(), Spill()

    def add(self, number: int, row: Row) -> None:
        if number == self._next:
            self._go(row)
            while (following := self._take(self._next)) is not None:
                self._go(following)
        elif len(self._kept) < MOST_KEPT:
            self._kept[number] = row
        else:
            data = msgspec.msgpack.encode(row)
            self._places.put(_PLACE.size * number, _PLACE.pack(self._rows.add(data), len(data)))
            self._written += 1

    def _go(self, row: Row) -> None:
        self._sink(row)
        self._next += 1

    def _take(self, number: int) -> Row | None:
        row = self._kept.pop(number, None)
        if row is None and self._written:
            begin, length = _PLACE.unpack(self._places.read(_PLACE.size * number, _PLACE.size).ljust(_PLACE.size, b"\0"))
            if length:
                self._written -= 1
                row = msgspec.msgpack.decode(self._rows.read(begin, length), type=tuple)
        return row
