"""`pumice simulate`: simulate a workload, and show how long its jobs waited; while it runs, a line at the terminal shows the progress."""

from __future__ import annotations

import sys
import time
from operator import length_hint
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, TextIO

import click

from pumice.api.errors import InputError
from pumice.cli.tables import print_table, say
from pumice.simulate.columns import DISTRIBUTIONS, OVER_TIME, PERCENTILES
from pumice.simulate.inputs import nodes_from, read_policy, source
from pumice.simulate.outputs import as_json, as_parquet, pyarrow
from pumice.simulate.record import Record
from pumice.simulate.run import Player, Scenario, as_objects, play_fast
from pumice.simulate.run import simulate as play
from pumice.simulate.simulated_cluster import Habits
from pumice.simulate.work import Workload
from pumice.text_table import columns


@click.command()
@click.option("--workload", required=True, metavar="FORMAT:FILE", help="The jobs: openb, philly, swf, yaml, kubernetes or recording.")
@click.option("--cluster", metavar="FORMAT:FILE", help="The nodes. Default: those that the workload tells.")
@click.option("--nodes", metavar="POOLS", help="The nodes in shorthand, such as 300x8gpu or 2x16cpu,1x8gpu:64cpu:512Gi.")
@click.option(
    "--policy", default="volcano", show_default=True, metavar="NAME|FILE", help="A policy by name, or a configuration of either scheduler."
)
@click.option("--plugins-dir", type=click.Path(), help="A folder of Python files with plugins.")
@click.option("--seed", type=int, default=0, show_default=True, help="For what is random. The same seed gives the same bytes.")
@click.option("--kill-at-estimate", is_flag=True, help="Kill jobs that outlive the time asked for.")
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
        if whole:
            raise InputError("with --arrivals-only nothing ever runs; leave out one of them", where="--whole")
        show_arrivals(scenario, load, output)
        return
    rows: list[tuple[Any, ...]] | None = [] if output == "json" else None
    player = player_of(whole)

    def watched(scenario: Scenario, workload: Workload, record: Record) -> None:
        if workload.note:
            say(workload.note, err=output == "json")
        with Progress(workload, record):
            player(scenario, workload, record)

    summary = play(scenario, out, jobs=rows, player=watched)
    if out is not None and tables_as == "parquet":
        as_parquet(Path(out))
    for why, count in summary["left_out"].items():
        say(f"warning: {count} jobs left out: {why}", err=True)
    if rows is not None:
        say(as_json(summary | {"jobs": as_objects(rows)}), nl=False)
    else:
        print_table(tables(summary))


def player_of(whole: bool) -> Player:
    if not whole:
        return play_fast
    from pumice.live.whole import play as play_whole  # imports a control plane, which a fast run does not need

    return play_whole


def show_arrivals(scenario: Scenario, load: str, output: str) -> None:
    from pumice.simulate.arrivals import play as play_arrivals

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


# The summary as tables, and the progress line at the terminal.

UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
EVERY_S = 0.5


def tables(summary: dict[str, Any]) -> str:
    """The summary as tables: distributions, totals, the queues if there are several, and the longest waits."""
    measures = summary["measures"]
    parts = [_distributions(measures), _totals(measures)]
    if len(summary["queues"]) > 1:
        parts.append(_queues(summary["queues"]))
    if any(longest["wait"] for longest in summary["longest"]):
        parts.append(_longest(summary["longest"]))
    return "\n\n".join(parts)


def curve_table(found: dict[str, Any]) -> str:
    """The table of the allocation curve, with a row for every ten per cent and for the last point."""
    points = list(found["curve"])
    shown = [point for point in points if not int(point) % 10 or point == points[-1]]
    rows = [(f"{point}%", f"{found['curve'][point]:.2f}%", f"{found['fragmentation'][point]:.2f}%") for point in shown]
    bound = f"No policy allocates more than {found['measures']['bound']['gpu']:.2%} of the GPUs to these pods."
    return f"{columns(('ASKED FOR', 'ALLOCATED', 'FRAGMENTED'), rows)}\n{bound}"


def seconds(value: float | None) -> str:
    """A span of time as text, in two units at most; "-" for None."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.3g}s"
    left, parts = round(value), list[str]()
    for size, unit in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts[:2])


def _distributions(measures: dict[str, Any]) -> str:
    names = ("mean", *(f"p{percent}" for percent in PERCENTILES), "max")
    show = dict.fromkeys(DISTRIBUTIONS, seconds) | {"bounded_slowdown": _number}
    rows = [(name, *(show[name](measures[name][which]) for which in names)) for name in DISTRIBUTIONS]
    return columns(("MEASURE", *(name.upper() for name in names)), rows)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _totals(measures: dict[str, Any]) -> str:
    rows = [(name, str(measures[name])) for name in ("jobs", "done", "killed", "running", "waiting", "evictions")]
    rows.append(("makespan", seconds(measures["makespan"])))
    rows += [(f"mean {name}", f"{measures[name]['mean']:.4g}") for name in OVER_TIME if measures[name]["mean"] is not None]
    rows += [(f"utilisation {resource}", f"{share:.1%}") for resource, share in measures["utilisation"].items()]
    return columns(("TOTAL", "VALUE"), rows)


def _queues(queues: dict[str, Any]) -> str:
    rows = [
        (name, str(each["jobs"]), seconds(each["wait"]["mean"]), seconds(each["wait"]["p95"]), str(each["evictions"]))
        for name, each in sorted(queues.items())
    ]
    return columns(("QUEUE", "JOBS", "MEAN WAIT", "P95 WAIT", "EVICTIONS"), rows)


def _longest(longest: list[dict[str, Any]]) -> str:
    rows = [(each["job"], each["queue"], seconds(each["wait"]), each["reason"] or "-") for each in longest if each["wait"]]
    return columns(("LONGEST WAITS", "QUEUE", "WAIT", "WHY"), rows)


class Progress:
    """The progress line: rewrites itself now and then, and is removed in the end. Nothing is written if `out` is no terminal."""

    def __init__(self, workload: Workload, record: Record, out: TextIO | None = None) -> None:
        self._workload, self._record, self._out = workload, record, out or sys.stderr
        self._over = Event()
        self._writer = Thread(target=self._write, daemon=True)

    def __enter__(self) -> None:
        self._began, self._jobs = time.monotonic(), length_hint(self._workload.jobs)
        if self._out.isatty():
            self._writer.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._over.set()
        if self._writer.ident is not None:
            self._writer.join()

    def _write(self) -> None:
        while not self._over.wait(EVERY_S):
            self._out.write(f"\r{self.line(time.monotonic() - self._began)}\033[K")
            self._out.flush()
        self._out.write("\r\033[K")
        self._out.flush()

    def line(self, took_s: float) -> str:
        """The text of the line. It has the time left only if the workload knows its number of jobs."""
        now = self._record.now - (self._record.submitted_first or 0.0)
        text = f"{seconds(now)} simulated, {seconds(now / max(took_s, 1e-9))} a second"
        come = self._jobs - length_hint(self._workload.jobs)
        if self._jobs and come:
            text += f", {100 * come // self._jobs} % of the jobs have come, about {seconds(took_s * (self._jobs - come) / come)} left"
        return text
