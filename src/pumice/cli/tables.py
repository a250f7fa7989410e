"""Tables and errors at the terminal, in colours: heads of tables, words of states that stand alone in a column, and errors.

Nothing is coloured in pipes and files, nor where NO_COLOR is set or the terminal is a dumb one.
"""

from __future__ import annotations

import os
import re
import sys
from typing import IO

import click

_COLOURS = {
    "green": "Active|Available|Bound|Completed|Open|Ready|Running|Succeeded",
    "yellow": "Closing|Inqueue|Nominated|Pending|Pipelined|Releasing|Restarting|SchedulingGated|Terminating|Unknown",
    "red": "Aborted|Closed|CrashLoopBackOff|Error|Failed|ImagePullBackOff|NotReady|Terminated|Unschedulable",
}
_COLOUR_OF = {word: colour for colour, words in _COLOURS.items() for word in words.split("|")}
_STATE = re.compile(rf"(?<=  )(?:{'|'.join(_COLOUR_OF)})(?=  | \(|$)", re.MULTILINE)
_HEAD = re.compile(r"(?:\A|(?<=\n\n))\S.*")


def print_table(table: str) -> None:
    """Print tables, which empty lines part."""
    click.echo(painted(table) if _has_colours(sys.stdout) else table)


def complain(text: str) -> None:
    """Print an error."""
    click.echo(click.style(text, fg="red") if _has_colours(sys.stderr) else text, err=True)


def painted(table: str) -> str:
    in_states = _STATE.sub(lambda found: click.style(found[0], fg=_COLOUR_OF[found[0]]), table)
    return _HEAD.sub(lambda found: click.style(found[0], bold=True), in_states)


def _has_colours(stream: IO[str]) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
