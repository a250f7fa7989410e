"""A client certificate, or the authorities that are trusted, in files that are renewed.

The files are checked every `LOOK_AGAIN_S` seconds. When they have changed and hold something usable, new connections use it. A renewal
writes one file after the other, so a certificate and key that do not match are being written: the old pair stays until they match.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from pumice.api import InputError

LOOK_AGAIN_S = 10.0
T = TypeVar("T")
log = logging.getLogger(__name__)


class RenewedFiles(Generic[T]):
    """What is in some files, read again when they change.

    `read` and `check` may raise InputError. At the first time what `read` raises is raised here; later it only delays the change.
    """

    def __init__(
        self, what: str, paths: Sequence[Path], read: Callable[[], T], check: Callable[[T], object], clock: Callable[[], float]
    ) -> None:
        self._what = what
        self._paths = paths
        self._read = read
        self._check = check
        self._clock = clock
        self._seen = self._look()
        self._found = read()
        self._looked_at = clock()

    def current(self) -> T:
        now = self._clock()
        if now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = now
            self._take_over(self._look())
        return self._found

    def look_now(self) -> None:
        """Check the files at the next call of `current`: the server refused what was in them, and there may be something new already."""
        self._looked_at = float("-inf")

    def _look(self) -> tuple[tuple[int, ...], ...]:
        try:
            found = [path.stat() for path in self._paths]
        except OSError:
            return ()
        return tuple((each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns) for each in found)

    def _take_over(self, look: tuple[tuple[int, ...], ...]) -> None:
        if look in ((), self._seen):
            return
        try:
            found = self._read()
            self._check(found)
        except InputError as error:
            log.warning("the changed %s is not used: %s", self._what, error)
            return
        self._seen, self._found = look, found
        log.info("the %s was renewed: %s", self._what, ", ".join(map(str, self._paths)))
