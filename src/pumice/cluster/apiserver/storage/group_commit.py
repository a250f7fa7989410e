"""Groups of writes on their way to the disk: the writes of one round of requests are committed together.

On a quick disk the event loop commits, as to hand the work to a thread and back costs more than the commit. On a slow disk a thread
commits, and the next group forms meanwhile. The speed of the disk is measured on the groups that the loop commits: all groups, or, while
commits take too long, one now and then. The snapshot that shortens a journal is written by a thread too.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from pumice.cluster.apiserver.storage.in_memory import Storage
from pumice.cluster.apiserver.storage.journal import FileJournal, _log

QUICK_S = 0.002  #: a commit that takes no longer than these seconds may keep all requests waiting
SLOWEST_S = 0.004  #: a commit that takes longer counts as so many seconds: a moment in which the machine is busy does not make a slow disk
TRIED_EVERY = 32  #: on a slow disk, the loop commits and measures one of this many groups


class GroupCommit:
    """Raises the storage's `published` version as groups reach the disk, and calls the functions that waited for these versions."""

    def __init__(self, storage: Storage, journal: FileJournal | None, failed: Callable[[Exception], None]) -> None:
        self._storage = storage
        self._journal = journal
        self._failed = failed
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._begun = False
        self._broken = False  #: if true, no further write is committed or acknowledged
        self._elsewhere: asyncio.Future[int] | None = None  #: the commit that runs in a thread
        self._thread = ThreadPoolExecutor(2, "journal") if journal else None
        self._snapshot: asyncio.Future[None] | None = None  #: the snapshot that is being written
        self._took_s = 0.0  #: the seconds of the loop's commits, as a moving average in which the newest weighs an eighth
        self._groups = 0

    def durable(self, version: int) -> bool:
        return self._journal is None or version <= self._storage.published

    def when_durable(self, version: int, then: Callable[[], None]) -> None:
        self._waiting.append((version, then))
        self.begin()

    def begin(self) -> None:
        """Have the recorded writes committed after the present round of requests."""
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
            self._committed(journal, partial(self._measured, journal))
        else:
            self._elsewhere = asyncio.get_running_loop().run_in_executor(self._thread, journal.commit)
            self._elsewhere.add_done_callback(lambda done: self._committed(journal, done.result))
        if shorten and not self._broken:
            self._shorten(journal)

    def _measured(self, journal: FileJournal) -> int:
        """Commit. What follows, the answers to all requests of the group, says nothing about the disk: it is not measured."""
        began = time.perf_counter()
        version = journal.commit()
        self._took_s += (min(time.perf_counter() - began, SLOWEST_S) - self._took_s) / 8
        return version

    def _committed(self, journal: FileJournal, version_of: Callable[[], int]) -> None:
        """Publish the version of a group that is on the disk; if the group could not be written, break off."""
        self._elsewhere = None
        try:
            version = version_of()
        except Exception as error:
            self._break(error)
            return
        self._storage.publish(version)
        while self._waiting and self._waiting[0][0] <= version:
            self._waiting.popleft()[1]()
        self._begun = False
        if journal.has_pending():
            self.begin()

    def _shorten(self, journal: FileJournal) -> None:
        """Begin a new log, and a snapshot of all objects beside it. Every write so far must have been committed."""
        try:
            number = journal.begin_log()
        except OSError as error:
            self._break(error)
            return
        objects = list(self._storage.everything())
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
        """Commit what is left, and close the journal."""
        if self._elsewhere is not None:
            await asyncio.wait([self._elsewhere])
        journal, self._journal = self._journal, None
        if journal is not None and self._thread is not None:
            self._thread.shutdown()
            journal.close()
