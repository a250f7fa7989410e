"""`python -m bench [PART ...] [--json FILE]`: the table of budgets, and the same as JSON.

Parts: every module of this folder that has `run()` and gives rows; and `growth`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import pkgutil
from pathlib import Path
from typing import Any

import bench
from bench.measure import Row

NO_ROWS = ("__main__", "measure", "shapes", "growth", "plot", "report")


def parts() -> list[str]:
    return [info.name for info in pkgutil.iter_modules(bench.__path__) if info.name not in NO_ROWS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join([*parts(), "growth"]))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = options.parts or [*parts(), "growth"]
    result: dict[str, Any] = {"rows": [], "growth": []}
    print(f"{'WHAT':<78} {'BUDGET':>12} {'CPU':>12} {'WALL':>12} {'PEER':>8} {'NAIVE':>7}  DECIDED", flush=True)
    for part in chosen:
        module = importlib.import_module(f"bench.{part}")
        gc.collect()
        if part == "growth":
            result["growth"] = module.run()
            continue
        for row in module.run():
            show(row)
            result["rows"].append(row._asdict() | {"within": row.within})
    for curve in result["growth"]:
        print(f"\n{curve['name']}: {curve['y']} by {curve['x']}")
        print("  " + "   ".join(f"{x}: {y:.1f}" for x, y in curve["points"]))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


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


if __name__ == "__main__":
    main()
