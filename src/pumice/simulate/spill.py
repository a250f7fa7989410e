"""Data that is on disk until it is read again, so that it takes no memory. Its file has no name, and is gone when its process ends."""

from array import array
from collections.abc import Iterator
from functools import cached_property
from io import SEEK_END
from math import ceil
from tempfile import TemporaryFile
from typing import IO, Any
from weakref import finalize

import numpy as np

from pumice.scheduler.model import NDArray

Column = NDArray[Any]
Row = tuple[Any, ...]
BLOCK = 8192  #: how many numbers are written together
AT_ONCE = 1 << 16  #: how many numbers are processed together
DIGIT = 16  #: bits of one digit


class Spill:
    @cached_property
    def _file(self) -> IO[bytes]:
        return _closed_with(self, TemporaryFile())

    def add(self, data: Any) -> int:
        """Append bytes, and return their position."""
        begin = self._file.seek(0, SEEK_END)
        self._file.write(data)
        return begin

    def read(self, begin: int, count: int) -> bytes:
        """The bytes from a position on."""
        self._file.seek(begin)
        return self._file.read(count)


def _closed_with(owner: Spill, file: IO[bytes]) -> IO[bytes]:
    finalize(owner, file.close)
    return file


class SpilledValues:
    """Numbers, none below 0, of which most are on disk. Statistics of them (`Joined`) are exactly what NumPy would compute."""

    __slots__ = ("_block", "_last", "_spill", "_written")

    def __init__(self, spill: Spill, block: int = BLOCK) -> None:
        self._spill, self._block = spill, block
        self._last = array("d")
        self._written: list[int] = []  #: the position of each block

    def append(self, value: float) -> None:
        self._last.append(value)
        if len(self._last) == self._block:
            self._written.append(self._spill.add(self._last))
            del self._last[:]

    def extend(self, values: Column) -> None:
        for value in values.tolist():
            self.append(value)

    def __len__(self) -> int:
        return len(self._written) * self._block + len(self._last)

    def __iter__(self) -> Iterator[Column]:
        """The numbers, in blocks."""
        for begin in self._written:
            yield np.frombuffer(self._spill.read(begin, 8 * self._block))
        yield np.array(self._last)


class Joined:
    """Several `SpilledValues` as one, one after the other."""

    def __init__(self, parts: list[SpilledValues]) -> None:
        self._parts = parts
        self.count = sum(map(len, parts))

    def __iter__(self) -> Iterator[Column]:
        return (block for part in self._parts for block in part)

    @property
    def greatest(self) -> float:
        return max(float(block.max(initial=0.0)) for block in self)

    @property
    def mean(self) -> float:
        """The mean, summed up in the order of numpy.mean, which sums halves of its input: so even the last digit is the same."""
        blocks, rest = iter(self), np.zeros(0)

        def following(count: int) -> float:
            nonlocal rest
            if count > AT_ONCE:
                half = count // 2 - count // 2 % 8
                return following(half) + following(count - half)
            while len(rest) < count:
                rest = np.concatenate((rest, next(blocks)))
            found, rest = rest[:count], rest[count:]
            return float(found.sum())

        return following(self.count) / self.count

    def ranked(self, rank: int) -> float:
        """The value of this rank; the smallest has rank 0. The bits of these numbers sort as they do: one digit is found at a time."""
        shift, prefix, left = 64, 0, self.count
        while left > AT_ONCE and shift:
            shift -= DIGIT
            counts = np.zeros(1 << DIGIT, np.int64)
            for block in self:
                digits = (block.view(np.uint64) >> np.uint64(shift)) - np.uint64(prefix << DIGIT)
                counts += np.bincount(digits[digits < 1 << DIGIT].astype(np.int64), minlength=1 << DIGIT)
            sums = np.cumsum(counts)
            digit = int(np.searchsorted(sums, rank, side="right"))
            left = int(counts[digit])
            rank -= int(sums[digit]) - left
            prefix = prefix << DIGIT | digit
        if not shift:
            return float(np.array([prefix], np.uint64).view(np.float64)[0])
        alike = [block[block.view(np.uint64) >> np.uint64(shift) == prefix] if shift < 64 else block for block in self]
        return float(np.partition(np.concatenate(alike), rank)[rank])

    def reached(self, percent: float) -> float:
        """The smallest value that `percent` of the values do not exceed."""
        return self.ranked(ceil(percent * self.count / 100) - 1)
