"""Files that a user names: one file, all files of a folder, or standard input."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pumice.api.errors import InputError
from pumice.api.file_content import all_of, file_bytes
from pumice.api.manifests import Objects, read_data

ENDINGS = (".yaml", ".yml", ".json")


def streams(path: str, *, deep: bool) -> Iterator[tuple[str, bytes]]:
    """The name and content of the file, of standard input for "-", or of each file in the folder (if `deep` also below it), sorted."""
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


def read_all(paths: Iterable[str], namespace: str = "default") -> Objects:
    """Read files, folders (all .yaml, .yml, .json below them, sorted) and "-" for standard input. Objects that state no namespace are of
    this one. Raises InputError with all faults."""
    objects = Objects(namespace=namespace)
    for path in paths:
        for where, data in streams(path, deep=True):
            read_data(data, where, objects)
    objects.check()
    return objects
