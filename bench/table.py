"""The table of figures, printed row by row as they are measured."""

from __future__ import annotations

import importlib
from typing import Any

from bench.measure import Row

HEAD = f"{'WHAT':<78} {'BUDGET':>12} {'CPU':>12} {'WALL':>12} {'PEER':>8} {'NAIVE':>7}  DECIDED"


def show_part(part: str) -> list[Any]:
    """All rows or curves of a part. Each row is printed as soon as it is measured."""
    measured = []
    for one in importlib.import_module(f"bench.{part}").run():
        if isinstance(one, Row):
            show(one)
        measured.append(one)
    return measured


def show(row: Row) -> None:
    def figure(value: float | None) -> str:
        if value is None:
            return "-"
        return f"{value:,.0f}/s" if row.unit.endswith("/s") else f"{value:.3f} {row.unit}"

    peer = f"{row.peer / row.cpu:.0f}x" if row.peer and row.cpu and row.unit == "s" else ""
    naive = f"{row.naive:.0f}x" if row.naive else ""
    mark = " " if row.within else "!"
    decided = ", ".join(f"{value} {key}" for key, value in row.counts.items() if value)
    print(
        f"{row.name:<78} {figure(row.budget):>12}{mark}{figure(row.cpu):>12} {figure(row.wall):>12} {peer:>8} {naive:>7}  {decided}",
        flush=True,
    )
