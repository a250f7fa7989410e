"""A file of records in a chain, which is only ever appended to.

Each record says which numbers it holds (its first and its last), carries its own checksum, and repeats the checksum of the record before
it. In place of that, the first record repeats the checksum of a name, usually the file's. So a changed byte, a missing record and a file in
another file's place are all detected. The head of each record has a checksum too: the next intact record behind a damaged place is found
again, so that readers can say which numbers are lost.
"""

import hashlib
import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

_MAGIC = b"\xf5PJ1"
_FRONT = struct.Struct("<4sQQI16s")  #: magic, first, last, length of the payload, checksum of the record before
_REST = struct.Struct("<16sI")  #: checksum of front and payload, checksum of the head
_HEAD_SIZE = _FRONT.size + _REST.size


class ChainedRecord(Struct, frozen=True):
    """An intact record. `end` is the position in the file at which the record ends."""

    first: int
    last: int
    payload: bytes
    checksum: bytes
    end: int


class Damage(Struct, frozen=True):
    """Bytes that hold no intact record. `after` is the last number before them (None if no record precedes them), `before` the first number
    behind them (None at the end of the file)."""

    start: int
    end: int
    after: int | None
    before: int | None


def seed(name: str) -> bytes:
    """The checksum that the first record of a file of this name repeats."""
    return _checksum(name.encode(), b"")


def sealed(first: int, last: int, payload: bytes, previous: bytes) -> tuple[bytes, bytes]:
    """The bytes of a record for the file, and its checksum. `previous` is the checksum of the record before it."""
    front = _FRONT.pack(_MAGIC, first, last, len(payload), previous)
    checksum = _checksum(front, payload)
    return b"".join((front, checksum, struct.pack("<I", zlib.crc32(front + checksum)), payload)), checksum


def read(path: Path, name: str = "") -> Iterator[ChainedRecord | Damage]:
    """The records and the damaged places of a file, in order. `name` is the name from which its chain starts, if not the file's."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield from _read(data, seed(name or path.name))


def _read(data: mmap.mmap, previous: bytes | None) -> Iterator[ChainedRecord | Damage]:
    """The records and the damaged places. The previous checksum is unknown (None) behind damage, and is then not compared."""
    position, after = 0, None
    while position < len(data):
        record = _record_at(data, position, previous)
        if record is None:
            record = _next_record(data, position)
            start = record.end - len(record.payload) - _HEAD_SIZE if record else len(data)
            yield Damage(position, start, after, record.first if record else None)
            if record is None:
                return
        yield record
        position, after, previous = record.end, record.last, record.checksum


def _record_at(data: mmap.mmap, position: int, previous: bytes | None) -> ChainedRecord | None:
    head = data[position : position + _HEAD_SIZE]
    if len(head) < _HEAD_SIZE:
        return None
    magic, first, last, length, follows = _FRONT.unpack_from(head)
    checksum, of_head = _REST.unpack_from(head, _FRONT.size)
    if magic != _MAGIC or of_head != zlib.crc32(head[:-4]) or (previous is not None and follows != previous):
        return None
    end = position + _HEAD_SIZE + length
    payload = data[position + _HEAD_SIZE : end]
    if len(payload) < length or checksum != _checksum(head[: _FRONT.size], payload):
        return None
    return ChainedRecord(first, last, payload, checksum, end)


def _next_record(data: mmap.mmap, position: int) -> ChainedRecord | None:
    while (position := data.find(_MAGIC, position)) >= 0:
        record = _record_at(data, position, None)
        if record is not None:
            return record
        position += 1
    return None


def _checksum(front: bytes, payload: bytes) -> bytes:
    made = hashlib.blake2b(front, digest_size=16)
    made.update(payload)
    return made.digest()
