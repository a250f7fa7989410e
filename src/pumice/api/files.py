"""Files that a user names: one file, all files of a folder, or standard input. What has no end, such as /dev/zero or `yes |`, is refused
before it fills the memory."""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from pumice.api.errors import InputError, not_utf8

MEMORY_DEVICES, NULL = 1, 3  #: the major number of /dev/zero, /dev/random and their kin, and the minor number of the one that has an end

LARGEST, PIECE = 1 << 30, 1 << 20  #: bytes: as much as all objects of an embedded cluster
ENDINGS = (".yaml", ".yml", ".json")


def refuse_endless(path: Path | str) -> None:
    """Raise InputError if the file has no end, OSError if there is no such file."""
    found = Path(path).stat()
    if stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) == MEMORY_DEVICES and os.minor(found.st_rdev) != NULL:
        raise InputError("is a device without an end, not a file", where=str(path))


def file_bytes(path: Path | str) -> bytes:
    """The content of the file. Raises InputError."""
    try:
        refuse_endless(path)
        with Path(path).open("rb") as opened:
            return all_of(opened, str(path))
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None


def all_of(opened: BinaryIO, where: str) -> bytes:
    """All that is left to be read. Raises InputError if that is too much, or has no end."""
    pieces, size = [], 0
    while piece := opened.read(PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > LARGEST:
            raise InputError(f"has more than {LARGEST >> 20} MiB, or no end", where=where)
    return b"".join(pieces)


def file_text(path: Path | str) -> str:
    """The text of the file. Raises InputError."""
    try:
        return file_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(error, str(path)) from None


def streams(paths: Iterable[str], *, deep: bool) -> Iterator[tuple[str, bytes]]:
    """The name and content of each file, of standard input for "-", and of each file in a folder (if `deep` also below it), sorted."""
    for path in paths:
        yield from _streams(path, deep)


def _streams(path: str, deep: bool) -> Iterator[tuple[str, bytes]]:
    if path == "-":
        yield "<stdin>", all_of(sys.stdin.buffer, "<stdin>")
        return
    root = Path(path)
    try:
        files = [root]
        if root.is_dir():
            files = sorted(file for file in root.glob("**/*" if deep else "*") if file.suffix in ENDINGS and file.is_file())
        if not files:
            raise InputError(f"no {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file in this folder", where=path)
        for file in files:
            yield str(file), file_bytes(file)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
