"""`pumice check`: are the objects and the configuration right? Nothing is scheduled."""

from __future__ import annotations

import time
from collections import Counter

import click

from pumice.cli.inputs import Inputs, input_options


@click.command()
@input_options
def check(inputs: Inputs) -> None:
    """Check objects and configuration; a warning about the configuration is an error here."""
    objects = inputs.read(time.time())
    inputs._replace(strict=True).policy(objects)
    kinds = Counter(kind for kind, _ in objects.items)
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    click.echo(f"fine: {counts or 'no objects'}")
