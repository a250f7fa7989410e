"""Plain columns as kubectl prints them, without lines, easy to grep; and as vcctl prints them, with a least width for each column.

And how text of others is shown: names come from files and from other people's objects, and a terminal obeys what stands in them.
"""

import re
from collections.abc import Iterable, Sequence

GAP = "   "

#: what a terminal obeys or does not show: control characters of both sets, marks of direction, joiners, line separators, half characters
_COMMANDS = r"\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
_IN_TEXT, _IN_LINE = re.compile(f"[{_COMMANDS}]"), re.compile(f"[{_COMMANDS}\t\n]")


def shown(text: str) -> str:
    """The text, which may have several lines, with \\u escapes for what a terminal would obey."""
    return text if text.isascii() and text.isprintable() else _IN_TEXT.sub(_escaped, text)


def shown_in_line(text: str) -> str:
    """The text with these escapes in one line."""
    return text if text.isascii() and text.isprintable() else _IN_LINE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """The header and the rows as text. Each column is as wide as its widest entry; the last column is not padded."""
    cells = [list(head), *([shown_in_line(str(cell)) for cell in row] for row in rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(head) - 1)]
    return "\n".join(GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in cells)


def wide_columns(head: Sequence[tuple[str, int]], rows: Iterable[Sequence[object]]) -> str:
    """The header and the rows as text, in columns of at least these widths. A wider entry widens its column, with a space after it."""
    cells = [[title for title, _ in head], *([shown_in_line(str(cell)) for cell in row] for row in rows)]
    widths = [max(least, *(len(row[number]) + 1 for row in cells)) for number, (_, least) in enumerate(head)]
    return "\n".join("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
