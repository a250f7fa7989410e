"""All simulations of a search, each played once; in a folder they are kept, so that an interrupted search goes on where it was.

`played.jsonl` has a line for each simulation: its key, which is a digest of everything that it depends on, and its summary. The search
itself depends on nothing but its seed and these results, so it takes the same course again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pumice.api import InputError
from pumice.simulate.scenario import Summary
from pumice.simulate.worker_processes import Crew

FILE = "played.jsonl"


class KeyedPlayable(Protocol):
    @property
    def key(self) -> str: ...

    def play(self) -> dict[str, Any]: ...


class ResultLine(msgspec.Struct):
    """A line of the file."""

    key: str
    summary: Summary


class TrialResults:
    """The results so far."""

    def __init__(
        self, crew: Crew, folder: Path | None, *, resume: bool = False, played: Callable[[int], None] = lambda count: None
    ) -> None:
        """`played` is called with the number of simulations played here, after each. Raises InputError."""
        self._crew, self._on_played = crew, played
        self._found: dict[str, Summary] = {}
        self._file = folder / FILE if folder is not None else None
        self.played = 0  #: simulations that were played here, not read
        self._unread = resume  #: whether what was played by another search is yet to be told from one that this goes on with
        if self._file is None:
            if resume:
                raise InputError("say with --out where the search was", where="--resume")
        elif resume:
            self._read(self._file)
        else:
            self._begin(self._file)

    def _begin(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.is_file() and file.stat().st_size:
            raise InputError("has what a search has played; go on with --resume, or say another folder", where=f"--out {file.parent}")
        file.write_bytes(b"")

    def _read(self, file: Path) -> None:
        if not file.is_file():
            raise InputError(f"there is no {FILE}; leave out --resume to begin", where=str(file.parent))
        lines = file.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]  # the last one may have been cut off
        for number, line in enumerate(whole, 1):
            try:
                entry = msgspec.json.decode(line, type=ResultLine)
            except msgspec.MsgspecError as error:
                raise InputError(f"is no line of a search: {error}", where=f"{file}:{number}") from None
            self._found[entry.key] = entry.summary
        file.write_bytes(b"".join(whole))

    def play(self, works: Sequence[KeyedPlayable]) -> list[Summary]:
        """The summaries in the order of `works`. Raises InputError."""
        new = {work.key: work for work in works if work.key not in self._found}
        if self._unread and self._found and len(new) == len(works):
            message = "what was played there is of another workload, nodes or configuration in force; say another folder, without --resume"
            raise InputError(message, where="--resume")
        self._unread = False
        for work, summary in self._crew.play([*new.values()]):
            self._found[work.key] = summary
            self.played += 1
            if self._file is not None:
                with self._file.open("ab") as file:
                    file.write(msgspec.json.encode(ResultLine(work.key, summary)) + b"\n")
            self._on_played(self.played)
        return [self._found[work.key] for work in works]
