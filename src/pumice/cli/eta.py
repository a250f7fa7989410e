"""`pumice eta`: when a job will start, and how often such forecasts come true."""

from __future__ import annotations

from math import inf

import click
import msgspec

from pumice.answers.calibration import Calibration, calibrate
from pumice.answers.eta import HORIZON_S, Eta, etas
from pumice.answers.eta import eta as eta_of
from pumice.api.times import span
from pumice.cli.inputs import Inputs, input_options, load
from pumice.simulate.inputs import nodes_from, read_policy, source
from pumice.simulate.run import cluster_of
from pumice.text_table import columns


@click.command()
@click.argument("subject", required=False)
@input_options
@click.option("--now", help="The instant of the forecast, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("--score", metavar="FORMAT:FILE", help="Play this workload, and say how often jobs started within what they were told.")
@click.option("--nodes", metavar="POOLS", help="With --score: the nodes in shorthand, such as 300x8gpu. Default: those of the workload.")
@click.option("--policy", default="volcano", show_default=True, metavar="NAME|FILE", help="With --score: who decides.")
@click.option(
    "--every",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="With --score: after so many that wait, those that still do are told.",
)
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def eta(
    inputs: Inputs,
    subject: str | None,
    now: str | None,
    score: str | None,
    nodes: str | None,
    policy: str,
    every: int,
    output: str,
) -> None:
    """When SUBJECT (job/NAME, podgroup/NAME, pod/NAME) will start: what half of the rollouts reach, and nine of ten.

    Without a subject, each PodGroup that waits. Reads files with -f, else a live cluster, to which nothing is written.
    """
    if subject is not None and score is not None:
        raise click.UsageError("--score asks about a workload, so it takes no subject")
    answer: object
    if score is not None:
        answer = _score(score, nodes, policy, every)
        text = calibration_page(answer)
    else:
        moment = inputs.moment(now)
        cluster, decides = load(inputs.or_cluster(), moment)
        if subject is None:
            answer = sorted(etas(cluster, decides, moment).values(), key=lambda each: (each.p50 is None, each.p50, each.subject))
            text = all_that_wait(answer)
        else:
            answer = eta_of(cluster, decides, moment, subject)
            text = page(answer)
    click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2) if output == "json" else text)


def _score(workload: str, nodes: str | None, policy: str, every: int) -> Calibration:
    decides, _ = read_policy(policy)
    read = source(workload, "--score").read(nodes_from(None, nodes))
    return calibrate(cluster_of(decides, read), decides, read, every)


def page(answer: Eta) -> str:
    if answer.state != "waits":
        return f"{answer.subject} does not wait"
    moments = [(name, _within(seconds), at or "") for name, seconds, at in answer.moments]
    sources = [(source, str(count)) for source, count in sorted(answer.run_times.items(), key=lambda each: -each[1])]
    return "\n\n".join(
        (
            f"{answer.subject} starts {_within(answer.p50)}, and {_within(answer.p90)} with a chance of 90 %",
            columns(("", "STARTS", "BY"), moments),
            columns(("RUN TIMES BY", "JOBS"), sources),
            f"Jobs that came in the last 24 hours, and are expected to come again each day: {answer.arrivals}.",
            *([f"P90 is corrected by what became of {answer.past_forecasts} forecasts."] if answer.past_forecasts else ()),
        )
    )


def all_that_wait(answers: list[Eta]) -> str:
    rows = [(answer.subject, *(_within(seconds) for _, seconds, _ in answer.moments)) for answer in answers]
    return columns(("SUBJECT", "P50", "P90"), rows) if rows else "No PodGroup waits."


def brief_eta(answer: Eta) -> str:
    """P50 and P90 of a forecast, as text for one table cell."""
    return " to ".join(span(seconds) if seconds is not None else f">{span(HORIZON_S)}" for _, seconds, _ in answer.moments)


def _within(seconds: float | None) -> str:
    return f"within {span(seconds)}" if seconds is not None else f"not within {span(HORIZON_S)}"


def calibration_page(found: Calibration) -> str:
    rows = [(f"P{percent}", f"{100 * share:.0f} %") for percent, share in ((50, found.within_p50), (90, found.within_p90))]
    p90 = span(found.median_p90) if found.median_p90 < inf else f">{span(HORIZON_S)}"
    return "\n\n".join(
        (
            f"{len(found.told)} jobs that waited were told when they would start, at {found.instants} instants",
            columns(("TOLD", "STARTED WITHIN"), rows),
            f"Median of the times told as P90: {p90}; of the times until they started: {span(found.median_waited)}.",
        )
    )
