"""Tables and errors at the terminal, with colours: table heads are bold, states that fill a cell are coloured, errors are red.

There are no colours in pipes and files, if NO_COLOR is set, or if TERM is dumb.
"""

import os
import re
import sys
from typing import IO

import click
import msgspec

from pumice.escaped_text import shown

_COLOURS = {
    "green": "Active|Available|Bound|Completed|Open|Ready|Running|Succeeded",
    "yellow": "Closing|Inqueue|Nominated|Pending|Pipelined|Releasing|Restarting|SchedulingGated|Terminating|Unknown",
    "red": "Aborted|Closed|CrashLoopBackOff|Error|Failed|ImagePullBackOff|NotReady|Terminated|Unschedulable",
}
_COLOUR_OF = {word: colour for colour, words in _COLOURS.items() for word in words.split("|")}
_STATE = re.compile(rf"(?<=  )(?:{'|'.join(_COLOUR_OF)})(?=  | \(|$)", re.MULTILINE)
_HEAD = re.compile(r"(?:\A|(?<=\n\n))\S.*")


def say(text: str | bytes, *, err: bool = False, nl: bool = True) -> None:
    """Print text in which there may be words of others, so that the terminal obeys none of them. In JSON the escapes mean the same."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    click.echo(shown(text), err=err, nl=nl)


def json_text(value: object) -> str:
    """A value of structs and plain types as JSON to be read."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def print_table(table: str) -> None:
    """Print one or more tables, separated by empty lines."""
    table = shown(table)
    click.echo(painted(table) if _has_colours(sys.stdout) else table)


def complain(text: str) -> None:
    """Print an error."""
    text = shown(text)
    click.echo(click.style(text, fg="red") if _has_colours(sys.stderr) else text, err=True)


def painted(table: str) -> str:
    in_states = _STATE.sub(lambda found: click.style(found[0], fg=_COLOUR_OF[found[0]]), table)
    return _HEAD.sub(lambda found: click.style(found[0], bold=True), in_states)


def _has_colours(stream: IO[str]) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
