"""The clusters that `pumice up` runs for this user: `pumice clusters` lists them, `pumice down` ends one, by its process id, and
`pumice export` writes one to a file that `pumice up --import` can begin with.

`merged` adds the cluster to the user's own kubeconfig, as kind does: it is the current context while the cluster runs, and is removed
afterwards. The file is written under a lock as kubectl uses it, FILE.lock, and replaced as a whole. If that fails (the file is no
kubeconfig, the lock is never released), a message says so, and the user can use the kubeconfig in the cluster's own directory.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import yaml

from pumice.api import InputError
from pumice.cli.data_dir import DataDir, places
from pumice.cli.live_cluster import Remote
from pumice.cli.tables import print_table, say
from pumice.client.certificates import write_private
from pumice.cluster.apiserver.discovery import ARCHIVE_PATH
from pumice.text_table import columns

LOCK_PATIENCE_S, PAUSE_S = 2.0, 0.05
PARTS = ("clusters", "users", "contexts")
CURRENT = "current-context"
Config = dict[str, Any]


def user_file() -> Path:
    """The user's kubeconfig: the first file of KUBECONFIG that exists, else the first it names, else ~/.kube/config."""
    named = [Path(part) for part in os.environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return next((path for path in named if path.exists()), named[0] if named else Path.home() / ".kube" / "config")


@contextmanager
def merged(kubeconfig: Path, name: str, tell: Callable[[str], None]) -> Iterator[Path | None]:
    """Within the block, the user's kubeconfig has our cluster under this name. Yields its path; None if it could not be written."""
    path = user_file()
    ours = _read(kubeconfig)
    try:
        before = _change(path, lambda config: _add(config, ours, name))
    except (InputError, OSError) as error:
        tell(f"{path} is left as it is: {error}")
        yield None
        return
    try:
        yield path
    finally:
        with suppress(InputError, OSError):
            _change(path, lambda config: _remove(config, name, before))


def _add(config: Config, ours: Config, name: str) -> str:
    """Add our entries and make our context current. Returns the context that was current before; empty if it was ours."""
    before = str(config.get(CURRENT) or "")
    for part in PARTS:
        others = [entry for entry in config.get(part) or () if entry.get("name") != name]
        config[part] = [*others, *ours[part]]
    config[CURRENT] = name
    return "" if before == name else before


def _remove(config: Config, name: str, before: str) -> str:
    for part in PARTS:
        config[part] = [entry for entry in config.get(part) or () if entry.get("name") != name]
    if config.get(CURRENT) == name:
        there = any(entry.get("name") == before for entry in config["contexts"])
        config[CURRENT] = before if there else ""
    return ""


def _change(path: Path, change: Callable[[Config], str]) -> str:
    """Read the kubeconfig, change it and write it, under its lock; return what `change` returns. Raises InputError, OSError."""
    path = path.resolve()  # a symbolic link stays one
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _locked(path):
        config = _read(path) if path.exists() else {"apiVersion": "v1", "kind": "Config"}
        message = change(config)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        write_private(fresh, yaml.safe_dump(config, sort_keys=False).encode())
        fresh.replace(path)
    return message


def _read(path: Path) -> Config:
    try:
        config = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, UnicodeDecodeError):
        config = None
    entries = [entry for part in PARTS for entry in (config.get(part) or ())] if isinstance(config, dict) else [None]
    if not isinstance(config, dict) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError("it is no kubeconfig")
    return config


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    lock = path.with_name(f"{path.name}.lock")
    until = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            break
        except FileExistsError:
            if time.monotonic() > until:
                raise InputError(f"{lock} is there; remove it if no kubectl runs") from None
            time.sleep(PAUSE_S)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


PATIENCE_S = 20.0


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
    say(f"The cluster of process {process} has ended.")


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
    say(f"The cluster is in {file}; `pumice up --import {file}` begins with it. The file holds the cluster's secrets.")
