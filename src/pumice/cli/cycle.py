"""`pumice cycle`: files of ordinary Kubernetes objects in, what the scheduler would do with them out."""

from __future__ import annotations

import time

import click
import msgspec

from pumice.api.read import Objects, read_all
from pumice.api.times import instant
from pumice.config.volcano import DEFAULT, read_policy
from pumice.framework.policy import Policy
from pumice.model.cluster import Cluster
from pumice.plugins.registry import plugins
from pumice.sim.cycles import run_cycles, together
from pumice.sim.defaults import complete


def load_policy(objects: Objects, conf: str | None, plugins_dir: str | None, strict: bool) -> Policy:
    """From --conf, else from the objects, else the built-in one. Warnings go to standard error."""
    if conf:
        with click.open_file(conf, encoding="utf-8") as file:
            text, where, line = file.read(), conf, 1
    elif objects.configurations:
        found = objects.configurations[-1]
        text, where, line = found.text, found.where, found.first_line
    else:
        text, where, line = DEFAULT, "built-in configuration", 1
    policy, warnings = read_policy(text, plugins(plugins_dir), where=where, first_line=line, strict=strict)
    for warning in warnings:
        click.echo(warning, err=True)
    return policy


def load_cluster(objects: Objects) -> Cluster:
    cluster = Cluster()
    for kind, item in complete(objects.items):
        cluster.put(kind, item)
    return cluster


@click.command()
@click.option("-f", "files", multiple=True, required=True, help="A file, a folder, or - for standard input. May be repeated.")
@click.option("--conf", help="The scheduler's configuration; by default the one found among the files, else the built-in one.")
@click.option("--now", help="The instant of the cycle, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("--cycles", default=1, show_default=True, help="How many cycles; in between bound pods run and evicted ones are gone.")
@click.option("--plugins-dir", help="A folder of Python files with plugins.")
@click.option("--strict", is_flag=True, help="Warnings about the configuration are errors.")
@click.option("-o", "output", type=click.Choice(["json", "yaml", "wide", "table"]), default="table", show_default=True)
def cycle(
    files: tuple[str, ...], conf: str | None, now: str | None, cycles: int, plugins_dir: str | None, strict: bool, output: str
) -> None:
    """One scheduling cycle over files of Kubernetes objects: what is bound, what is evicted, what waits, and why."""
    objects = read_all(files)
    policy = load_policy(objects, conf, plugins_dir, strict)
    cluster = load_cluster(objects)
    moment = instant(now) if now else time.time()
    result = together(run_cycles(cluster, policy, moment, cycles))
    click.echo(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
