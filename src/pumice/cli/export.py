"""`pumice export`: the whole cluster that `pumice up` runs, as one file that `pumice up --import` begins with."""

from __future__ import annotations

from pathlib import Path

import click

from pumice.api.errors import InputError
from pumice.cli.data_dir import DataDir
from pumice.cli.remote import Remote
from pumice.cluster.apiserver.discovery import ARCHIVE_PATH
from pumice.cluster.apiserver.tls import write_private


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
