"""Numbers on the command line: `nan` is none, though every range of click's has it."""

from typing import Any

import click


class Finite(click.FloatRange):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number - number != 0:  # nan or infinite
            self.fail(f"{value} is not a number.", param, ctx)
        return number
