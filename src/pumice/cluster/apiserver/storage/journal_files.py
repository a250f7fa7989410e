"""The files of a journal: what they hold, and whether anything is missing or damaged.

    snapshot-5000   every object as it was once version 5000 was written
    log-5000        the writes after that, in groups
    acknowledged    how far the newest log had come when the last write was acknowledged

The newest snapshot and the logs from it on are read. A log ends where the next one begins. The last log may end in the middle of a group,
if the process or the machine died while the group was written: such a tail was never acknowledged and is cut off. Anything else that is not
as it was written is damage, and only the user can decide to go on without it.

The journal of earlier versions of Pumice, an SQLite database without checksums. It is read once, then kept beside the new journal.
"""

import logging
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from pumice.api.plural import plural
from pumice.cluster.chained_file import Damage, read

Place = tuple[str, str, str]  #: storage, namespace, name
Write = tuple[str, str, str, msgspec.Raw]  #: a place and the JSON of the object there, `null` if it was deleted

_SNAPSHOT, _LOG, _ACKNOWLEDGED = "snapshot-", "log-", "acknowledged"
_PROGRESS = struct.Struct("<QQQ")
_GONE = b"null"
SHOWN_LOSSES = 5
_writes = msgspec.json.Decoder(list[Write])
_log = logging.getLogger(__name__)


class JournalError(Exception):
    """The data directory cannot be used; the error's text says why."""


class Acknowledged(NamedTuple):
    """How far writes were acknowledged: in which log, up to which byte, up to which version."""

    log: int = 0
    size: int = 0
    version: int = 0

    def packed(self) -> bytes:
        text = _PROGRESS.pack(*self)
        return text + struct.pack("<I", zlib.crc32(text))


class JournalFiles:
    """The files of one directory, as they were read. Only `cut_tail` changes a file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bodies: dict[Place, bytes] = {}  #: the last state of each object
        self.version = 0  #: the version of the last write
        self.checksum = b""  #: the checksum of the last record of the last log; empty if that log has no record
        self.size = 0  #: the bytes of all logs that were read
        self.log = 0  #: the number of the last log
        self.losses: list[str] = []  #: sentences that say what is damaged, and what would be lost
        self._tail: Damage | None = None
        self._acknowledged = self._progress()
        self._snapshot()
        self._logs()

    @property
    def used(self) -> bool:
        return bool(_numbers(self.directory, _SNAPSHOT) or _numbers(self.directory, _LOG))

    def cut_tail(self) -> None:
        """Cut off the unfinished group at the end of the last log, if there is one."""
        if self._tail is not None:
            path, length = _log_path(self.directory, self.log), self._tail.end - self._tail.start
            os.truncate(path, self._tail.start)
            _log.warning("%s: %d bytes at its end were cut off: a write that was under way, acknowledged to nobody", path, length)

    def _progress(self) -> Acknowledged:
        """How far writes were acknowledged; nothing if the file is missing or damaged. Then a lost end of the last log is not noticed."""
        with suppress(FileNotFoundError):
            data = (self.directory / _ACKNOWLEDGED).read_bytes()
            text, checksum = data[: _PROGRESS.size], data[_PROGRESS.size :]
            if checksum == struct.pack("<I", zlib.crc32(text)):
                return Acknowledged(*_PROGRESS.unpack(text))
        return Acknowledged()

    def _snapshot(self) -> None:
        numbers = _numbers(self.directory, _SNAPSHOT)
        if not numbers:
            return
        path, whole = self.directory / f"{_SNAPSHOT}{numbers[-1]}", False
        self.version = self.log = numbers[-1]
        for part in read(path):
            if isinstance(part, Damage):
                self._lose(path, part, f"objects {(part.after or 0) + 1} to {part.before - 1 if part.before else 'the last'}")
            else:
                self._take(part.payload)
                whole = not part.payload
        if not whole:
            self._lose(path, None, "the last of its objects")

    def _logs(self) -> None:
        """Read all logs that belong to the snapshot, one after the other."""
        numbers = [number for number in _numbers(self.directory, _LOG) if number >= self.log]
        for number in numbers:
            if number != self.version:
                self._lose(_log_path(self.directory, self.version), None, _versions(self.version, number))
            self.version = self.log = number
            self._read_log(number, is_last=number == numbers[-1])
        if self.version < self._acknowledged.version and not self.losses:
            self._lose(_log_path(self.directory, self.log), None, _versions(self.version, self._acknowledged.version))
        self.version = max(self.version, self._acknowledged.version)

    def _read_log(self, number: int, is_last: bool) -> None:
        path = _log_path(self.directory, number)
        self.checksum = b""
        acknowledged = self._acknowledged.size if self._acknowledged.log == number else 0
        for part in read(path):
            if not isinstance(part, Damage):
                self._take(part.payload)
                self.version, self.checksum = part.last, part.checksum
                continue
            if is_last and part.before is None and part.start >= acknowledged:
                self._tail = part
            else:
                upto = part.before - 1 if part.before else max(self._acknowledged.version, self.version + 1)
                self._lose(path, part, _versions(self.version, upto))
        self.size += path.stat().st_size

    def _take(self, payload: bytes) -> None:
        for storage, namespace, name, body in _writes.decode(payload) if payload else ():
            text = bytes(body)
            if text == _GONE:
                self.bodies.pop((storage, namespace, name), None)
            else:
                self.bodies[(storage, namespace, name)] = text

    def _lose(self, path: Path, damage: Damage | None, what: str) -> None:
        place = f"bytes {damage.start} to {damage.end} are damaged" if damage else "a part is missing" if path.exists() else "is missing"
        self.losses.append(f"{path}: {place}; {what} would be lost")


def check(files: JournalFiles) -> None:
    """Raise JournalError if anything is damaged."""
    if files.losses:
        shown, more = files.losses[:SHOWN_LOSSES], len(files.losses) - SHOWN_LOSSES
        others = [f"{more} more {plural(more, 'place is', 'places are')} damaged"] if more > 0 else []
        remedy = f"put back a copy of the directory, or go on without what is lost: `pumice up --data {files.directory} --recover`"
        raise JournalError("\n".join([*shown, *others, f"{remedy} (what is there now is kept beside it, as *.before-recovery)"]))


def outdated(directory: Path) -> list[Path]:
    """The files that a newer snapshot has replaced, and snapshots that were never finished."""
    newest = max(_numbers(directory, _SNAPSHOT), default=0)
    return [*_before(directory, newest), *directory.glob(f"{_SNAPSHOT}*.new")]


def set_aside(directory: Path, number: int) -> None:
    """Rename all files of lower numbers, to keep them aside."""
    for path in _before(directory, number):
        aside, again = path.with_name(f"{path.name}.before-recovery"), 1
        while aside.exists():
            aside, again = path.with_name(f"{path.name}.before-recovery-{again}"), again + 1
        path.rename(aside)


def _before(directory: Path, number: int) -> list[Path]:
    return [directory / f"{kind}{each}" for kind in (_SNAPSHOT, _LOG) for each in _numbers(directory, kind) if each < number]


def _numbers(directory: Path, kind: str) -> list[int]:
    names = (path.name.removeprefix(kind) for path in directory.glob(f"{kind}*"))
    return sorted(int(name) for name in names if name.isdigit())


def _log_path(directory: Path, number: int) -> Path:
    return directory / f"{_LOG}{number}"


def groups(objects: Iterator[tuple[Place, bytes]], size: int) -> Iterator[tuple[int, bytes]]:
    """The objects as payloads of about `size` bytes, each with the number of its objects."""
    writes: list[Write] = []
    length = 0
    for place, body in objects:
        writes.append((*place, msgspec.Raw(body)))
        length += len(body)
        if length >= size:
            yield len(writes), msgspec.json.encode(writes)
            writes, length = [], 0
    if writes:
        yield len(writes), msgspec.json.encode(writes)


def _versions(after: int, upto: int) -> str:
    """The words for the writes from one version to another. All kinds share one sequence of versions."""
    return f"the writes with resourceVersion {after + 1} to {max(upto, after + 1)}"


NAME = "pumice.db"


def read_old(path: Path) -> tuple[int, dict[Place, bytes]]:
    """The last version in an old journal, and the last state of each object. Raises JournalError."""
    import sqlite3  # few have an old journal

    try:
        database = sqlite3.connect(path)
        try:
            (answer,) = database.execute("pragma quick_check").fetchone()
            if answer != "ok":
                raise sqlite3.DatabaseError(answer)
            row = database.execute("select version from head").fetchone()
            rows = database.execute("select storage, namespace, name, body from objects")
            return (int(row[0]) if row else 0), {(storage, namespace, name): bytes(body) for storage, namespace, name, body in rows}
        finally:
            database.close()
    except sqlite3.DatabaseError as error:
        raise JournalError(f"{path} cannot be read: {error}; move it away to start anew") from None
