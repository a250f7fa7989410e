"""The content of one file that a user names. A device without an end, such as /dev/zero, is refused before it fills the memory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pumice.api.errors import InputError

MEMORY_DEVICES, NULL = 1, 3  #: the major number of /dev/zero, /dev/random and their kin, and the minor number of the one that has an end


def refuse_endless(path: Path | str) -> None:
    """Raise InputError if the file has no end, OSError if there is no such file."""
    found = Path(path).stat()
    if stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) == MEMORY_DEVICES and os.minor(found.st_rdev) != NULL:
        raise InputError("is a device without an end, not a file", where=str(path))


def file_bytes(path: Path | str) -> bytes:
    """The content of the file. Raises InputError."""
    try:
        refuse_endless(path)
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


def file_text(path: Path | str) -> str:
    """The text of the file. Raises InputError."""
    try:
        return file_bytes(path).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("not UTF-8; save the file as UTF-8", where=str(path)) from None
