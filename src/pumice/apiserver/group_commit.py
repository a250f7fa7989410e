"""Commits in the background: one group at a time in a thread, the next one forms meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pumice.apiserver.journal import SqliteJournal
from pumice.apiserver.ledger import Ledger

_log = logging.getLogger(__name__)


class GroupCommit:
    """Moves the ledger's `published` version up as groups reach the disk, and calls who waited."""

    def __init__(self, ledger: Ledger, journal: SqliteJournal | None, failed: Callable[[], None]) -> None:
        self._ledger = ledger
        self._journal = journal
        self._failed = failed
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, "journal") if journal else None

    def durable(self, version: int) -> bool:
        return self._journal is None or version <= self._ledger.published

    def when_durable(self, version: int, then: Callable[[], None]) -> None:
        self._waiting.append((version, then))
        self.begin()

    def begin(self) -> None:
        """See to it that what was written is committed."""
        if self._journal is not None and self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._run(self._journal))

    async def _run(self, journal: SqliteJournal) -> None:
        try:
            while journal.has_pending():
                version = await asyncio.get_running_loop().run_in_executor(self._thread, journal.commit)
                self._ledger.publish(version)
                while self._waiting and self._waiting[0][0] <= version:
                    self._waiting.popleft()[1]()
        except Exception:
            _log.critical("the journal cannot be written; nothing more is acknowledged", exc_info=True)
            self._failed()
            return
        finally:
            self._running = None

    async def close(self) -> None:
        """Commit what is left."""
        if self._journal is None:
            return
        if self._running is not None:
            await self._running
        if self._thread is not None:
            self._thread.shutdown()
        self._journal.close()
