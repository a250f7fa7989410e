"""A client certificate in files that are renewed.

The files are checked every `LOOK_AGAIN_S` seconds. When they have changed and hold a usable pair, new connections present it. A renewal
writes one file after the other, so a certificate and key that do not match are being written: the old pair stays until they match.
"""

import logging
import ssl
from collections.abc import Callable, Sequence
from pathlib import Path

from pumice.api import InputError
from pumice.client.tls import KeyPair, present

LOOK_AGAIN_S = 10.0
log = logging.getLogger(__name__)


class KeyFiles:
    """A certificate and its key, read again when their files change.

    `read` may raise InputError. At the first time this is raised here; later it only delays the change.
    """

    def __init__(self, paths: Sequence[Path], read: Callable[[], KeyPair], clock: Callable[[], float]) -> None:
        self._paths = paths
        self._read = read
        self._clock = clock
        self._seen = self._look()
        self._pair = read()
        self._looked_at = clock()

    def current(self) -> KeyPair:
        now = self._clock()
        if now - self._looked_at >= LOOK_AGAIN_S:
            self._looked_at = now
            self._take_over(self._look())
        return self._pair

    def look_now(self) -> None:
        """Check the files at the next call of `current`: the server refused the certificate, and there may be a new one already."""
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
            pair = self._read()
            present(ssl.create_default_context(), pair)
        except InputError as error:
            log.warning("the changed client certificate is not used: %s", error)
            return
        self._seen, self._pair = look, pair
        log.info("the client certificate was renewed: %s", pair.source)
