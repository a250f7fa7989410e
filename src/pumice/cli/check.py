"""`pumice check`: are the objects and the configuration right? Nothing is scheduled."""

from __future__ import annotations

from collections import Counter

import click

from pumice.api.read import read_all
from pumice.cli.loading import input_options, load_policy


@click.command()
@input_options
def check(files: tuple[str, ...], conf: str | None, plugins_dir: str | None, strict: bool, shadow: bool | None) -> None:
    """Check objects and configuration; a warning about the configuration is an error here."""
    objects = read_all(files)
    load_policy(objects, conf, plugins_dir, strict=True, shadow=shadow)
    kinds = Counter(kind for kind, _ in objects.items)
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    click.echo(f"fine: {counts or 'no objects'}")
