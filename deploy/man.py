"""Manual pages, made of the commands' own help: `python deploy/man.py FOLDER` writes pumice.1, pumice-why.1, pumice-job-run.1, ..."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from pumice import __version__
from pumice.cli.main import cli

Found = tuple[tuple[str, ...], click.Command, click.Context]


def commands(names: tuple[str, ...], command: click.Command, above: click.Context | None = None) -> Iterator[Found]:
    """A command, and those below it, that are shown."""
    context = click.Context(command, info_name=names[-1], parent=above, **command.context_settings)
    yield names, command, context
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            yield from commands((*names, name), below, context)


def page(names: tuple[str, ...], command: click.Command, context: click.Context) -> str:
    day = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), UTC).strftime("%Y-%m-%d")
    title = "-".join(names)
    short = command.get_short_help_str(200).rstrip(".")
    lines = [f'.TH "{title.upper()}" "1" "{day}" "pumice {__version__}" "User Commands"', ".SH NAME", f"{title} \\- {_text(short)}"]
    lines += [".SH SYNOPSIS", f".B {' '.join(names)}", _text(" ".join(command.collect_usage_pieces(context)))]
    lines += [".SH DESCRIPTION", *_paragraphs(command.help or "")]
    options = [found for each in command.get_params(context) if isinstance(each, click.Option) and (found := each.get_help_record(context))]
    for head, rows in (("OPTIONS", options), ("COMMANDS", list(_below(command, context)))):
        if rows:
            lines.append(f".SH {head}")
            lines += [line for name, text in rows for line in (".TP", f"\\fB{_text(name)}\\fR", _text(text) or "\\&")]
    if len(names) > 1:
        lines += [".SH SEE ALSO", f".BR {'-'.join(names[:-1])} (1)"]
    return "\n".join(lines) + "\n"


def _below(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        below = command.get_command(context, name)
        if below is not None and not below.hidden:
            yield name, below.get_short_help_str(200)


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.replace("\b", "").strip().split("\n\n")):
        if number:
            yield ".PP"
        yield _text(" ".join(paragraph.split()))


def _text(text: str) -> str:
    """Text of which groff takes nothing for its own."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def pages() -> dict[str, str]:
    """By file name."""
    return {f"{'-'.join(names)}.1": page(names, command, context) for names, command, context in commands(("pumice",), cli)}


if __name__ == "__main__":
    for name, text in pages().items():
        Path(sys.argv[1], name).write_text(text)
