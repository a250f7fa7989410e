"""Patterns that users write: RE2's syntax, as in Go, and its promise that a match takes time linear in the text.

RE2 is imported for the first pattern. Its slowest way to match takes one step for each pair of a character and an instruction. The
number of these steps is bounded here, since a short pattern can compile to a hundred thousand instructions.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from pumice.api.errors import in_line

MOST_WORK = 2**26  #: the bound of one match: characters of the text times instructions of the pattern
_KEPT = 16  #: compiled patterns that are cached, each with up to 8 MiB of states
_EACH_MATCH = 10  #: what each further match costs, besides the cost of the text
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class PatternError(ValueError):
    """Raised for a text that is no valid pattern, and for a pattern that is too much work for a text."""


class Pattern:
    """A compiled pattern. `pattern()` makes it."""

    __slots__ = ("_compiled", "size")

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self.size: int = compiled.programsize  #: in instructions

    def found_in(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text. Raises PatternError."""
        return self._compiled.search(self._checked(text)) is not None

    def first(self, text: str) -> str | None:
        """The first match in the text; None if there is none. Raises PatternError."""
        found = self._compiled.search(self._checked(text))
        return None if found is None else str(found[0])

    def each(self, text: str, limit: int, pay: Callable[[int], None] = lambda cost: None) -> list[str]:
        """The first `limit` matches, or all if it is negative; `pay` is called for each. An empty match right after another is left out.

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
    """The compiled pattern that is written in `text`. Raises PatternError."""
    import re2  # type: ignore[import-untyped]

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    if any(escape[1] == "C" for escape in _ESCAPE.finditer(text)):
        raise PatternError("invalid escape sequence: \\C")
    try:
        compiled = re2.compile(_valid(text), options)
    except re2.error as error:
        raise PatternError(in_line(error.args[0].decode(errors="replace"))) from None
    re2.purge()  # the cache of the module itself could hold a gigabyte of states
    return Pattern(compiled)


def _valid(text: str) -> str:
    """The text with lone surrogates replaced, as Go's JSON decoder does."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
