"""`python -m bench [PART ...] [--json FILE]`: the table of budgets, and the same as JSON.

The parts are `growth` and every module of this folder whose `run()` gives rows. Each part runs in a process of its own, so that it is
not affected by what another part has left behind. Long parts run only if they are named.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import bench
from bench.table import HEAD, show_part

NO_ROWS = (
    *("__main__", "causes", "small_cluster", "measure", "naive", "plot", "report", "shapes", "table"),
    *("exact_moves", "frozen", "growth", "in_accasim", "live_binder", "mutants", "mutations", "soak"),
)
LONG = ("large", "moving", "peers")


def parts() -> list[str]:
    return [info.name for info in pkgutil.iter_modules(bench.__path__) if info.name not in NO_ROWS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join([*parts(), "growth"]))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    chosen = options.parts or [part for part in (*parts(), "growth") if part not in LONG]
    result: dict[str, Any] = {"rows": [], "growth": []}
    print(HEAD, flush=True)
    for part in chosen:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            measured = alone.submit(show_part, part).result()
        if part == "growth":
            result["growth"] = measured
            continue
        result["rows"] += [row._asdict() | {"part": part, "within": row.within} for row in measured]
    for curve in result["growth"]:
        print(f"\n{curve['name']}: {curve['y']} by {curve['x']}")
        print("  " + "   ".join(f"{x}: {y:.1f}" for x, y in curve["points"]))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
