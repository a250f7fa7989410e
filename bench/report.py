"""`python -m bench.report FILE.json`: the rows of a run as a Markdown table, to be put into the documents."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| work | budget | Pumice | peer | naive scan |", "|---|---|---|---|---|"]
    for row in rows:
        rate = row["unit"].endswith("/s")

        def figure(value: float | None, unit: str = row["unit"], rate: bool = rate) -> str:
            if value is None:
                return ""
            return f"{value:,.0f}/s" if rate else f"{value:.3g} {unit}"

        peer = f"{figure(row['peer'])} ({row['peer'] / row['cpu']:,.0f}x)" if row["peer"] else ""
        naive = f"{row['naive']:.0f}x" if row["naive"] else ""
        missed = "" if row["within"] else " (missed)"
        lines.append(f"| {row['name']} | {figure(row['budget'])} | {figure(row['cpu'])}{missed} | {peer} | {naive} |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(json.loads(Path(sys.argv[1]).read_text())["rows"]))
