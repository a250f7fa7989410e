"""One self-contained HTML file about a comparison: which policy is better in what, all measures side by side, and charts.

Charts show means over the seeds. The first policy is the one that the others are compared with.
"""

import html
from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from statistics import fmean
from typing import Any

from pumice.api.plural import counted
from pumice.simulate.measure_units import MEANINGS, measured
from pumice.simulate.output_columns import PERCENTILES
from pumice.simulate.report import assembled, says_something
from pumice.simulate.report_charts import Chart
from pumice.simulate.result_sentences import Row, change, of_policies

Summaries = Sequence[Mapping[str, Any]]
ByPolicy = Mapping[str, Summaries]
MOST_QUEUES = 16


def compare_report(rows: Sequence[Row], summaries: Summaries, more: Sequence[str] = ()) -> str:
    """The text of the file. `rows` are those of `policy_comparison.table`; `more` are sentences that follow the verdict."""
    seeds = len({summary["seed"] for summary in summaries})
    policies = ", ".join(dict.fromkeys(summary["policy"] for summary in summaries))
    facts = [*facts_of(summaries), counted(seeds, "seed")]
    return side_by_side(rows, summaries, f"{policies} compared", facts, [*of_policies(rows), *more])


def facts_of(summaries: Summaries) -> list[str]:
    return [f"workload {summaries[0]['workload']}", f"cluster {summaries[0]['cluster']}"]


def side_by_side(
    rows: Sequence[Row],
    summaries: Summaries,
    title: str,
    facts: Sequence[str],
    sentences: Iterable[str],
    *,
    first: Sequence[Chart] = (),
    of: str = "seed",
    more: str = "",
) -> str:
    """Policies side by side. `first` are charts before the usual ones; `of` is what the means are of; `more` is HTML that follows."""
    policies = list(dict.fromkeys(summary["policy"] for summary in summaries))
    by_policy = {policy: [summary for summary in summaries if summary["policy"] == policy] for policy in policies}
    return assembled(
        "compare.html",
        [chart for chart in (*first, *_charts(by_policy, of)) if says_something(chart)],
        title=html.escape(title),
        facts=html.escape("; ".join(facts)),
        verdict="".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences),
        heads="".join(f"<th scope=col class=number>{html.escape(policy)}</th>" for policy in policies),
        rows="".join(_row(measure, rows, policies) for measure in dict.fromkeys(row["measure"] for row in rows)),
        of=html.escape(of),
        more=more,
    )


def _row(measure: str, rows: Sequence[Row], policies: Iterable[str]) -> str:
    found = {row["policy"]: row for row in rows if row["measure"] == measure}
    cells = "".join(f"<td class=number>{_cell(measure, found[policy]) if policy in found else '–'}</td>" for policy in policies)
    return f"<tr><th scope=row>{html.escape(MEANINGS[measure].text)}</th>{cells}</tr>"


def _cell(measure: str, row: Row) -> str:
    more = f"<br><small>{html.escape(change(row))}</small>" if "difference" in row else ""
    return html.escape(with_interval(measure, row["mean"], row["interval"])) + more


def with_interval(measure: str, mean: float, half: float) -> str:
    return measured(measure, mean) + ("" if isnan(half) or not half else f" ± {measured(measure, half)}")


def _charts(by_policy: ByPolicy, of: str) -> Iterable[Chart]:
    yield from (chart | {"description": f"Means over the {of}s."} for chart in _drawn(by_policy))


def _drawn(by_policy: ByPolicy) -> Iterable[Chart]:
    yield _waits(by_policy)
    queues = sorted({name for summaries in by_policy.values() for summary in summaries for name in summary["queues"]})
    yield _by_queue(by_policy, queues[:MOST_QUEUES], ("wait", "mean"), "Mean wait by queue", "duration")
    yield _by_queue(by_policy, queues[:MOST_QUEUES], ("bounded_slowdown", "mean"), "Mean bounded slowdown by queue", "number")
    for resource in ("gpu", "cpu"):
        yield _by_policy(by_policy, ("utilisation", resource), f"{resource.upper()}s in use", "percent")
    yield _by_policy(by_policy, ("evictions",), "Evictions", "number")


def _waits(by_policy: ByPolicy) -> Chart:
    names = [*(f"p{share}" for share in PERCENTILES), "max"]
    labels = [*(f"{share} % waited at most" for share in PERCENTILES), "the longest wait"]
    series = {policy: [_mean(summaries, "measures", "wait", name) for name in names] for policy, summaries in by_policy.items()}
    return _bars("Waits", labels, series, "duration")


def _by_queue(by_policy: ByPolicy, queues: list[str], path: tuple[str, ...], title: str, unit: str) -> Chart:
    series = {policy: [_mean(summaries, "queues", name, *path) for name in queues] for policy, summaries in by_policy.items()}
    return _bars(title, queues, series, unit)


def _by_policy(by_policy: ByPolicy, path: tuple[str, ...], title: str, unit: str) -> Chart:
    return _bars(title, [*by_policy], {title: [_mean(summaries, "measures", *path) for summaries in by_policy.values()]}, unit)


def _bars(title: str, labels: list[str], series: Mapping[str, list[float]], unit: str) -> Chart:
    listed = [{"name": name, "y": values} for name, values in series.items()]
    return {"kind": "bars", "title": title, "labels": labels, "series": listed, "yFormat": unit}


def _mean(summaries: Summaries, *path: str) -> float:
    """The mean over the seeds that have the value; 0 if none has."""
    found = []
    for summary in summaries:
        value: Any = summary
        for step in path:
            value = value.get(step) if isinstance(value, Mapping) else None
        found += [float(value)] if isinstance(value, int | float) else []
    return fmean(found) if found else 0.0
