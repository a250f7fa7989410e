"""The clusters that `pumice up` runs for this user: `pumice clusters` lists them, `pumice down` ends one, by its process id, and
`pumice export` writes one as one file that `pumice up --import` begins with."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import click

from pumice.api.errors import InputError
from pumice.cli.data_dir import DataDir, places
from pumice.cli.remote import Remote
from pumice.cli.tables import print_table
from pumice.cluster.apiserver.discovery import ARCHIVE_PATH
from pumice.cluster.apiserver.tls import write_private
from pumice.text_table import columns

PATIENCE_S = 20.0
PAUSE_S = 0.05


@click.command()
def clusters() -> None:
    """List the clusters that `pumice up` runs."""
    rows = [(place.name, place.context, place.holder() or "", place.directory) for place in places()]
    print_table(columns(("NAME", "CONTEXT", "PROCESS", "DIRECTORY"), rows) if rows else "No clusters run; `pumice up` starts one.")


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


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--data", type=click.Path(path_type=Path), help="The directory that `pumice up` was given.")
@click.option("--name", help="The name that `pumice up` was given.")
def export(file: Path, data: Path | None, name: str | None) -> None:
    """Write the cluster that `pumice up` runs, with everything in it, to FILE."""
    place = DataDir(data, name)
    if place.holder() is None:
        raise InputError("no cluster runs here", where=str(place.directory))
    archive = Remote(str(place.kubeconfig), "", "").run(lambda client: client.get_path(ARCHIVE_PATH, "*/*"))
    try:
        write_private(file, archive)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=str(file)) from None
    click.echo(f"The cluster is in {file}; `pumice up --import {file}` begins with it. The file holds the cluster's secrets.")
