"""`pumice eta`: when a job will start, and how often such forecasts come true."""

from collections.abc import Callable
from functools import partial
from math import inf

import click

from pumice.answers.calibration import Calibration, calibrate
from pumice.answers.eta import HORIZON_S, Eta, eta as eta_of, etas
from pumice.answers.subject import called
from pumice.api.plural import counted, plural
from pumice.api.times import span
from pumice.cli.inputs import Inputs, input_options, load, namespace_option
from pumice.cli.stated_options import is_stated
from pumice.cli.tables import json_text, say
from pumice.simulate.inputs import nodes_from, read_policy, source
from pumice.simulate.scenario import cluster_of
from pumice.text_table import columns

CHANCES = (50, 90)  #: per cent
OF_WORKLOAD = ("nodes", "policy", "every")  #: options that mean something with --score alone
OF_STATE = ("files", "from_cluster", "recording", "at", "conf", "namespace", "now")  #: and those that mean nothing with it


@click.command()
@click.argument("subject", required=False)
@input_options
@namespace_option
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Without a SUBJECT: all namespaces. The default without -n.")
@click.option("--now", help="The instant of the forecast, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("--score", metavar="FORMAT:FILE", help="Simulate this workload, and say how often jobs started within their forecasts.")
@click.option("--nodes", metavar="POOLS", help="With --score: the nodes in shorthand, such as 300x8gpu. Default: those of the workload.")
@click.option("--policy", default="volcano", show_default=True, metavar="NAME|FILE", help="With --score: the policy that decides.")
@click.option(
    "--every",
    default=100,
    show_default=True,
    type=click.IntRange(1),
    help="With --score: each time so many more jobs have come, a forecast is made for those that wait.",
)
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def eta(
    inputs: Inputs,
    subject: str | None,
    everywhere: bool,
    now: str | None,
    score: str | None,
    nodes: str | None,
    policy: str,
    every: int,
    output: str,
) -> None:
    """When SUBJECT will start: by when with a chance of 50 %, and of 90 %. Without a SUBJECT: when each job that waits will.

    SUBJECT is job/NAME, deployment/NAME, pod/NAME or podgroup/NAME. One of another namespace is job/NAMESPACE/NAME or NAMESPACE/NAME, or
    job/NAME with -n NAMESPACE.

    Reads files with -f, else a live cluster, to which nothing is written.
    """
    if subject is not None and score is not None:
        raise click.UsageError("--score asks about a workload, so it takes no subject")
    for option in OF_STATE if score is not None else OF_WORKLOAD:
        if is_stated(option):
            why = "has no effect with --score, which takes --policy and --nodes" if score is not None else "is for --score alone"
            raise click.UsageError(f"{'-f' if option == 'files' else '--' + option.replace('_', '-')} {why}")
    answer: object
    if score is not None:
        answer = _score(score, nodes, policy, every, inputs.plugins_dir)
        text = calibration_page(answer)
    else:
        moment, given = inputs.moment(now), inputs.or_cluster()
        cluster, decides = load(given, moment)
        naming = partial(called, cluster)
        if subject is None:
            found = etas(cluster, decides, moment)
            wanted = [
                each for uid, each in found.items() if everywhere or uid.startswith(f"{inputs.namespace}/" if inputs.namespace else "")
            ]
            answer = sorted(wanted, key=lambda each: (each.p50 is None, each.p50, each.subject))
            text = all_that_wait(answer, naming)
        else:
            answer = eta_of(cluster, decides, moment, given.named(subject))
            text = page(answer, naming)
    say(json_text(answer) if output == "json" else text)


def _score(workload: str, nodes: str | None, policy: str, every: int, plugins_dir: str | None) -> Calibration:
    decides, _ = read_policy(policy, plugins_dir)
    read = source(workload, "--score").read(nodes_from(None, nodes))
    return calibrate(cluster_of(decides, read), decides, read, every)


def page(answer: Eta, called: Callable[[str], str] = str) -> str:
    if answer.state != "waits":
        return f"{called(answer.subject)} does not wait"
    moments = [(f"{chance} %", _within(seconds), at or "") for (_, seconds, at), chance in zip(answer.moments, CHANCES, strict=True)]
    sources = [(source, str(count)) for source, count in sorted(answer.run_times.items(), key=lambda each: -each[1])]
    return "\n\n".join(
        (
            f"{called(answer.subject)} {_expected(answer)}",
            columns(("CHANCE", "STARTS", "BY"), moments),
            columns(("RUN TIMES KNOWN FROM", "JOBS"), sources),
            f"New jobs that the forecast expects each day, as many as came in the last 24 hours: {answer.arrivals}.",
            *([f"The 90 % are corrected by the outcomes of {answer.past_forecasts} earlier forecasts."] if answer.past_forecasts else ()),
        )
    )


def _expected(answer: Eta) -> str:
    if answer.p50 is None:
        return f"will probably not start within {span(HORIZON_S)}"
    if answer.p90 is None:
        return f"starts within {span(answer.p50)} with a chance of 50 %; it may take longer than {span(HORIZON_S)}"
    if span(answer.p50) == span(answer.p90):
        return f"starts within {span(answer.p90)}, with a chance of 90 %"
    return f"starts within {span(answer.p50)} with a chance of 50 %, and within {span(answer.p90)} with a chance of 90 %"


def all_that_wait(answers: list[Eta], called: Callable[[str], str] = str) -> str:
    rows = [(called(answer.subject), *(_within(seconds) for _, seconds, _ in answer.moments)) for answer in answers]
    return columns(("JOB", "STARTS (50 % CHANCE)", "STARTS (90 % CHANCE)"), rows) if rows else "No job waits."


def brief_eta(answer: Eta) -> str:
    """P50 and P90 of a forecast, as text for one table cell."""
    return " to ".join(span(seconds) if seconds is not None else f">{span(HORIZON_S)}" for _, seconds, _ in answer.moments)


def _within(seconds: float | None) -> str:
    return f"within {span(seconds)}" if seconds is not None else f"later than {span(HORIZON_S)}"


def calibration_page(found: Calibration) -> str:
    rows = [(f"P{percent}", f"{100 * share:.0f} %") for percent, share in ((50, found.within_p50), (90, found.within_p90))]
    jobs = len(found.predictions)
    p90 = span(found.median_p90) if found.median_p90 < inf else f">{span(HORIZON_S)}"
    return "\n\n".join(
        (
            f"{counted(jobs, 'job that waited was', 'jobs that waited were')} told when {plural(jobs, 'it', 'they')} would start, "
            f"at {counted(found.instants, 'instant')}",
            columns(("TOLD", "STARTED WITHIN"), rows),
            f"Median of the times told as P90: {p90}; of the times until they started: {span(found.median_waited)}.",
        )
    )
