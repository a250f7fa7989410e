"""`pumice down`: end the cluster that `pumice up` started, by its process id."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from pumice.api.errors import InputError
from pumice.cli.data_dir import DataDir

PATIENCE_S = 20.0
PAUSE_S = 0.05


@click.command()
@click.option("--data", type=click.Path(path_type=Path), help="The directory that `pumice up` was given.")
@click.option("--name", help="The name that `pumice up` was given.")
def down(data: Path | None, name: str | None) -> None:
    """End the cluster that `pumice up` started."""
    place = DataDir(data, name)
    process = place.holder()
    if process is None:
        raise InputError("no cluster runs here", where=str(place.directory))
    os.kill(process, signal.SIGTERM)
    until = time.monotonic() + PATIENCE_S
    while place.holder() == process:
        if time.monotonic() > until:
            raise InputError(f"process {process} has not ended within {PATIENCE_S:.0f} s; `kill -9 {process}` ends it by force")
        time.sleep(PAUSE_S)
    click.echo(f"The cluster of process {process} has ended.")
