"""Patterns that users write: RE2's syntax, as in Go, and its promise that a match takes time linear in the text.

RE2 comes in when the first pattern does. Its last resort takes a step for each pair of a character and an instruction; how many of those a
match may need at worst is bounded here, since a short pattern can mean a hundred thousand instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

MOST_WORK = 2**26  #: characters times instructions
_KEPT = 16  #: patterns, each with up to 8 MiB of states
_EACH_MATCH = 10  #: what finding one more costs beside the text
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class PatternError(ValueError):
    """No pattern, or one that is too much work for a text."""


class Pattern:
    """Get it from `pattern()`."""

    __slots__ = ("_compiled", "size")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.size: int = compiled.programsize  #: instructions

    def found_in(self, text: str) -> bool:
        """Whether it is anywhere in the text. Raises PatternError."""
        return self._compiled.search(self._checked(text)) is not None

    def first(self, text: str) -> str | None:
        """The first match, if there is one. Raises PatternError."""
        found = self._compiled.search(self._checked(text))
        return None if found is None else str(found[0])

    def each(self, text: str, limit: int, pay: Callable[[int], None] = lambda cost: None) -> list[str]:
        """The first `limit` matches, all if it is negative, each paid for. An empty match right behind another does not count.

        Raises PatternError.
        """
        matches: list[str] = []
        end = -1
        for found in self._compiled.finditer(self._checked(text)):
            if 0 <= limit <= len(matches):
                break
            if found[0] or found.start() != end:
                pay(_EACH_MATCH)
                matches.append(found[0])
            end = found.end()
        return matches

    def _checked(self, text: str) -> str:
        if len(text) * self.size > MOST_WORK:
            raise PatternError(f"a text of {len(text)} characters is too long for so large a pattern")
        return _valid(text)


@lru_cache(maxsize=_KEPT)
def pattern(text: str) -> Pattern:
    """The compiled pattern. Raises PatternError."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    if any(escape[1] == "C" for escape in _ESCAPE.finditer(text)):
        raise PatternError("invalid escape sequence: \\C")
    try:
        compiled = re2.compile(_valid(text), options)
    except re2.error as error:
        raise PatternError(error.args[0].decode(errors="replace")) from None
    re2.purge()  # its own cache would hold a gigabyte of states
    return Pattern(compiled)


def _valid(text: str) -> str:
    """Halves of surrogate pairs replaced, as Go's readers of JSON do."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
