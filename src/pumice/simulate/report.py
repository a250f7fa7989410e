"""One self-contained HTML file about a run, which opens offline: the measures, the jobs that waited longest and why, and charts.

It contains the page's chart module and columns of few points (`report_charts`), so that its size does not grow with the number of jobs. Its
measures are those of the run's JSON: each is a `data` element with the exact number, beside the rounded number that people read.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any

import msgspec

from pumice.simulate.report_charts import charts
from pumice.simulate.report_data import Columns

HEADLINES = {
    "wait.p50": "median wait",
    "wait.p95": "95th percentile of the wait",
    "utilisation.gpu": "GPUs in use",
    "utilisation.cpu": "CPUs in use",
    "bounded_slowdown.mean": "mean bounded slowdown",
    "evictions": "evictions",
    "makespan": "makespan",
}
SECONDS = ("wait", "turnaround", "makespan")
SHARES = ("utilisation", "fairness")
NOBODY_WAITED = "<tr><td colspan=5>No job waited.</td></tr>"
UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
_MODULES = ("dom.js", "format.js", "charts.js")
_LINKING = re.compile(r"^import .*\n|^export (?=const|function)", re.MULTILINE)
_DRAWING = """
for (const data of JSON.parse(document.getElementById("charts").textContent)) {
  const figure = CHARTS[data.kind](data);
  if (data.kind === "gantt" || data.wide) figure.classList.add("wide");
  document.getElementById("drawn").append(figure);
}
"""


def report(summary: Mapping[str, Any], jobs: Iterable[Columns], series: Columns) -> str:
    """The text of the file. `columns.py` describes `summary`, `jobs` and `series`; columns are arrays, and jobs come part by part."""
    script = "".join(_LINKING.sub("", _static(name)) for name in _MODULES) + _DRAWING
    drawn = msgspec.json.encode(charts(jobs, series)).decode().replace("<", "\\u003c")
    measured = list(flat(summary["measures"]))
    title = f"{summary['measures']['jobs']:,} jobs under {summary.get('policy') or 'the default policy'}"
    return Template(_static("report.html")).substitute(
        title=html.escape(title),
        facts=html.escape("; ".join(_facts(summary))),
        trusted=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style="".join(map(_static, ("base.css", "charts.css", "report.css"))),
        headlines="".join(_headline(name, value) for name, value in measured if name in HEADLINES),
        waits="".join(_wait(job) for job in summary["longest"] if job["wait"] > 0) or NOBODY_WAITED,
        measures="".join(
            f"<tr><th scope=row>{html.escape(name)}</th><td class=number>{_datum(name, value)}</td></tr>" for name, value in measured
        ),
        charts=drawn,
        script=script,
    )


def flat(measures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Every number of nested measures, by its path."""
    for name, value in measures.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, (int, float)):
            yield f"{prefix}{name}", value


def _headline(name: str, value: float) -> str:
    return f"<div><dt>{HEADLINES[name]}</dt><dd>{_text(name, value)}</dd></div>"


def _row(name: str, value: float) -> str:
    return f"<tr><th scope=row>{html.escape(name)}</th><td class=number>{_datum(name, value)}</td></tr>"


def _datum(name: str, value: float) -> str:
    return f'<data id="{html.escape(name)}" value="{msgspec.json.encode(value).decode()}">{_text(name, value)}</data>'


def _text(name: str, value: float) -> str:
    first = name.partition(".")[0]
    if first in SECONDS:
        return duration(value)
    return f"{100 * value:.1f} %" if first in SHARES else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def duration(seconds: float) -> str:
    """A duration in its two largest units, as the charts show it."""
    if seconds < 10:
        return f"{seconds:.3g} s"
    left, parts = round(seconds), []
    at = next(index for index, (size, _) in enumerate(UNITS) if left >= size)
    for size, unit in UNITS[at : at + 2]:
        count, left = divmod(left, size)
        parts += [f"{count} {unit}"] if count else []
    return " ".join(parts)


def _facts(summary: Mapping[str, Any]) -> Iterator[str]:
    for name in ("workload", "cluster", "seed"):
        if summary.get(name) is not None:
            yield f"{name} {summary[name]}"
    for why, count in (summary.get("left_out") or {}).items():
        yield f"{count:,} jobs left out: {why}"


def _wait(job: Mapping[str, Any]) -> str:
    never = "" if job["start"] is not None else " and never started"
    cells = [duration(job["wait"]) + never, job["job"], job["reason"] or "", job["queue"], duration(job["submit"])]
    return "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _static(name: str) -> str:
    return resources.files("pumice.page").joinpath("static", name).read_text("utf-8")
