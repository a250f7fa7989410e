"""`pumice score`: the verdict and the scores of every node for one pod, at that pod's turn in the cycle."""

import click
import msgspec

from pumice.answers.score import ScoreTable, score as score_of
from pumice.api import InputError, did_you_mean
from pumice.cli.cycle import refuse
from pumice.cli.inputs import Inputs, input_options, load, namespace_option
from pumice.cli.object_output import as_yaml
from pumice.cli.tables import json_text, print_table, say
from pumice.live.scheduler.http_world import HttpWorld
from pumice.text_table import columns


@click.command()
@click.argument("subject", metavar="[POD]", required=False)
@input_options
@namespace_option
@click.option("--pod", "pod", help="The same as POD.")
@click.option("--now", help="The instant of the cycle, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("-o", "output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def score(inputs: Inputs, subject: str | None, pod: str | None, now: str | None, output: str) -> None:
    """Each node's verdict and scores for a pod, at its turn in the cycle.

    POD is pod/NAME or NAME. One of another namespace is NAMESPACE/NAME, or NAME with -n NAMESPACE.

    Reads files with -f, else a live cluster.
    """
    if (subject is None) == (pod is None):
        raise click.UsageError("name a pod, and once: as an argument or with --pod")
    moment, given = inputs.moment(now), inputs.or_cluster()
    cluster, policy = load(given, moment)
    name = (subject or pod or "").removeprefix("pod/")
    key = name if "/" in name else f"{given.default_namespace}/{name}"
    task = cluster.tasks.get(key)
    if task is None:
        raise InputError(f"there is no pod {key}{did_you_mean(key, cluster.tasks)}", where="--pod" if pod is not None else "")
    table = score_of(cluster, policy, moment, task, HttpWorld())
    if table.note:
        say(table.note, err=True)
    if output == "json":
        say(json_text(table.as_json()))
    elif output == "yaml":
        say(as_yaml(msgspec.to_builtins(table.as_json()), sort_keys=False), nl=False)
    else:
        print_table(as_text(table))
    refuse(table.failures)


def as_text(table: ScoreTable) -> str:
    """The table of nodes, sorted by total score. A score that normalizing changed is shown as `raw > score`."""
    totals = table.scores["total"] if table.scores else {}
    plugins = [name for name in table.scores if name != "total"]
    head = ("NODE", "TOTAL", *(f"{name} x{table.weights[name]:g}" for name in plugins))
    ordered = sorted(table.feasible, key=lambda node: -totals[node])
    rows = [(node, f"{totals[node]:g}", *(_cell(table, name, node) for name in plugins)) for node in ordered]
    parts = [columns(head, rows)] if rows else [f"no node will do for {table.pod}"]
    if table.rejected:
        parts.append(columns(("REJECTED", "WHY"), list(table.rejected.items())))
    return "\n\n".join(parts)


def _cell(table: ScoreTable, plugin: str, node: str) -> str:
    raw, scored = table.raw[plugin][node], table.scores[plugin][node]
    return f"{scored:g}" if raw == scored else f"{raw:g} > {scored:g}"
