"""One record for each pod about which something was written: what of it the watch has not shown yet, and what need not be written again.

The room that a bind holds is in the kept state (`Task.status`). A record is made by the first write, and is dropped as soon as it says
nothing any more, at the latest when the pod is gone.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct

from pumice.live.scheduler.requests import ReadPod
from pumice.scheduler.model import status

EXPIRY_S = 30.0  #: so long after a bind or an eviction was granted, the watch must have shown it


class Mark(Struct, frozen=True):
    """The condition of a pod that waits."""

    reason: str
    message: str
    nominated: str | None


class Granted(NamedTuple):
    """A bind or an eviction that was granted. If the watch has not shown it until then, the pod is read."""

    read: ReadPod
    until: float


class PodRecord(Struct):
    mark: Mark | None = None  #: as last written, until the pod is bound
    granted: Granted | None = None
    read: int = 0  #: the version that was read while the watch was behind, until the watch has shown it; 0: none


class PodRecords:
    """By uid of the pod."""

    def __init__(self) -> None:
        self.records: dict[str, PodRecord] = {}
        self._granted: deque[Granted] = deque()  #: in order of their ends; of some the record says no more

    def marks(self, uids: Iterable[str]) -> list[Mark | None]:
        """The conditions last written to these pods."""
        records = self.records
        return [record.mark if (record := records.get(uid)) is not None else None for uid in uids]

    def set_mark(self, uid: str, mark: Mark) -> None:
        self._record(uid).mark = mark

    def drop_mark(self, uid: str) -> None:
        if (record := self.records.get(uid)) is not None:
            record.mark = None
            self._drop_if_empty(uid, record)

    def grant(self, read: ReadPod, now: float) -> None:
        granted = Granted(read, now + EXPIRY_S)
        self._granted.append(granted)
        self._record(read.pod.uid).granted = granted

    def expired(self, now: float, is_unseen: Callable[[ReadPod], bool]) -> Iterator[ReadPod]:
        """What was granted and is unseen still, though its time is over. What was seen is forgotten."""
        while self._granted:
            granted = self._granted[0]
            record = self.records.get(uid := granted.read.pod.uid)
            if record is not None and record.granted is granted:
                unseen = is_unseen(granted.read)
                if unseen and now < granted.until:
                    return  # the others were granted later
                record.granted = None
                self._drop_if_empty(uid, record)
                if unseen:
                    yield granted.read
            self._granted.popleft()

    def was_read(self, uid: str, version: int) -> None:
        record = self._record(uid)
        record.granted, record.read = None, version

    def is_older(self, uid: str, version: int) -> bool:
        """Whether the watch shows a pod as it was before we read it. If that were taken over, the pod would go back in time."""
        record = self.records.get(uid)
        if record is None or not record.read:
            return False
        if version < record.read:
            return True
        record.read = 0
        self._drop_if_empty(uid, record)
        return False

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone, as the watch has shown."""
        self.records.pop(uid, None)

    def notes_of(self, uid: str) -> dict[str, Any]:
        """What the record of a pod says, in words."""
        record = self.records.get(uid) or PodRecord()
        read, until = record.granted or (None, None)
        granted = status.NAMES[read.assumed] if read is not None else None
        return {"condition": record.mark, "granted": granted, "until": until, "read": record.read or None}

    def _record(self, uid: str) -> PodRecord:
        return self.records.get(uid) or self.records.setdefault(uid, PodRecord())

    def _drop_if_empty(self, uid: str, record: PodRecord) -> None:
        if record.mark is None and record.granted is None and not record.read:
            del self.records[uid]
