"""The name of the one object that a command is about, as an argument or with the flag that vcctl has for it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]


def name_option(letter: str, what: str) -> Callable[[Command], Command]:
    """Gives a command `name`: `job view train` and `job view -N train` are the same."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_name(*args: Any, word: str | None, name: str | None, **rest: Any) -> Any:
            if (word is None) == (name is None):
                raise click.UsageError(f"say {what}'s name, and once: as an argument or with {letter}/--name")
            return command(*args, name=word or name, **rest)

        option = click.option(letter, "--name", help=f"{what.capitalize()}'s name; or as an argument.")
        return click.argument("word", metavar="[NAME]", required=False)(option(with_name))

    return decorate
