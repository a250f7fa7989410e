"""Recordings on disk: a folder of files. Each file can be read alone, and the oldest files are deleted when the folder is too large.

A file is a chain of records with checksums (`chained_file`), only ever appended to. The payloads of the records together are one zlib
stream of JSON arrays, one per line, flushed at the end of each record. So a process that is killed leaves at worst a torn record at the
end, which readers skip and report.
"""

from __future__ import annotations

import logging
import os
import re
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import msgspec
from msgspec import Struct

from pumice.api import InputError
from pumice.cluster.chained_file import ChainedRecord, Damage, read, sealed, seed
from pumice.inputs.recording.entry_format import VERSION, Begin, Entry

PREFIX, SUFFIX = "recording-", ".pumice"
_OURS = re.compile(rf"{PREFIX}[0-9]{{1,12}}{re.escape(SUFFIX)}")
CHAIN = "pumice recording"  #: the name from which the chain of each file starts; it is not the file's, so files may be renamed
LEVEL = 3
NEVER = float("-inf")
GATHER_S = 0.1  #: the most seconds of a recording that are lost when the process is killed, besides what is being written
PAUSE_S = 60.0  #: seconds from the beginning of a file that could not be written to the next try
CLOSING_S = 10.0  #: the most that the end of the process waits for the disk
MOST_WAITING = 1000  #: batches in memory; if the disk is so slow that more would wait, they are dropped and the recording has a gap
log = logging.getLogger(__name__)
_lines = msgspec.json.Decoder(Entry)
Tell = Callable[[str], None]


class Retention(Struct, frozen=True):
    """How large a folder and its files may become, and how long a file goes on."""

    folder_bytes: int = 256 * 1024 * 1024
    file_bytes: int = 32 * 1024 * 1024
    file_s: float = 3600.0

    @classmethod
    def of_folder(cls, size: int) -> Retention:
        """The retention for a folder of `size` bytes: eight files, so that only a small part is deleted at a time."""
        return cls(size, size // 8)


LARGEST_RECORD = 256 * 1024 * 1024  #: unzipped: more than the whole state of a large cluster


class RecordingFile:
    """A file that is being written."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self._pack = zlib.compressobj(LEVEL)
        self._checksum = seed(CHAIN)
        self._count = 0
        self.size = 0

    def write(self, entries: Sequence[Entry]) -> None:
        """Append the entries to the file as one record. Raises OSError."""
        text = msgspec.json.Encoder().encode_lines(entries)
        payload = self._pack.compress(text) + self._pack.flush(zlib.Z_SYNC_FLUSH)
        record, self._checksum = sealed(self._count + 1, self._count + len(entries), payload, self._checksum)
        self._count += len(entries)
        rest = memoryview(record)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self.size += len(record)

    def close(self) -> None:
        os.close(self._file)


Batch = Callable[[], Iterable[Entry]]  #: entries that are made on the thread that writes them
Hide = Callable[[Entry], Entry]  #: returns the entry without what must not be recorded


def as_it_is(entry: Entry) -> Entry:
    return entry


class Writer:
    """Writes files into a folder, on a thread of its own. If a write fails, the error is logged once, and the entries are left out until
    the next file begins."""

    def __init__(self, folder: Path, retention: Retention, hide: Hide = as_it_is) -> None:
        """Create the folder if it is missing, and start the thread. Raises OSError."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self._retention, self._hide = folder, retention, hide
        self._waiting: SimpleQueue[tuple[bool, Batch] | None] = SimpleQueue()
        self._file: RecordingFile | None = None
        self._began_at = NEVER
        self._thread = Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def wants_another(self) -> bool:
        """Whether the next entries should go to a new file."""
        if self._began_at == NEVER and not self._waiting.empty():
            return False  # after a gap the disk catches up first
        file, age_s = self._file, time.monotonic() - self._began_at
        if file is None:
            return age_s >= min(PAUSE_S, self._retention.file_s)
        return age_s >= self._retention.file_s or file.size >= self._retention.file_bytes

    def begin(self, batch: Batch) -> None:
        """Begin a new file, with this batch as its first entries."""
        self._began_at = time.monotonic()
        self._waiting.put((True, batch))

    def add(self, batch: Batch) -> None:
        if self._began_at == NEVER:
            return
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put((False, batch))
        else:
            self._began_at = NEVER  # after a gap, a new file with a snapshot of its own is needed
            log.error("%s: writing is too slow, a part is left out", self._folder)

    def close(self) -> None:
        """Write everything that waits, and end the thread; a disk that hangs is not waited for."""
        self._waiting.put(None)
        self._thread.join(CLOSING_S)

    def _run(self) -> None:
        while (waiting := self._waiting.get()) is not None:
            begins, batch = waiting
            try:
                if begins:
                    self._begin()
                if self._file is not None:
                    self._file.write(list(map(self._hide, batch())))
            except Exception as error:
                why = error.strerror if isinstance(error, OSError) else error
                log.error("%s cannot be written: %s", self._folder, why, exc_info=not isinstance(error, OSError))
                self._end()
            if self._waiting.empty():
                time.sleep(GATHER_S)  # to wake this thread for each cycle would cost the scheduler more than the cycle's record
        self._end()

    def _begin(self) -> None:
        self._end()
        files = _numbered(self._folder)
        left = self._retention.folder_bytes - self._retention.file_bytes
        for path in reversed(files):
            left -= path.stat().st_size
            if left < 0:
                path.unlink()
        number = int(files[-1].stem[len(PREFIX) :]) + 1 if files else 1
        self._file = RecordingFile(self._folder / f"{PREFIX}{number:08}{SUFFIX}")

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _numbered(folder: Path) -> list[Path]:
    """The recordings in their order. Whatever else lies in the folder is not ours."""
    found = {
        int(path.stem[len(PREFIX) :]): path for path in folder.glob(f"{PREFIX}*{SUFFIX}") if _OURS.fullmatch(path.name) and path.is_file()
    }
    return [found[number] for number in sorted(found)]


def files_of(path: Path, tell: Tell) -> list[Path]:
    """The file itself, or the recordings of a folder in their order; `tell` is called with a line about each that its writer has not begun,
    be it that it was killed, or is about to. Raises InputError."""
    found = _numbered(path) if path.is_dir() else [path]
    if not found:
        raise InputError(f"holds no recordings; they are called {PREFIX}*{SUFFIX}", where=str(path))
    begun = [each for each in found if _has_begun(each)]
    if begun:
        for each in found:
            if each not in begun:
                tell(f"{each}: is left out, as not even its first record is whole")
    return begun or found


def _has_begun(path: Path) -> bool:
    with suppress(OSError):
        return isinstance(next(read(path, CHAIN), None), ChainedRecord)
    return True  # whoever reads it is told why it cannot be read


def entries(path: Path, tell: Tell) -> Iterator[Entry]:
    """The entries of a file. `tell` is called with a line about a torn end, or about damage, behind which nothing can be read. Raises
    InputError."""
    unpack, number = zlib.decompressobj(), 0
    try:
        for part in read(path, CHAIN):
            if isinstance(part, Damage):
                tell(_of_damage(path, part))
                break
            text = unpack.decompress(part.payload, LARGEST_RECORD)
            if unpack.unconsumed_tail:
                raise InputError(f"has a record of more than {LARGEST_RECORD >> 20} MiB, as no scheduler writes it", where=str(path))
            for line in text.splitlines():
                entry = _lines.decode(line)
                if not number and (not isinstance(entry, Begin) or entry.version != VERSION):
                    raise InputError(f"was written by another version of Pumice, which reads version {VERSION} alone", where=str(path))
                number += 1
                yield entry
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except (zlib.error, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InputError(f"is no recording, though its checksums are right: {error}", where=str(path)) from None
    if not number:
        raise InputError("is no recording, or one that was torn at its beginning", where=str(path))


def _of_damage(path: Path, damage: Damage) -> str:
    if damage.before is None:
        return f"{path}: {damage.end - damage.start} bytes at its end are cut off: the record was not finished when its writer died"
    return f"{path}: bytes {damage.start} to {damage.end} are damaged; nothing behind them can be read"
