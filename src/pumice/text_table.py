"""Plain columns as kubectl prints them, without lines, easy to grep; and as vcctl prints them, with a least width for each column."""

from collections.abc import Iterable, Sequence

from pumice.escaped_text import shown_in_line

GAP = "   "


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
