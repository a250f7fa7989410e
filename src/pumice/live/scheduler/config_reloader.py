"""The configuration file is read again whenever it has changed.

The path is checked once a second, through all symbolic links: a ConfigMap volume changes by a swap of a link two folders up, an editor
renames a file, kubectl cp writes into it; each of these shows as another device, inode, size or time. If the new file cannot be used, the
old configuration stays in force, and that is reported once for each such file.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from pumice.api import InputError
from pumice.live.clock import Clock
from pumice.scheduler.framework.policy import Policy

log = logging.getLogger(__name__)
PERIOD_S = 1.0

Look = tuple[int, ...]


class Reloader:
    """Watches the configuration file. `load` reads it (raises InputError), `adopt` gets a good policy, `refused` the error of a bad one."""

    def __init__(
        self, path: Path, load: Callable[[], Policy], adopt: Callable[[Policy], None], refused: Callable[[InputError], None], clock: Clock
    ) -> None:
        self._path = path
        self._load = load
        self._adopt = adopt
        self._refused = refused
        self._clock = clock
        self._seen = self._look()

    def _look(self) -> Look:
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Read the file if it has changed. A missing file is ignored: it is being replaced."""
        look = self._look()
        if look in ((), self._seen):
            return
        self._seen = look
        try:
            policy = self._load()
        except InputError as error:
            log.error("the new configuration is refused, the old one stays in force: %s", error)
            self._refused(error)
            return
        log.info("the configuration %s is in force from the next cycle on", self._path)
        self._adopt(policy)

    async def run(self) -> None:
        while True:
            await self._clock.sleep(PERIOD_S)
            self.check()
