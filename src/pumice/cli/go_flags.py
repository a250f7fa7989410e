"""Flags as Go programs read them: a Deployment made for a program of Volcano only needs another image.

The rules are pflag's. An underscore in a name is a dash. `--flag` sets a boolean, which takes no further word; any other flag takes the
next word, unless its value follows a "=". `-v=4` and `-v4` are `-v 4`. The flags of Go's logging are known, and so is the "2>&1" that
Volcano's charts pass as an argument.

What no flag is known for does not end the program: the next release of Volcano has one flag more, and a cluster without a scheduler is
worse than a flag that is not read. It is left out, together with the word that would be its value, and told at the start. With
`--strict-flags` it is an error.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from pumice import __version__
from pumice.api import did_you_mean, duration

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]

SPELLINGS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
KLOG_SWITCHES = (
    "add-dir-header",
    "alsologtostderr",
    "legacy-stderr-threshold-behavior",
    "logtostderr",
    "one-output",
    "skip-headers",
    "skip-log-headers",
)
KLOG_VALUES = ("alsologtostderrthreshold", "log-backtrace-at", "log-file-max-size", "log-flush-frequency", "stderrthreshold", "vmodule")


class Seconds(click.ParamType[float]):
    """A Go duration, in seconds."""

    name = "duration"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        if isinstance(value, int | float):
            return float(value)
        try:
            return duration(value)
        except ValueError as error:
            self.fail(str(error), parameter, context)


class Switch(click.ParamType[bool]):
    """A boolean in the form of Go's flags: `--flag`, `--flag=true`, `--flag=false`."""

    name = "bool"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> bool:
        if isinstance(value, bool):
            return value
        if value.lower() not in SPELLINGS:
            self.fail(f'"{value}" is not true or false', parameter, context)
        return SPELLINGS[value.lower()]


def switch(name: str, default: bool, text: str) -> Decorator:
    return click.option(name, type=Switch(), is_flag=False, flag_value="true", default=default, show_default=True, help=text)


def seconds(name: str, default: str, text: str) -> Decorator:
    return click.option(name, type=Seconds(), default=default, show_default=True, help=text)


def verbosity(command: Command) -> Command:
    return click.option("-v", "--v", "verbosity", type=click.IntRange(0), default=0, help="4 tells everything.")(command)


def go_program(command: Command) -> Command:
    """Give a command --version, --strict-flags, and the flags of Go's logging as hidden options without effect."""
    command = click.version_option(__version__, prog_name="pumice")(command)
    command = switch("--strict-flags", False, "An unknown flag is an error. Else a warning names it, and it is not read.")(command)
    for name in KLOG_SWITCHES:
        command = click.option(f"--{name}", type=Switch(), is_flag=False, flag_value="true", hidden=True, expose_value=False)(command)
    for name in KLOG_VALUES:
        command = click.option(f"--{name}", hidden=True, expose_value=False)(command)
    return command


class GoCommand(click.Command):
    """A command that reads its arguments as pflag does. The parameter `not_read` is what was left out, as sentences for the log."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        options = {name: each for each in self.get_params(context) if isinstance(each, click.Option) for name in each.opts}
        known, not_read = _sorted_out(args, options)
        rest = super().parse_args(context, known)
        if not_read and context.params.get("strict_flags"):
            raise click.UsageError("; ".join(not_read), context)
        context.params["not_read"] = tuple(not_read)
        return rest


def _sorted_out(args: Sequence[str], options: Mapping[str, click.Option]) -> tuple[list[str], list[str]]:
    """The arguments in the form `--name=value` as far as their flags are known; and a sentence for each of the others."""
    words, known, not_read = deque(args), [], []
    while words:
        word = words.popleft()
        if word == "--" or not word.startswith("-"):
            if word not in ("--", "2>&1"):
                not_read.append(f'"{word}" is not read: it follows no flag that takes a value')
            continue
        name, equals, value = _parts(word)
        option = options.get(name)
        if option is None:
            not_read.append(f"{name} is not read: there is no such flag{_hint(word, options)}")
            if not equals:
                _next_word(words)
        elif option.is_flag:
            known += [name] if SPELLINGS.get(value.lower(), True) else []
        elif equals:
            known.append(f"{_long_name(option)}={value}")
        elif isinstance(option.type, Switch):
            known.append(f"{_long_name(option)}=true")
        else:
            given = _next_word(words, any_word=not isinstance(option.flag_value, str))
            known.append(_long_name(option) if given is None else f"{_long_name(option)}={given}")
    return known, not_read


def _parts(word: str) -> tuple[str, str, str]:
    """The name of the flag, what separates it from its value, and the value: of `--name=value`, `-v=4` or `-v4`."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name.replace("_", "-"), equals, value
    return word[:2], "=" if word[2:] else "", word[2:].removeprefix("=")


def _next_word(words: deque[str], *, any_word: bool = False) -> str | None:
    """The value that follows a flag; None if no word follows, or a flag does that need not be the value."""
    return words.popleft() if words and (any_word or not words[0].startswith("-")) else None


def _long_name(option: click.Option) -> str:
    return max(option.opts, key=len)


def _hint(word: str, options: Mapping[str, click.Option]) -> str:
    return did_you_mean("--" + word.partition("=")[0].lstrip("-").replace("_", "-"), options)
