"""The journal of earlier versions, an SQLite database without checksums: read once, then kept beside the new one."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pumice.apiserver.journal_files import JournalError, Place

NAME = "pumice.db"


def read_old(path: Path) -> tuple[int, dict[Place, bytes]]:
    """Its last version, and the last state of each object. Raises JournalError."""
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
