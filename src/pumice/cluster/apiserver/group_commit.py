"""Groups of writes on their way to the disk: what was written while one round of requests was answered is committed together.

On a quick disk the event loop commits itself, since to hand the work to a thread and back costs more than the commit. On a slow one a
thread does, and the next group forms meanwhile. How quick the disk is is measured on the groups that the loop commits: all of them, or,
as long as they take too long, one now and then. The snapshot that shortens a journal is written by a thread too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pumice.cluster.apiserver.journal import FileJournal
from pumice.cluster.apiserver.storage import Storage

QUICK_S = 0.002  #: a commit that takes no longer may keep all requests waiting
TRIED_EVERY = 32  #: of so many groups on a slow disk one is committed, and measured, by the loop

_log = logging.getLogger(__name__)


class GroupCommit:
    """Moves the ledger's `published` version up as groups reach the disk, and calls who waited."""

    def __init__(self, ledger: Storage, journal: FileJournal | None, failed: Callable[[Exception], None]) -> None:
        self._ledger = ledger
        self._journal = journal
        self._failed = failed
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._begun = False
        self._broken = False  #: nothing more is written, and nothing more acknowledged
        self._elsewhere: asyncio.Future[int] | None = None  #: a commit in the thread
        self._thread = ThreadPoolExecutor(2, "journal") if journal else None
        self._snapshot: asyncio.Future[None] | None = None  #: being written
        self._took_s = 0.0  #: the loop's last commits, the newest weighs an eighth
        self._groups = 0

    def durable(self, version: int) -> bool:
        return self._journal is None or version <= self._ledger.published

    def when_durable(self, version: int, then: Callable[[], None]) -> None:
        self._waiting.append((version, then))
        self.begin()

    def begin(self) -> None:
        """See to it that what was written is committed, once the requests at hand are answered."""
        if self._journal is not None and not self._begun and not self._broken:
            self._begun = True
            asyncio.get_running_loop().call_soon(self._next, self._journal)

    def _next(self, journal: FileJournal) -> None:
        if not journal.has_pending():
            self._begun = False
            return
        self._groups += 1
        shorten = self._snapshot is None and journal.is_long()
        if shorten or self._took_s <= QUICK_S or self._groups % TRIED_EVERY == 0:
            self._commit_here(journal)
        else:
            self._elsewhere = asyncio.get_running_loop().run_in_executor(self._thread, journal.commit)
            self._elsewhere.add_done_callback(lambda done: self._committed(journal, done.result))
        if shorten and not self._broken:
            self._shorten(journal)

    def _commit_here(self, journal: FileJournal) -> None:
        began = time.perf_counter()
        self._committed(journal, journal.commit)
        self._took_s += (time.perf_counter() - began - self._took_s) / 8

    def _committed(self, journal: FileJournal, version_of: Callable[[], int]) -> None:
        """A group is on the disk, or could not be written."""
        self._elsewhere = None
        try:
            version = version_of()
        except Exception as error:
            self._break(error)
            return
        self._ledger.publish(version)
        while self._waiting and self._waiting[0][0] <= version:
            self._waiting.popleft()[1]()
        self._begun = False
        if journal.has_pending():
            self.begin()

    def _shorten(self, journal: FileJournal) -> None:
        """Everything written is committed: go on in a new log, and write down beside it what there is."""
        try:
            number = journal.begin_log()
        except OSError as error:
            self._break(error)
            return
        objects = list(self._ledger.everything())
        self._snapshot = asyncio.get_running_loop().run_in_executor(self._thread, journal.write_snapshot, number, objects)
        self._snapshot.add_done_callback(self._shortened)

    def _shortened(self, done: asyncio.Future[None]) -> None:
        self._snapshot = None
        if not done.cancelled() and (error := done.exception()) is not None:
            _log.warning("the journal could not be shortened, it is tried again when it has grown: %s", error)

    def _break(self, error: Exception) -> None:
        self._broken = True
        self._failed(error)

    async def close(self) -> None:
        """Commit what is left."""
        if self._elsewhere is not None:
            await asyncio.wait([self._elsewhere])
        journal, self._journal = self._journal, None
        if journal is not None and self._thread is not None:
            self._thread.shutdown()
            journal.close()
