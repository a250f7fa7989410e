"""The journal: every write is on disk before it is acknowledged, so that no acknowledged write is lost when the process is killed.

Writes are collected in memory (`record`) and appended to a log together (`commit`); a request waits for the group of its write. While one
group is being written the next one forms, so all writers share the cost of a commit. When the log is much longer than the objects that it
describes, a new log begins. All objects as they are then are written beside it as a snapshot, which replaces the old files.

A recovered server continues `GAP` versions later, as versions that were given out but not committed must never be given to another write.
After a write to the disk has failed, the content of the disk is unknown: the journal refuses everything from then on.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pumice.api import Object
from pumice.cluster.apiserver.storage.journal_files import (
    NAME,
    Acknowledged,
    JournalError,
    JournalFiles,
    Place,
    check,
    groups,
    outdated,
    read_old,
    set_aside,
)
from pumice.cluster.apiserver.storage.watch import Key, WatchEvent
from pumice.cluster.chained_file import sealed, seed

GAP = 1000
LOG_SIZE = 64 * 1024 * 1024  #: the bytes that a log may always have; it may also be twice as long as its snapshot
GROUP_SIZE = 1024 * 1024  #: the bytes of objects in one record of a snapshot
_DEFINITIONS = "customresourcedefinitions."
_log = logging.getLogger(__name__)


class FileJournal:
    """The journal in one data directory. Call `record` in the thread that writes the storage. `commit` may run in another thread, but only
    one commit at a time."""

    def __init__(self, directory: Path, recover: bool = False) -> None:
        """Open the directory. `recover`: go on without the damaged parts. Raises JournalError."""
        self._directory = directory
        self._checksum = b""  #: the checksum of the record written last
        self._lock = _locked(directory)
        try:
            self._open(recover)
        except BaseException:
            os.close(self._lock)
            raise
        self._pending: list[tuple[str, WatchEvent]] = []
        self._failed = False

    def _open(self, recover: bool) -> None:
        files = JournalFiles(self._directory)
        old = self._directory / NAME
        if old.exists() and not files.used:
            files.version, files.bodies = read_old(old)
            self._begin_anew(files)
            _log.warning("%s has no checksums: all of it is now in %s*, it is kept as %s.old", old, self._directory / "snapshot-", NAME)
            old.rename(old.with_name(f"{NAME}.old"))
        elif files.losses and recover:
            self._begin_anew(files)
            set_aside(self._directory, files.log)
            _log.warning("%s; recovered without it, the damaged files are kept as *.before-recovery", "; ".join(files.losses))
        else:
            check(files)
            files.cut_tail()
            self._remove_outdated()
            self._begin_log(files.log)
            if files.checksum:
                self._checksum = files.checksum
            self._size = files.size
        self._snapshot_size = sum(map(len, files.bodies.values()))
        self._version = files.version
        self._bodies: dict[Place, bytes] | None = files.bodies

    def _begin_anew(self, files: JournalFiles) -> None:
        """Write a snapshot of the objects that were read, and begin an empty log, under a number that no file has yet."""
        files.log = files.version + 1
        self._write_snapshot(files.log, iter(files.bodies.items()))
        self._begin_log(files.log)

    def version(self) -> int:
        """The last committed version; 0 if there is none."""
        return self._version

    def objects(self) -> Iterator[tuple[str, Key, Object]]:
        """All objects that the files held at the start, definitions of custom kinds first. Call it only once."""
        bodies, self._bodies = self._bodies or {}, None
        for place in sorted(bodies, key=lambda place: (not place[0].startswith(_DEFINITIONS), place)):
            storage, namespace, name = place
            yield storage, (namespace, name), msgspec.json.decode(bodies.pop(place))

    def record(self, storage: str, event: WatchEvent) -> None:
        self._pending.append((storage, event))

    def has_pending(self) -> bool:
        return bool(self._pending)

    def commit(self) -> int:
        """Write all recorded events. Return the last version written. Raises OSError; after that, every call raises it."""
        if self._failed:
            raise OSError("the journal could not be written before")
        batch, self._pending = self._pending, []
        last: dict[Place, bytes] = {(storage, *event.key): event.body if event.type != "DELETED" else b"null" for storage, event in batch}
        payload = msgspec.json.encode([(*place, msgspec.Raw(body)) for place, body in last.items()])
        version = batch[-1][1].resource_version
        record, checksum = sealed(batch[0][1].resource_version, version, payload, self._checksum)
        try:
            _write(self._file, record)
            os.fdatasync(self._file)
            self._size += len(record)
            self._log_end += len(record)
            os.pwrite(self._progress, Acknowledged(self._log_start, self._log_end, version).packed(), 0)
        except BaseException:
            self._failed = True
            raise
        self._checksum, self._version = checksum, version
        return version

    # A log that has grown too long

    def is_long(self) -> bool:
        return self._size > max(LOG_SIZE, 2 * self._snapshot_size)

    def begin_log(self) -> int:
        """Begin a new log for the following writes, between two commits. Return its number, for the snapshot. Raises OSError."""
        os.close(self._file)
        os.close(self._progress)
        self._begin_log(self._version)
        return self._version

    def write_snapshot(self, number: int, objects: list[tuple[Place, Object]]) -> None:
        """Write all objects, as they were when the log of this number was begun or later, and remove the files that this replaces. It may
        run beside commits. Raises OSError."""
        self._write_snapshot(number, ((place, msgspec.json.encode(obj)) for place, obj in objects))
        self._remove_outdated()

    def _begin_log(self, number: int) -> None:
        path = self._directory / f"log-{number}"
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._progress = os.open(self._directory / "acknowledged", os.O_WRONLY | os.O_CREAT, 0o600)
        _sync_directory(self._directory)
        self._checksum = seed(path.name)
        self._log_start, self._log_end = number, os.fstat(self._file).st_size
        self._size = 0

    def _write_snapshot(self, number: int, objects: Iterator[tuple[Place, bytes]]) -> None:
        path = self._directory / f"snapshot-{number}"
        new = path.with_name(f"{path.name}.new")
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            checksum, count = seed(path.name), 0
            for more, payload in groups(objects, GROUP_SIZE):
                record, checksum = sealed(count + 1, count + more, payload, checksum)
                _write(file, record)
                count += more
            _write(file, sealed(count + 1, count + 1, b"", checksum)[0])
            os.fsync(file)
            self._snapshot_size = os.fstat(file).st_size
        except BaseException:
            new.unlink()
            raise
        finally:
            os.close(file)
        new.rename(path)
        _sync_directory(self._directory)

    def _remove_outdated(self) -> None:
        for path in outdated(self._directory):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        try:
            if self._pending and not self._failed:
                self.commit()
        finally:
            for descriptor in (self._file, self._progress, self._lock):
                os.close(descriptor)


def _locked(directory: Path) -> int:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise JournalError(f"{directory} is in use by another server; stop it or give another directory") from None
    return lock


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
