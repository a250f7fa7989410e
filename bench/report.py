"""`python -m bench.report FILE.json`: the rows of a run as Markdown, a table for each part, to be put into the documents."""

from __future__ import annotations

import importlib
import json
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

MOST_TIMES = 1000.0  #: a larger ratio to a peer says nothing that the figures do not say


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| work | budget | Pumice | peer | naive scan |", "|---|---|---|---|---|"]
    for row in rows:
        rate = row["unit"].endswith("/s")

        def figure(value: float | None, unit: str = row["unit"], rate: bool = rate) -> str:
            if value is None:
                return ""
            return f"{value:,.0f}/s" if rate else f"{value:.3g} {unit}"

        times = row["peer"] / row["cpu"] if row["peer"] else 0.0
        peer = f"{figure(row['peer'])}{f' ({times:,.0f}x)' if times < MOST_TIMES else ''}" if row["peer"] else ""
        naive = f"{row['naive']:.0f}x" if row["naive"] else ""
        missed = "" if row["within"] else " (missed)"
        lines.append(f"| {row['name']} | {figure(row['budget'])} | {figure(row['cpu'])}{missed} | {peer} | {naive} |")
    return "\n".join(lines)


def tables(rows: list[dict[str, Any]]) -> str:
    def title(part: str) -> str:
        return str(importlib.import_module(f"bench.{part}").__doc__).partition("\n")[0]

    return "\n\n".join(f"{title(part)}\n\n{table(list(own))}" for part, own in groupby(rows, itemgetter("part")))


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text())["rows"]))
