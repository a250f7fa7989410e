"""`pumice clusters`: what `pumice up` runs for this user."""

from __future__ import annotations

import click

from pumice.cli.data_dir import places
from pumice.cli.painting import print_table
from pumice.text_table import columns


@click.command()
def clusters() -> None:
    """List the clusters that `pumice up` runs."""
    rows = [(place.name, place.context, place.holder() or "", place.directory) for place in places()]
    print_table(columns(("NAME", "CONTEXT", "PROCESS", "DIRECTORY"), rows) if rows else "No clusters run; `pumice up` starts one.")
