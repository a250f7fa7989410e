"""The options of all commands that play a workload: the jobs, the nodes, the plugins, and the jobs' time limits."""

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

OPTIONS = (
    click.option("--workload", required=True, metavar="FORMAT:FILE", help="The jobs: openb, philly, swf, yaml, kubernetes or recording."),
    click.option("--cluster", metavar="FORMAT:FILE", help="The nodes. Default: those that the workload tells."),
    click.option("--nodes", metavar="POOLS", help="The nodes in shorthand, such as 300x8gpu or 2x16cpu,1x8gpu:64cpu:512Gi."),
    click.option("--plugins-dir", type=click.Path(), help="A folder of Python files with plugins."),
    click.option("--kill-at-estimate", is_flag=True, help="Kill jobs that outlive the time asked for."),
)


def simulation_options(command: Command) -> Command:
    for option in reversed(OPTIONS):
        command = option(command)
    return command
