"""The directory of a running embedded cluster: kubeconfig, process id, and the log of a detached cluster.

It is the directory given with --data, else one of the user's own. The file with the process id is locked as long as that process lives.
So a file that a killed process left behind does no harm, and `pumice down` never ends another process. The user's own directory has an
entry for each named cluster: its directory, or a link to that of --data.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pumice.api import InputError

DEFAULT_NAME = "pumice"
TRIES = 100  #: to lock a directory in which other clusters end at the same moment


def default_directory() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "pumice" if runtime else Path.home() / ".pumice"


def own_name() -> str:
    """The command that calls this program: its name, or the path it was called by if its name is not on the PATH."""
    called = Path(sys.argv[0])
    return "pumice" if called.name != "pumice" or shutil.which("pumice") else shlex.quote(str(called))


def places() -> Iterator[DataDir]:
    """The directories of this user's running clusters."""
    named = default_directory() / "clusters"
    found = [DataDir(), *(DataDir(name=entry.name) for entry in (sorted(named.iterdir()) if named.is_dir() else ()))]
    return (place for place in found if place.holder() is not None)


class DataDir:
    """The directory of one cluster, and the cluster's name. The constructor raises InputError if the name is not valid."""

    def __init__(self, data: Path | None = None, name: str | None = None) -> None:
        if name is not None and not re.fullmatch("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name):
            raise InputError(f'"{name[:63]}" is no name; write at most 63 lower-case letters, digits and "-"', where="--name")
        self.name = name or (_name_of(data) if data else DEFAULT_NAME)
        self._named = default_directory() / "clusters" / self.name
        own = default_directory() if self.name == DEFAULT_NAME else _linked(self._named)
        self.directory = data.absolute() if data else own
        option = f" --data {shlex.quote(str(data))}" if data else f" --name {name}" if name else ""
        self.down = f"{own_name()} down{option}"  #: the command that ends the cluster
        self.kubeconfig = self.directory / "kubeconfig"
        self.log = self.directory / "log"
        self._pid = self.directory / "pid"
        self._lock = -1

    @property
    def context(self) -> str:
        """The name of the cluster's context in kubeconfigs."""
        return self.name if self.name == DEFAULT_NAME else f"{DEFAULT_NAME}-{self.name}"

    def holder(self) -> int | None:
        """The id of the process whose cluster runs in this directory; None if no cluster runs."""
        with suppress(OSError), self._pid.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read() or 0) or None
        return None

    def claim(self) -> None:
        """Take the directory for this process. Raises InputError if another cluster has the directory or the name."""
        other = DataDir(name=self.name)
        if other.directory != self.directory and other.holder() is not None:
            text = f'a cluster "{self.name}" runs already (process {other.holder()}); give another name, or end it with `{other.down}`'
            raise InputError(text, where="--name")
        try:
            if not any(self._is_locked() for _ in range(TRIES)):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        except BlockingIOError:
            text = f"a cluster runs here already (process {self.holder()}); `{self.down}` ends it"
            raise InputError(text, where=str(self.directory)) from None
        except OSError as error:
            raise InputError(f"no cluster can be kept here: {error.strerror}", where=str(self.directory)) from None
        os.ftruncate(self._lock, 0)
        os.write(self._lock, str(os.getpid()).encode())
        if self.directory not in (default_directory(), self._named):
            any(self._is_named() for _ in range(TRIES))

    def _is_locked(self) -> bool:
        """Lock the file with the process id. Return False if a cluster that ended meanwhile has removed it. Raises OSError."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self._pid, os.O_CREAT | os.O_RDWR, 0o600)
        except (FileNotFoundError, FileExistsError):
            if self.directory.is_file():
                raise
            return False  # a directory was removed
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = self._pid.exists() and os.path.samestat(self._pid.stat(), os.fstat(self._lock))
        except BlockingIOError:
            os.close(self._lock)
            raise
        if not locked:
            os.close(self._lock)
        return locked

    def _is_named(self) -> bool:
        """Make the entry with the cluster's name. Return False if a cluster that ended meanwhile has removed the directory of entries."""
        with suppress(FileNotFoundError, FileExistsError):
            self._named.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._named.unlink(missing_ok=True)
            self._named.symlink_to(self.directory)
        return self._named.is_symlink()

    def release(self) -> None:
        """Remove what `claim` and the cluster have put here, but not the cluster's data in a directory of --data."""
        silent = self.log.exists() and not self.log.stat().st_size
        if self._named.is_symlink():
            self._named.unlink()
        for path in (self.kubeconfig, *([self.log] if silent else ()), self._pid):  # without the last another may begin here
            path.unlink(missing_ok=True)
        os.close(self._lock)
        for directory in (self.directory, self._named.parent, default_directory()):
            with suppress(OSError):  # the directory is not empty
                directory.rmdir()


def _linked(path: Path) -> Path:
    with suppress(OSError):
        return path.readlink()
    return path


def _name_of(data: Path) -> str:
    return re.sub("[^a-z0-9]+", "-", data.absolute().name.lower()).strip("-") or DEFAULT_NAME
