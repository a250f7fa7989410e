"""`pumice simulate`: simulate a workload, and show how long its jobs waited."""

from pathlib import Path
from typing import Any

import click

from pumice.api import InputError
from pumice.api.plural import counted
from pumice.cli.simulate_tables import Progress, curve_table, tables
from pumice.cli.simulation_options import simulation_options
from pumice.cli.stated_options import is_stated
from pumice.cli.tables import print_table, say
from pumice.simulate.inputs import nodes_from, read_policy, source
from pumice.simulate.outputs import as_json
from pumice.simulate.parquet import as_parquet, pyarrow
from pumice.simulate.record import Record
from pumice.simulate.scenario import Player, Scenario, as_objects, play_fast, simulate as play
from pumice.simulate.simulated_cluster import Habits
from pumice.simulate.workload import Workload


@click.command()
@simulation_options
@click.option(
    "--policy", default="volcano", show_default=True, metavar="NAME|FILE", help="A policy by name, or a configuration of either scheduler."
)
@click.option("--seed", type=int, default=0, show_default=True, help="For what is random. The same seed gives the same bytes.")
@click.option("--whole", is_flag=True, help="Every object is real: embedded store, admission, controllers, kubelets, the live scheduler.")
@click.option(
    "--arrivals-only", is_flag=True, help="Pods only come, one after the other, and each is tried once: how much of the GPUs is used?"
)
@click.option(
    "--load", default="130%", show_default=True, help="With --arrivals-only: what they ask for altogether, of the GPUs there are."
)
@click.option("--out", type=click.Path(), help="A folder to write: jobs.csv, events.csv, series.csv, summary.json, report.html.")
@click.option(
    "--format", "tables_as", type=click.Choice(["csv", "parquet"]), default="csv", show_default=True, help="Of the tables in --out."
)
@click.option("-o", "output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def simulate(
    workload: str,
    cluster: str | None,
    nodes: str | None,
    policy: str,
    plugins_dir: str | None,
    seed: int,
    kill_at_estimate: bool,
    whole: bool,
    arrivals_only: bool,
    load: str,
    out: str | None,
    tables_as: str,
    output: str,
) -> None:
    """Play a workload on a simulated cluster, decided by the scheduler that runs in production."""
    decided, warnings = read_policy(policy, plugins_dir)
    for warning in warnings:
        say(warning, err=True)
    if tables_as == "parquet":
        if out is None:
            raise InputError("tables are written to a folder; name it with --out", where="--format")
        pyarrow("parquet")
    given = nodes_from(cluster, nodes)
    habits = Habits(kill_at_estimate=kill_at_estimate)
    scenario = Scenario(source(workload, "--workload"), given, decided, policy, cluster or nodes or "", seed, habits)
    if arrivals_only:
        refuse_what_needs_time()
        show_arrivals(scenario, load, output)
        return
    if is_stated("load"):
        raise InputError("is for --arrivals-only: how much comes is said by the workload", where="--load")
    rows: list[tuple[Any, ...]] | None = [] if output == "json" else None
    summary = play(scenario, out, jobs=rows, player=with_progress(player_of(whole), err=output == "json"))
    if out is not None and tables_as == "parquet":
        as_parquet(Path(out))
    for why, count in summary["left_out"].items():
        say(f"warning: {counted(count, 'job')} left out: {why}", err=True)
    if not summary["measures"]["jobs"]:
        say("warning: there was no job to play", err=True)
    if rows is not None:
        say(as_json(summary | {"jobs": as_objects(rows)}), nl=False)
    else:
        print_table(tables(summary))


def with_progress(player: Player, *, err: bool) -> Player:
    """The player, which tells the note of its workload and how far it has come. `err`: the note goes to standard error."""

    def watched(scenario: Scenario, workload: Workload, record: Record) -> None:
        if workload.note:
            say(workload.note, err=err)
        with Progress(workload, record):
            player(scenario, workload, record)

    return watched


def player_of(whole: bool) -> Player:
    if not whole:
        return play_fast
    from pumice.live.whole import play as play_whole  # imports a control plane, which a fast run does not need

    return play_whole


def refuse_what_needs_time() -> None:
    """Raises InputError for options that mean nothing where pods only arrive."""
    for name, why in {
        "whole": "nothing ever runs; leave out one of them",
        "kill_at_estimate": "nothing ever runs; leave out one of them",
        "out": "no files are written; -o json tells all of it",
    }.items():
        if is_stated(name):
            raise InputError(f"with --arrivals-only {why}", where=f"--{name.replace('_', '-')}")


def show_arrivals(scenario: Scenario, load: str, output: str) -> None:
    from pumice.simulate.fgd_arrivals import play as play_arrivals

    found = play_arrivals(scenario, share_of(load))
    if output == "json":
        say(as_json(found), nl=False)
    else:
        print_table(curve_table(found))


def share_of(text: str) -> float:
    """The load as a number: "130%" -> 1.3. Raises InputError."""
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        share = 0.0
    if not (0 < share <= 10 and text.endswith("%")):
        raise InputError(f'"{text}" is no load; write per cent, such as 130%', where="--load")
    return share
