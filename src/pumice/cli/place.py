"""Where a running embedded cluster keeps what belongs to it: kubeconfig, process id, log of a detached one.

The directory given with --data, else one of the user's own. The file with the process id is locked for as long as that process lives, so a
file left behind by one that was killed misleads nobody, and `pumice down` never ends a stranger.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from pumice.api.errors import InputError


def default_directory() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "pumice" if runtime else Path.home() / ".pumice"


def own_name() -> str:
    """How to call this program: by its name, or as it was called where that is not on the PATH."""
    called = Path(sys.argv[0])
    return "pumice" if called.name != "pumice" or shutil.which("pumice") else shlex.quote(str(called))


class Place:
    """One directory for one cluster."""

    def __init__(self, data: Path | None) -> None:
        self.down = f"{own_name()} down --data {shlex.quote(str(data))}" if data else f"{own_name()} down"  #: what ends the cluster
        self.directory = (data or default_directory()).absolute()
        self.kubeconfig = self.directory / "kubeconfig"
        self.log = self.directory / "log"
        self._pid = self.directory / "pid"
        self._lock = -1

    def holder(self) -> int | None:
        """The process whose cluster runs here."""
        with suppress(FileNotFoundError), self._pid.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or 0) or None
        return None

    def claim(self) -> None:
        """Take the place for this process. Raises InputError if another has it."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self._pid, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = f"a cluster runs here already (process {self.holder()}); `{self.down}` ends it"
            raise InputError(text, where=str(self.directory)) from None
        os.ftruncate(self._lock, 0)
        os.write(self._lock, str(os.getpid()).encode())

    def leave(self) -> None:
        """Take away what `claim` and the cluster have put here; what belongs to --data stays."""
        silent = self.log.exists() and not self.log.stat().st_size
        for path in (self.kubeconfig, self._pid, *([self.log] if silent else ())):
            path.unlink(missing_ok=True)
        os.close(self._lock)
        with suppress(OSError):  # there is data in it
            self.directory.rmdir()
