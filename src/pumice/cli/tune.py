"""`pumice tune`: look for a configuration that would have served a workload better."""

from __future__ import annotations

import csv
import shlex
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pumice.api import InputError
from pumice.cli.simulation_options import simulation_options
from pumice.cli.tables import print_table, say
from pumice.extensions import actions, plugins
from pumice.simulate.arrival_times import seconds
from pumice.simulate.input_digest import digest_of
from pumice.simulate.inputs import policy_of, policy_text
from pumice.simulate.worker_processes import Crew

if TYPE_CHECKING:
    from pumice.simulate.tune.advice import Advice
    from pumice.simulate.tune.space import Space


@click.command()
@simulation_options
@click.option("--objective", required=True, metavar="MEASURE", help="What is to become better, such as 'p95(wait, queue=team-a)'.")
@click.option(
    "--keep", "keeps", multiple=True, metavar="TEXT", help="What must hold: 'mean(wait) <= 1.02x' (of what it is now), 'p95(wait) < 2h'."
)
@click.option("--conf", metavar="NAME|FILE", help="The configuration in force. Default: of a recording its own, else the built-in one.")
@click.option("--trials", type=click.IntRange(1), default=60, show_default=True, help="How many configurations are tried.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the search and of the split of days.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="How many workloads are drawn, where one is drawn.")
@click.option("--period", metavar="DURATION", help="What is compared with each other. Default: days, or shorter if there are too few.")
@click.option("--processes", type=click.IntRange(1), help="Default: one for each core. The result is the same.")
@click.option("--dask", metavar="ADDRESS", help="Play on a Dask cluster whose workers have Pumice and the files.")
@click.option("--out", type=click.Path(path_type=Path), help="A folder for tuned.conf, report.html, trials.csv and what was played.")
@click.option("--resume", is_flag=True, help="Go on with what was played in --out.")
def tune(
    objective: str,
    keeps: tuple[str, ...],
    conf: str | None,
    trials: int,
    seed: int,
    seeds: int,
    period: str | None,
    processes: int | None,
    dask: str | None,
    out: Path | None,
    resume: bool,
    **played: Any,
) -> None:
    """Look for a configuration that would have served a workload better, and check it on days that were held back. The workload has at
    least some days."""
    from pumice.simulate.tune import summary
    from pumice.simulate.tune.advice import Adviser
    from pumice.simulate.tune.days import SearchSetting
    from pumice.simulate.tune.goal import goal_of
    from pumice.simulate.tune.results import TrialResults
    from pumice.simulate.tune.space import Space

    goal, setting = goal_of(objective, keeps), SearchSetting(**played)
    text, where = in_force(setting.workload, conf)
    for warning in policy_of(text, where, setting.plugins_dir)[1]:
        say(warning, err=True)
    space = Space(text, where, plugins(setting.plugins_dir), actions(setting.plugins_dir))
    if out is not None:
        setting = replace(setting, digest=digest_of((setting.workload, setting.cluster), (setting.plugins_dir,), ""))
    period_s = _period(period)
    try:
        with Crew(processes, dask) as crew:
            results = TrialResults(crew, out, resume=resume, played=lambda count: say(f"simulation {count}: done", err=True))
            advice = Adviser(setting, space, goal, results, seeds, seed).advise(trials, period_s)
    except KeyboardInterrupt:
        sys.exit(
            "Stopped; nothing was kept, as there is no --out."
            if out is None
            else f"Stopped; go on with --resume: {out} has what was played."
        )
    found = summary.configuration(advice, space, _command(click.get_current_context())) if advice.values is not None else ""
    say("\n".join(summary.sentences(advice)))
    if advice.values is not None:
        print_table(f"\n{summary.queue_table(advice)}\n")
    if out is None:
        say(found, nl=False)
    else:
        _write(out, advice, space, found)


def _period(text: str | None) -> float | None:
    """Raises InputError."""
    try:
        found = None if text is None else seconds(text)
    except ValueError as error:
        raise InputError(str(error), where="--period") from None
    if found == 0:
        raise InputError("a period of 0s has no jobs", where="--period")
    return found


def _write(out: Path, advice: Advice, space: Space, found: str) -> None:
    """Write what was tried and what was found, and say what can be done with it."""
    from pumice.simulate.tune import summary
    from pumice.simulate.tune.report import tune_report

    rows = [*summary.rows_of_trials(advice, space)]
    with (out / summary.TRIALS).open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened, lineterminator="\n").writerows(rows)
    (out / summary.REPORT).write_text(tune_report(advice, summary.sentences(advice), found, rows), encoding="utf-8")
    say(f"All of it, with charts: {out / summary.REPORT}")
    if advice.recommended:
        file = out / summary.CONFIGURATION
        file.write_text(found, encoding="utf-8")
        say(f"Written: {file}. To try it beside the scheduler in charge, which it leaves alone:\n\n    {summary.shadow_command(file)}")


def in_force(workload: str, conf: str | None) -> tuple[str, str]:
    """The configuration that the search begins with, and where it stands. Raises InputError."""
    name, _, path = workload.partition(":")
    if conf is not None or name != "recording":
        return policy_text(conf or "volcano"), conf or "built-in configuration"
    from pumice.inputs.recording.entry_format import Begin
    from pumice.inputs.recording.file_format import entries, files_of

    files = files_of(Path(path), lambda message: None)
    begun = [entry for file in files for entry in islice(entries(file, lambda message: None), 1) if isinstance(entry, Begin)]
    texts = begun[-1].configurations if begun else []
    return next(iter(texts), policy_text("volcano")), f"configuration of {path}"


def _command(context: click.Context) -> str:
    """The command line, without what stands at its default or changes no result."""
    words = ["pumice", "tune"]
    for option in context.command.params:
        value = context.params[str(option.name)]
        if option.name in ("processes", "dask", "out", "resume") or value is None or value == option.get_default(context):
            continue
        for each in value if isinstance(value, tuple) else (value,):
            words += [option.opts[0]] if each is True else [option.opts[0], str(each)]
    return shlex.join(words)
