"""One self-contained HTML file about a run, which opens offline: the measures, the jobs that waited longest and why, and charts.

It contains the page's chart module and columns of few points (`report_charts`), so that its size does not grow with the number of jobs. Its
measures are those of the run's JSON: each is a `data` element with the exact number, beside the rounded number that people read.
"""

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any

import msgspec

from pumice.api.plural import plural
from pumice.simulate.measure_units import duration, measured
from pumice.simulate.report_charts import Chart, charts
from pumice.simulate.report_data import Columns
from pumice.simulate.result_sentences import of_run

HEADLINES = {
    "wait.p50": "median wait",
    "wait.p95": "95th percentile of the wait",
    "utilisation.gpu": "GPUs in use",
    "utilisation.cpu": "CPUs in use",
    "bounded_slowdown.mean": "mean bounded slowdown",
    "evictions": "evictions",
    "makespan": "makespan",
}
NOBODY_WAITED = "<tr><td colspan=4>No job waited.</td></tr>"
MOST_NAMED = 4  #: jobs with the same reason
_MODULES = ("dom.js", "format.js", "charts.js")
_LINKING = re.compile(r"^import .*\n|^export (?=const|function)", re.MULTILINE)
_DIGITS = re.compile(r"\d+")
_DRAWING = """
for (const data of JSON.parse(document.getElementById("charts").textContent)) {
  const figure = CHARTS[data.kind](data);
  if (data.kind === "gantt" || data.wide) figure.classList.add("wide");
  document.getElementById("drawn").append(figure);
}
"""


def report(summary: Mapping[str, Any], jobs: Iterable[Columns], series: Columns) -> str:
    """The text of the file. `output_columns.py` describes `summary`, `jobs`, `series`; columns are arrays, jobs come part by part."""
    measured_values = list(flat(summary["measures"]))
    number = summary["measures"]["jobs"]
    title = f"{number:,} {plural(number, 'job')} under {summary.get('policy') or 'the default policy'}"
    return assembled(
        "report.html",
        [chart for chart in charts(jobs, series) if says_something(chart)],
        title=html.escape(title),
        facts=html.escape("; ".join(_facts(summary))),
        verdict=html.escape(of_run(summary)),
        headlines="".join(_headline(name, value) for name, value in measured_values if name in HEADLINES),
        waits="".join(_waits(summary["longest"])) or NOBODY_WAITED,
        measures="".join(
            f"<tr><th scope=row>{html.escape(name)}</th><td class=number>{_datum(name, value)}</td></tr>" for name, value in measured_values
        ),
    )


def assembled(template: str, drawn: list[Chart], **fields: str) -> str:
    """A page of its own: a template with these fields in the frame of all, the charts, and the scripts and styles that draw them."""
    script = "".join(_LINKING.sub("", _static(name)) for name in _MODULES) + _DRAWING
    return Template(_static("frame.html")).substitute(
        title=fields["title"],
        body=Template(_static(template)).substitute(fields),
        trusted=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style="".join(map(_static, ("base.css", "charts.css", "report.css"))),
        charts=msgspec.json.encode(drawn).decode().replace("<", "\\u003c"),
        script=script,
    )


def says_something(chart: Chart) -> bool:
    """Whether a chart shows anything but zeros, where zeros mean that nothing of the kind happened."""
    if chart["kind"] == "heat":
        return any(value for row in chart["rows"] for value in row["values"])
    if chart["title"].startswith("Wait by "):
        return len({*chart["x"]}) > 1 and any(value < 1 for one in chart["series"] for value in one["y"])
    return "series" not in chart or any(value for one in chart["series"] for value in one["y"])


def flat(measures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Every number of nested measures, by its path."""
    for name, value in measures.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, (int, float)):
            yield f"{prefix}{name}", value


def _headline(name: str, value: float) -> str:
    return f"<div><dt>{HEADLINES[name]}</dt><dd>{measured(name, value)}</dd></div>"


def _datum(name: str, value: float) -> str:
    return f'<data id="{html.escape(name)}" value="{msgspec.json.encode(value).decode()}">{measured(name, value)}</data>'


def _facts(summary: Mapping[str, Any]) -> Iterator[str]:
    for name in ("workload", "cluster", "seed"):
        if summary.get(name) is not None:
            yield f"{name} {summary[name]}"
    for why, count in (summary.get("left_out") or {}).items():
        yield f"{count:,} {plural(count, 'job')} left out: {why}"


def _waits(longest: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Rows of a table: the longest waits by their reason, the longest first. Reasons that differ in numbers only are one."""
    by_reason: dict[str, list[Mapping[str, Any]]] = {}
    for job in longest:
        if job["wait"] > 0:
            by_reason.setdefault(_DIGITS.sub("#", job["reason"] or ""), []).append(job)
    for jobs in by_reason.values():
        never = "" if jobs[0]["start"] is not None else " and never started"
        more = f" and {len(jobs) - MOST_NAMED} more" if len(jobs) > MOST_NAMED else ""
        names, queues = _names(job["job"] for job in jobs[:MOST_NAMED]), _names(dict.fromkeys(job["queue"] for job in jobs))
        cells = [duration(jobs[0]["wait"]) + never, names + more, html.escape(jobs[0]["reason"] or ""), queues]
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _names(listed: Iterable[str]) -> str:
    """The names as HTML, each of which may be written from right to left."""
    return ", ".join(f"<bdi>{html.escape(name)}</bdi>" for name in listed)


def _static(name: str) -> str:
    return resources.files("pumice.page").joinpath("static", name).read_text("utf-8")
