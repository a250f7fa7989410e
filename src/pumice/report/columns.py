"""Plain columns in kubectl's manner: greppable, no lines, no colours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

GAP = "   "


def columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Head and rows, each column as wide as its widest entry; the last one runs on."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[number]) for row in cells) for number in range(len(head) - 1)]
    return "\n".join(GAP.join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip() for row in cells)
