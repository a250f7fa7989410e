"""All simulations of a search, each played once; in a folder they are kept, so that an interrupted search goes on where it was.

`played.jsonl` has a line for each simulation: its key, a digest of everything that it depends on except for the content of the workload's
file, and its summary. The search itself depends on nothing but its seed and these results, so it takes the same course again.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from pumice.api import InputError
from pumice.simulate.crew import Crew
from pumice.simulate.run import Summary

FILE = "played.jsonl"


class Playable(Protocol):
    @property
    def key(self) -> str: ...

    def play(self) -> dict[str, Any]: ...


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
        if self._file is None:
            if resume:
                raise InputError("say with --out where the search was", where="--resume")
        elif resume:
            self._read(self._file)
        else:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_bytes(b"")

    def _read(self, file: Path) -> None:
        if not file.is_file():
            raise InputError(f"there is no {FILE}; leave out --resume to begin", where=str(file.parent))
        lines = file.read_bytes().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]  # the last one may have been cut off
        for line in whole:
            entry = msgspec.json.decode(line)
            self._found[entry["key"]] = entry["summary"]
        file.write_bytes(b"".join(whole))

    def play(self, works: Sequence[Playable]) -> list[Summary]:
        """The summaries in the order of `works`. Raises InputError."""
        new = {work.key: work for work in works if work.key not in self._found}
        for work, summary in self._crew.play([*new.values()]):
            self._found[work.key] = summary
            self.played += 1
            if self._file is not None:
                with self._file.open("ab") as file:
                    file.write(msgspec.json.encode({"key": work.key, "summary": summary}) + b"\n")
            self._on_played(self.played)
        return [self._found[work.key] for work in works]
