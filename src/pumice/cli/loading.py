"""What `-f`, `--conf` and their kin mean, for every command that reads files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import click

from pumice import memory
from pumice.api.errors import InputError
from pumice.api.read import Objects, read_all
from pumice.config.reading import KUBE_DEFAULT, VOLCANO, config_text, read_configurations, schedulers_of
from pumice.config.volcano import DEFAULT, KUBE_BATCH, KUBE_BATCH_GROUP, KUBE_BATCH_NAME
from pumice.framework.policy import Policy
from pumice.model.cluster import Cluster
from pumice.plugins.registry import plugins
from pumice.sim.defaults import complete

Command = Callable[..., Any]

SHADOW_HELP = "Make PodGroups for pods without one, as kube-batch does. Default: only for kube-batch's inputs."


def input_options(command: Command) -> Command:
    """-f, --conf, --plugins-dir, --strict."""
    for option in reversed(
        (
            click.option("-f", "files", multiple=True, required=True, help="A file, a folder, or - for standard input. May be repeated."),
            click.option("--conf", help="The scheduler's configuration; else the one found among the files, else the built-in one."),
            click.option("--plugins-dir", help="A folder of Python files with plugins."),
            click.option("--shadow-groups/--no-shadow-groups", "shadow", default=None, help=SHADOW_HELP),
            click.option("--strict", is_flag=True, help="Warnings about the configuration are errors."),
        )
    ):
        command = option(command)
    return command


def is_kube_batch(objects: Objects) -> bool:
    """Whether kube-batch is what these inputs are made for: its configuration, else its API group or schedulerName."""
    if objects.configurations:
        return objects.configurations[-1].key.startswith("kube-batch")
    return KUBE_BATCH_GROUP in objects.groups or any(pod.spec.scheduler_name == KUBE_BATCH_NAME for pod in objects.of("Pod"))


def is_volcano(objects: Objects) -> bool:
    """Whether anything here is made for Volcano; plain pods alone are for kube-scheduler."""
    if any(group.endswith("volcano.sh") for group in objects.groups):
        return True
    pods = objects.of("Pod")
    return not pods or any(pod.spec.scheduler_name == VOLCANO for pod in pods)


def load_policy(objects: Objects, conf: str | None, plugins_dir: str | None, strict: bool, shadow: bool | None = None) -> Policy:
    """From --conf, else from the objects, else the built-in one. Warnings go to standard error."""
    kube_batch = is_kube_batch(objects)
    found = [config_text(read_file(conf), conf)] if conf else objects.configurations
    if not found:
        found = [config_text(KUBE_BATCH if kube_batch else DEFAULT if is_volcano(objects) else KUBE_DEFAULT, "built-in configuration")]
    policy, warnings = read_configurations(found, plugins(plugins_dir), strict=strict)
    for warning in warnings:
        click.echo(warning, err=True)
    return replace(policy, shadow_groups=kube_batch if shadow is None else shadow)


def read_file(path: str) -> str:
    """Raises InputError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8; save the file as UTF-8", where=path) from None


def load(
    files: tuple[str, ...], conf: str | None, plugins_dir: str | None, strict: bool, shadow: bool | None, seed: int | None = None
) -> tuple[Cluster, Policy]:
    """The cluster and the policy that the options name. A seed shuffles the nodes, and so breaks ties another way."""
    objects = read_all(files)
    if seed is not None:
        nodes = [item for item in objects.items if item[0] == "Node"]
        Random(seed).shuffle(nodes)
        objects.items = nodes + [item for item in objects.items if item[0] != "Node"]
    policy = load_policy(objects, conf, plugins_dir, strict, shadow)
    names = schedulers_of(policy)
    cluster = Cluster((*names, KUBE_BATCH_NAME) if is_kube_batch(objects) else names)
    cluster.shadow_groups = policy.shadow_groups
    for kind, item in complete(objects.items):
        cluster.put(kind, item)
    memory.settle()
    return cluster, policy
