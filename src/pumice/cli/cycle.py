"""`pumice cycle`: read files of ordinary Kubernetes objects, and show what the scheduler would do with them."""

from collections.abc import Iterable
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from pumice.api import InputError
from pumice.api.errors import raise_all
from pumice.cli.cycle_tables import tables
from pumice.cli.inputs import Inputs, input_options, load
from pumice.cli.object_output import as_yaml
from pumice.cli.tables import json_text, print_table, say
from pumice.inputs.cluster_from_files import run_cycles, together
from pumice.live.scheduler.http_world import HttpWorld
from pumice.scheduler.framework.plugin_guard import Failure


@click.command()
@input_options
@click.option("-n", "--namespace", help="Show only pods and PodGroups of this namespace.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Show those of all namespaces. The default without -n.")
@click.option("--now", help="The instant of the cycle, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option(
    "--cycles", type=click.IntRange(1), default=1, show_default=True, help="In between, bound pods run and evicted ones are gone."
)
@click.option("--seed", type=int, help="Break ties between equally good nodes another way. Default: the first in the input.")
@click.option("--no-shortcuts", is_flag=True, help="Compute everything anew: slower, with the same outcome. To find faults.")
@click.option("-o", "output", type=click.Choice(["table", "wide", "json", "yaml"]), default="table", show_default=True)
def cycle(inputs: Inputs, now: str | None, cycles: int, seed: int | None, no_shortcuts: bool, everywhere: bool, output: str) -> None:
    """One scheduling cycle over files of Kubernetes objects: what is bound, what is evicted, what waits, and why."""
    moment = inputs.moment(now)
    cluster, policy = load(inputs, moment, seed)
    policy = replace(policy, shortcuts=not no_shortcuts)
    failures: dict[Failure, None] = {}
    result = together(run_cycles(cluster, policy, moment, cycles, HttpWorld(), failures))
    show(result if everywhere or not inputs.namespace else _within(result, f"{inputs.namespace}/"), output)
    refuse(failures)


def _within(result: Any, begin: str) -> Any:
    """The outcome without pods and PodGroups whose keys begin otherwise."""
    if isinstance(result, list):
        return [_within(each, begin) for each in result if "pod" not in each or each["pod"].startswith(begin)]
    return {
        key: _within(value, begin) if isinstance(value, list | dict) else value
        for key, value in result.items()
        if "/" not in key or key.startswith(begin)
    }


def refuse(failures: Iterable[Failure]) -> None:
    """Raise InputError with one line for each failure of a plugin, if there is any."""
    messages = ((each, f"plugin {each.plugin} failed in {each.hook}: {each.message}") for each in failures)
    raise_all([InputError(message, where=each.file, line=each.line) for each, message in messages])


def show(result: dict[str, Any], output: str) -> None:
    if output == "json":
        say(json_text(result))
    elif output == "yaml":
        say(as_yaml(msgspec.to_builtins(result), sort_keys=False), nl=False)
    else:
        print_table(tables(result, wide=output == "wide"))
