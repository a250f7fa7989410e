"""`pumice cycle`: files of ordinary Kubernetes objects in, what the scheduler would do with them out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
import msgspec

from pumice.api.errors import InputError, raise_all
from pumice.cli.inputs import Inputs, input_options, load
from pumice.cli.tables import print_table, tables
from pumice.cluster.offline import run_cycles, together
from pumice.live.scheduler.http_world import HttpWorld
from pumice.scheduler.framework.containment import Failure


@click.command()
@input_options
@click.option("--now", help="The instant of the cycle, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option(
    "--cycles", type=click.IntRange(1), default=1, show_default=True, help="In between, bound pods run and evicted ones are gone."
)
@click.option("--seed", type=int, help="Break ties between equally good nodes another way. Default: the first in the input.")
@click.option("-o", "output", type=click.Choice(["table", "wide", "json", "yaml"]), default="table", show_default=True)
def cycle(inputs: Inputs, now: str | None, cycles: int, seed: int | None, output: str) -> None:
    """One scheduling cycle over files of Kubernetes objects: what is bound, what is evicted, what waits, and why."""
    moment = inputs.moment(now)
    cluster, policy = load(inputs, moment, seed)
    failures: dict[Failure, None] = {}
    show(together(run_cycles(cluster, policy, moment, cycles, HttpWorld(), failures)), output)
    refuse(failures)


def refuse(failures: Iterable[Failure]) -> None:
    """End with one line for each plugin's fault, if there is any."""
    words = ((each, f"plugin {each.plugin} failed in {each.hook}: {each.message}") for each in failures)
    raise_all([InputError(message, where=each.file, line=each.line) for each, message in words])


def show(result: dict[str, Any], output: str) -> None:
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(result), nl=False)
    else:
        print_table(tables(result, wide=output == "wide"))
