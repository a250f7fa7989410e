"""One self-contained HTML file about a search, in the form of the one about a comparison: what it came to, the front of the objective
against the first condition, both configurations side by side on the days held back, the lines that differ, and all that was tried."""

import html
from collections.abc import Iterable, Mapping

from pumice.api.plural import counted
from pumice.simulate.compare_report import facts_of, side_by_side
from pumice.simulate.measure_units import duration, measured
from pumice.simulate.policy_comparison import table
from pumice.simulate.report_charts import Chart
from pumice.simulate.tune.advice import FOUND, IN_FORCE, Advice
from pumice.simulate.tune.summary import shown


def tune_report(advice: Advice, sentences: Iterable[str], configuration: str, trials: list[tuple[object, ...]]) -> str:
    """The text of the file. `configuration` is what was found, empty if nothing was; `trials` are the rows of trials.csv."""
    days = {IN_FORCE: advice.before, FOUND: advice.after}
    summaries = [{**summary, "policy": name} for name, played in days.items() for summary in played.values()]
    summaries = summaries or [{**summary, "policy": IN_FORCE} for summary in advice.whole_before]
    tried = counted(len(advice.trials), "configuration")
    facts = [*facts_of(advice.whole_before), tried, f"periods of {duration(advice.period_s)}"]
    found = f"<section><h2>What was found</h2><pre>{html.escape(configuration)}</pre></section>" if configuration else ""
    return side_by_side(
        table(summaries),
        summaries,
        f"{advice.goal.objective}: a search for a better configuration",
        facts,
        sentences,
        first=[*front(advice)],
        of="held-back period" if advice.before else "seed",
        more=f"{found}\n{_tried(trials, {str(each): each.name for each in shown(advice)})}",
    )


def front(advice: Advice) -> Iterable[Chart]:
    """The best value of the objective among the configurations whose value of the first condition is at most x."""
    goal = advice.goal
    against = goal.keeps[0].measured
    complete = [trial.days for trial in advice.trials if not trial.stopped]
    found = [(goal.difference(days, days, against), goal.difference(days, days)) for days in complete]
    points = sorted((x.after, y.after) for x, y in found if x is not None and y is not None)
    best = max if goal.objective.better_if_more else min
    if len({x for x, _ in points}) > 1:
        yield {
            "kind": "lines",
            "title": f"{goal.objective} against {against}",
            "description": "The best configuration up to each value of the condition, of those played on all periods of the search.",
            "x": [round(x, 4) for x, _ in points],
            "series": [{"name": str(goal.objective), "y": [round(best(y for _, y in points[: n + 1]), 4) for n in range(len(points))]}],
            "shape": "step",
            "xFormat": _format(against.path[0]),
            "yFormat": _format(goal.objective.path[0]),
            "xLabel": str(against),
            "yLabel": str(goal.objective),
        }


def _format(measure: str) -> str:
    return "duration" if measure in ("wait", "turnaround") else "number"


def _tried(rows: list[tuple[object, ...]], measures: Mapping[str, str]) -> str:
    """The table of all that was tried. `measures`: the measure by the head of its column."""
    head = [str(cell) for cell in rows[0]]
    body = [[_cell(cell, measures.get(name, "")) for name, cell in zip(head, row, strict=True)] for row in rows[1:]]
    heads = "".join(f"<th scope=col>{html.escape(cell)}</th>" for cell in head)
    cells = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in body)
    inner = f"<table><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>"
    scrolled = f'<div class="scroll" tabindex="0" role="region" aria-labelledby="tried">{inner}</div>'
    return f'<section><h2 id="tried">All that was tried</h2>{scrolled}</section>'


def _cell(cell: object, measure: str) -> str:
    return measured(measure, cell) if measure and isinstance(cell, float) else "" if cell is None else str(cell)
