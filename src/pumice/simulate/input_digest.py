"""What a simulation is made of, as one short text: results that were kept are of use only as long as it is the same."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from pumice import __version__


def digest_of(sources: Iterable[str | None], folders: Iterable[str | None], text: str) -> str:
    """A digest of the files of sources such as swf:FILE, of all files in folders, of a text, and of the version of this program."""
    found = hashlib.sha256(f"{__version__}\n{text}".encode())
    named = [source.partition(":")[2] for source in sources if source]
    for path in (*(Path(name + ending) for name in named for ending in ("", ".machines")), *(Path(each) for each in folders if each)):
        for file in _files(path):
            with file.open("rb") as opened:
                found.update(str(file).encode() + hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    """The file itself, or all files in a folder but what Python has compiled; nothing if there is none, which whoever reads it says."""
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return (file for file in found if file.is_file() and file.parent.name != "__pycache__")
