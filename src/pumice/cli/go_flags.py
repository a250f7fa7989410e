"""Flags as Go's programs take them, and those of its logging.

A Deployment made for Volcano's program needs another image and nothing else. So `-v=4` is read, flags of its logging are accepted, and so
is the "2>&1" that its charts pass as an argument.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from pumice import __version__
from pumice.api.times import duration

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

SPELLINGS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
KLOG_SWITCHES = ("alsologtostderr", "logtostderr", "skip_headers", "skip_log_headers", "one_output")
KLOG_VALUES = ("log_dir", "log_file", "log_file_max_size", "stderrthreshold", "vmodule", "log-flush-frequency")


class Seconds(click.ParamType[float]):
    """A Go duration."""

    name = "duration"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return duration(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)


class Switch(click.ParamType[bool]):
    """A boolean as Go's flags take it: `--flag`, `--flag=true`, `--flag=false`."""

    name = "bool"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value.lower() not in SPELLINGS:
            self.fail(f'"{value}" is not true or false', parameter, context)
        return SPELLINGS[value.lower()]


class Verbosity(click.ParamType[int]):
    """`-v 4` and `-v=4`."""

    name = "integer"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> int:
        text = str(value).removeprefix("=")
        if not text.isdecimal():
            self.fail(f'"{text}" is not a number', parameter, context)
        return int(text)


def switch(name: str, default: bool, text: str) -> Decorator:
    return click.option(name, type=Switch(), is_flag=False, flag_value="true", default=default, show_default=True, help=text)


def seconds(name: str, default: str, text: str) -> Decorator:
    return click.option(name, type=Seconds(), default=default, show_default=True, help=text)


def verbosity(command: Command) -> Command:
    return click.option("-v", "--v", "verbosity", type=Verbosity(), default=0, help="4 tells everything.")(command)


def go_program(command: Command) -> Command:
    """Tells its version; accepts, hidden and without effect, what else is told to Go's logging."""
    command = click.version_option(__version__, prog_name="pumice")(command)
    command = click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="", expose_value=False, callback=_only_redirection)(command)
    for name in KLOG_SWITCHES:
        command = click.option(f"--{name}", is_flag=False, flag_value="true", hidden=True, expose_value=False)(command)
    for name in KLOG_VALUES:
        command = click.option(f"--{name}", hidden=True, expose_value=False)(command)
    return command


def _only_redirection(context: click.Context, parameter: click.Parameter, words: tuple[str, ...]) -> None:
    strange = [word for word in words if word != "2>&1"]
    if strange:
        raise click.UsageError(f"unexpected argument {strange[0]!r}")
