"""`pumice compare`: simulate the same workload under several policies, and show which of them is better."""

from pathlib import Path
from typing import Any

import click

from pumice.api import did_you_mean
from pumice.cli.simulation_options import simulation_options
from pumice.cli.tables import complain, print_table, say
from pumice.simulate.compare_report import compare_report, with_interval
from pumice.simulate.lower_bounds import LowerBounds
from pumice.simulate.measure_units import MEANINGS
from pumice.simulate.outputs import as_json
from pumice.simulate.policy_comparison import ComparedRun, compare as play, table
from pumice.simulate.result_conditions import ResultNumber, condition_of
from pumice.simulate.result_sentences import change, of_bounds, of_left, of_policies
from pumice.simulate.scenario import Summary
from pumice.text_table import columns


@click.command()
@simulation_options
@click.option(
    "--policy",
    "policies",
    required=True,
    multiple=True,
    metavar="NAME|FILE",
    help="May be repeated; the others are compared with the first.",
)
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="How many seeds, from 0 on.")
@click.option("--processes", type=click.IntRange(1), help="Default: one for each core.")
@click.option("--dask", metavar="ADDRESS", help="Play them on a Dask cluster whose workers have Pumice and the files.")
@click.option("--whole", is_flag=True, help="Every object is real, as for pumice simulate.")
@click.option(
    "--out", type=click.Path(), help="A folder for report.html and for what is finished; an interrupted comparison goes on from it."
)
@click.option(
    "--assert", "asserted", multiple=True, metavar="TEXT", help="Such as 'p95(wait, queue=team-a) < 30m'; exit code 1 if it does not hold."
)
@click.option("-o", "output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def compare(
    policies: tuple[str, ...],
    seeds: int,
    processes: int | None,
    dask: str | None,
    whole: bool,
    out: str | None,
    asserted: tuple[str, ...],
    output: str,
    **played: Any,
) -> int:
    """Play a workload under several policies: means with 95 % intervals, differences seed by seed, and which policy is better in what."""
    conditions = [condition_of(text) for text in asserted]
    run = kind_of_run(whole)
    works = [run(**played, policy=policy, seed=seed) for policy in policies for seed in range(seeds)]
    bounds: dict[int, LowerBounds] = {}
    summaries = play(works, out, processes, lambda work: say(f"{work.policy}, seed {work.seed}: done", err=True), dask, bounds)
    rows = table(summaries)
    below = [*of_left(summaries), *of_bounds(summaries, bounds)]
    if out:
        Path(out, "report.html").write_text(compare_report(rows, summaries, below), encoding="utf-8")
    if output == "json":
        floor = [{"seed": seed, **found._asdict()} for seed, found in sorted(bounds.items())]
        say(as_json({"comparison": rows, "simulations": summaries, "bounds": floor}), nl=False)
    else:
        below += [f"Side by side, with charts: {Path(out, 'report.html')}"] if out else []
        print_table(columns(("MEASURE", "POLICY", "MEAN", "AGAINST THE FIRST"), [_cells(row) for row in rows]))
        say("\n" + "\n\n".join([*of_policies(rows), *below]))
    failed = 0
    for each in conditions:
        for summary in summaries:
            if each.fails(summary):
                failed = 1
                complain(f"{each.text}: {summary['policy']}, seed {summary['seed']}: {_found(each.measured, summary)}")
    return failed


def _found(measured: ResultNumber, summary: Summary) -> str:
    """The value, or why there is none."""
    if measured.queue and measured.queue not in summary["queues"]:
        return f'no job came to queue "{measured.queue}"{did_you_mean(measured.queue, summary["queues"])}'
    value = measured.of(summary)
    return "no job has a value" if value is None else f"{value:g}"


def kind_of_run(whole: bool) -> type[ComparedRun]:
    if not whole:
        return ComparedRun
    from pumice.live.whole import ComparedWholeRun  # imports a control plane, which other runs do not need

    return ComparedWholeRun


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return MEANINGS[row["measure"]].text, row["policy"], with_interval(row["measure"], row["mean"], row["interval"]), change(row)
