"""The journal: every write in SQLite, in groups, so that nothing acknowledged is lost when the process is killed.

Writes pile up in memory (`record`) and go to disk together (`commit`); who waits for a write waits for its group. While one group is
being written the next one forms, so the cost of a commit is shared by all writers. The database holds the last state of each object
and the last version; a recovered server goes on `GAP` versions later, since versions that were given out but not committed must never
be given to something else.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec

from pumice.apiserver.shapes import Object
from pumice.apiserver.watching import Event, Key

GAP = 1000
_SCHEMA = """
create table if not exists objects
  (storage text, namespace text, name text, body blob, primary key (storage, namespace, name)) without rowid;
create table if not exists head (id integer primary key check (id = 1), version integer);
"""


class JournalError(Exception):
    """The data directory cannot be used; the text says why."""


class SqliteJournal:
    """One data directory. `record` belongs to the thread that writes the ledger, `commit` may run in another, one at a time."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise JournalError(f"{directory} is in use by another server; stop it or give another directory") from None
        path = directory / "pumice.db"
        path.touch(mode=0o600)
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._db.execute("pragma locking_mode = exclusive")  # `lock` keeps others away; this spares the files it takes to share
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = full")
            self._db.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            os.close(self._lock)
            raise JournalError(f"{path} cannot be read: {error}; move it away to start anew") from None
        self._pending: list[tuple[str, Event]] = []

    def version(self) -> int:
        """The last one committed, 0 if there is none."""
        row = self._db.execute("select version from head").fetchone()
        return int(row[0]) if row else 0

    def objects(self) -> Iterator[tuple[str, Key, Object]]:
        """Everything there is, definitions of custom kinds first."""
        order = "order by storage not like 'customresourcedefinitions.%', storage, namespace, name"
        for storage, namespace, name, body in self._db.execute(f"select storage, namespace, name, body from objects {order}"):
            yield storage, (namespace, name), msgspec.json.decode(body)

    def record(self, storage: str, event: Event) -> None:
        self._pending.append((storage, event))

    def has_pending(self) -> bool:
        return bool(self._pending)

    def commit(self) -> int:
        """Write all that was recorded; the last version written is returned."""
        batch, self._pending = self._pending, []
        last = {(storage, *event.key): event for storage, event in batch}
        kept = [(*place, msgspec.json.encode(event.object)) for place, event in last.items() if event.type != "DELETED"]
        gone = [place for place, event in last.items() if event.type == "DELETED"]
        version = batch[-1][1].resource_version
        self._db.execute("begin immediate")
        self._db.executemany("insert or replace into objects values (?, ?, ?, ?)", kept)
        if gone:
            self._db.executemany("delete from objects where storage = ? and namespace = ? and name = ?", gone)
        self._db.execute("insert or replace into head values (1, ?)", (version,))
        self._db.execute("commit")
        return version

    def close(self) -> None:
        if self._pending:
            self.commit()
        self._db.close()
        os.close(self._lock)
