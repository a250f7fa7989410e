"""Plain columns in kubectl's manner, greppable, no lines; and in vcctl's, whose columns have widths of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GAP = "   "


def columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Head and rows, each column as wide as its widest entry; the last one runs on."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(head) - 1)]
    return "\n".join(GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in cells)


def wide_columns(head: Sequence[tuple[str, int]], rows: Iterable[Sequence[object]]) -> str:
    """Columns of at least these widths; a wider entry widens its column, and leaves a space after it."""
    cells = [[title for title, _ in head], *([str(cell) for cell in row] for row in rows)]
    widths = [max(least, *(len(row[number]) + 1 for row in cells)) for number, (_, least) in enumerate(head)]
    return "\n".join("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells)
