"""The meaning of `-f`, `--conf` and related options, for all commands that read files."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from msgspec import Struct
from msgspec.structs import replace

from pumice import garbage_collection
from pumice.api import InputError, instant
from pumice.api.core import FAILED_CREATE, FORECAST, Event
from pumice.api.defaults import KUBE_BATCH_GROUP, KUBE_BATCH_NAME
from pumice.api.files import file_text, streams
from pumice.api.manifests import Objects, read_all, read_stream
from pumice.cli.tables import say
from pumice.extensions import actions, plugins
from pumice.inputs.cluster_from_files import complete
from pumice.inputs.known_objects import FromManifests, know_objects
from pumice.scheduler.config import KUBE_DEFAULT, VOLCANO, config_text, read_configurations, schedulers_of
from pumice.scheduler.config.volcano_conf import DEFAULT, KUBE_BATCH
from pumice.scheduler.framework.eviction_events import take_in_evictions
from pumice.scheduler.framework.feature_gates import DEFAULT as DEFAULT_RELEASE, Release, minor_of, read_gates, read_release, release
from pumice.scheduler.framework.policy import Policy
from pumice.scheduler.model import Cluster

if TYPE_CHECKING:
    from pumice.cli.live_cluster import Remote
    from pumice.inputs.recording.entry_format import Begin

Command = Callable[..., Any]

PLAIN = "default-scheduler"
STATE_PATH = "/debug/state"  #: the path at which a scheduler serves its whole state
PATIENCE_S, LARGEST_STATE = 60.0, 2 << 30
EXPAND_HELP = "Also make the pods that workloads with a uid or a status lack. Default: their controllers have made what they wanted."
SHADOW_HELP = "Make PodGroups for pods without one, as kube-batch does. Default: only for kube-batch's inputs."


class Inputs(Struct, frozen=True):
    files: tuple[str, ...]
    conf: str | None
    plugins_dir: str | None
    strict: bool
    shadow: bool | None
    from_cluster: bool
    kubeconfig: str
    context: str
    release: Release = DEFAULT_RELEASE
    recording: Path | None = None
    at: str | None = None
    remote: Remote | None = None  #: used in place of `kubeconfig` and `context`
    expand: bool = False  #: make the missing pods of workloads that come from a server, too
    about: str = ""  #: a subject: from a live cluster, also read what tells of it, such as events about evictions and refused pods
    namespace: str | None = None  #: of names that state none; None for that of the context
    into: str = "default"  #: the namespace of objects that state none

    def or_cluster(self) -> Inputs:
        """These inputs; if they name neither files nor a recording, with a live cluster as the input."""
        return self if self.files or self.recording is not None else replace(self, from_cluster=True)

    def moment(self, now: str | None) -> float:
        """The instant to use: with a recording that of --at, else that of --now, else the present. Raises InputError, UsageError."""
        if self.recording is not None and self.at is None:
            raise click.UsageError("say which instant of the recording with --at, such as 2026-01-01T12:00:00Z")
        if self.recording is None and self.at is not None:
            raise click.UsageError("--at is an instant of a --recording; of files and clusters it is --now")
        text, option = (self.at, "--at") if self.recording is not None else (now, "--now")
        if text is None:
            return time.time()
        try:
            return instant(text)
        except ValueError:
            raise InputError(f'"{text}" is not a time; write one such as 2026-01-01T12:00:00Z', where=option) from None

    def read(self, now: float, omit: bool = True) -> Objects:
        """All objects, with the pods that controllers would have created by now for workloads. A workload that a server would refuse has no
        pods, and a warning says so; if `omit` is not set, it raises InputError. Raises InputError; ClickException if the cluster does
        not answer."""
        if not self.files and not self.from_cluster:
            raise click.UsageError("say what to read: files with -f, or a live cluster with --from-cluster")
        objects = read_all(streams((each for each in self.files if not _is_url(each)), deep=True), self.into)
        for url in filter(_is_url, self.files):
            read_stream(_fetched(url), url, objects)
            objects.whole |= urlsplit(url).path == STATE_PATH
        if self.from_cluster:
            from pumice.cli.from_cluster import read_cluster  # a client is not needed for files
            from pumice.cli.live_cluster import Remote

            read_cluster(objects, self.remote or Remote(self.kubeconfig, self.context, ""), self.conf, self.about)
        workloads = [each for each in objects.workloads if self.expand or not each.is_served]
        if workloads:
            from pumice.inputs.workloads import expanded  # controllers are not needed if the input has the pods

            present = complete(objects.items)
            objects.items += expanded(workloads, present, now, warn, omit)
        if objects.gangs:
            from pumice.inputs.gangs_in_files import pods_of_owners  # nor is this needed if no object means a gang

            objects.items += pods_of_owners(objects)
        return objects

    def named(self, text: str) -> str:
        """A subject such as job/NAME, with the namespace of --namespace, or of the context, if it states none."""
        from pumice.answers.subject import NAMESPACED, OWNERS, SHORT

        kind, slash, name = text.partition("/")
        if not slash or not name or "/" in name or (SHORT.get(kind.lower(), kind.lower()) not in NAMESPACED and kind.lower() not in OWNERS):
            return text
        return f"{kind}/{self.default_namespace}/{name}"

    @property
    def default_namespace(self) -> str:
        if self.namespace:
            return self.namespace
        if not self.from_cluster:
            return "default"
        from pumice.cli.live_cluster import Remote

        return (self.remote or Remote(self.kubeconfig, self.context, "")).namespace(None) or "default"

    def policy(self, objects: Objects) -> Policy:
        return load_policy(objects, self.conf, self.plugins_dir or objects.plugins_dir, self.strict, self.shadow, self.release)


def _is_url(file: str) -> bool:
    return file.startswith(("http://", "https://"))


def _fetched(url: str) -> bytes:
    """The content at the URL. Raises InputError."""
    import asyncio  # not needed for files

    from pumice.http.connection_pool import fetch

    try:
        answer = asyncio.run(fetch(url, timeout_s=PATIENCE_S, max_bytes=LARGEST_STATE))
    except (OSError, ValueError) as error:  # ValueError: it is no URL
        raise InputError(f"cannot be read: {error}", where=url) from None
    if answer.status != 200:
        raise InputError(f"it answered {answer.status}: {bytes(answer.body[:200]).decode(errors='replace')}", where=url)
    return bytes(answer.body)


def input_options(command: Command) -> Command:
    """Give a command the input options; it gets them as its first argument, an `Inputs`."""

    @functools.wraps(command)
    def with_inputs(**options: Any) -> Any:
        options["release"] = release_of(options.pop("kubernetes_version"), options.pop("feature_gates"))
        inputs = Inputs(**{field: options.pop(field) for field in Inputs.__struct_fields__ if field in options})
        return command(inputs, **options)

    for option in reversed(
        (
            click.option(
                "-f", "files", type=click.Path(), multiple=True, help="A file, a folder, a URL, or - for standard input. May be repeated."
            ),
            click.option("--from-cluster", is_flag=True, help="Read a live cluster; nothing is written to it."),
            click.option("--kubeconfig", type=click.Path(), default="", help="Where that cluster is. Default: as for pumice get."),
            click.option("--context", default="", help="The context of the kubeconfig to use."),
            click.option("--recording", type=click.Path(path_type=Path), help="A recording, or a folder of them, in place of files."),
            click.option("--at", help="The instant of the recording that is meant, such as 2026-01-01T12:00:00Z."),
            click.option(
                "--conf",
                type=click.Path(),
                help="The scheduler's configuration; else the one found among the files, else the built-in one.",
            ),
            click.option("--expand", is_flag=True, help=EXPAND_HELP),
            click.option("--plugins-dir", type=click.Path(), help="A folder of Python files with plugins."),
            click.option("--shadow-groups/--no-shadow-groups", "shadow", default=None, help=SHADOW_HELP),
            click.option("--strict", is_flag=True, help="Warnings about the configuration are errors."),
            click.option("--kubernetes-version", help="The release of kube-scheduler whose rules hold, such as 1.37. Default: 1.36."),
            click.option("--feature-gates", default="", help="Its feature gates, such as GenericWorkload=true."),
        )
    ):
        with_inputs = option(with_inputs)
    return with_inputs


def release_of(version: str | None, gates: str) -> Release:
    """The release that the options name. Raises InputError."""
    option = "--kubernetes-version"
    try:
        minor = minor_of(version) if version else DEFAULT_RELEASE.minor
        option = "--feature-gates"
        return release(minor, read_gates(gates))
    except ValueError as error:
        raise InputError(str(error), where=option) from None


namespace_option = click.option("-n", "--namespace", help="The namespace of names without one. Default: the context's; of files, default.")


def is_kube_batch(objects: Objects) -> bool:
    """Whether the inputs are made for kube-batch: by the last configuration if there is any, else by API groups and schedulerNames."""
    if objects.configurations:
        return objects.configurations[-1].key.startswith("kube-batch")
    return KUBE_BATCH_GROUP in objects.groups or any(pod.spec.scheduler_name == KUBE_BATCH_NAME for pod in objects.of("Pod"))


def is_volcano(objects: Objects) -> bool:
    """Whether any of the objects is made for Volcano; if there are only plain pods, they are for kube-scheduler."""
    if any(group.endswith("volcano.sh") for group in objects.groups):
        return True
    pods = objects.of("Pod")
    return not pods or any(pod.spec.scheduler_name == VOLCANO for pod in pods)


def load_policy(
    objects: Objects,
    conf: str | None,
    plugins_dir: str | None,
    strict: bool,
    shadow: bool | None = None,
    release: Release = DEFAULT_RELEASE,
) -> Policy:
    """The policy of --conf, else of a configuration among the objects, else the built-in one. Warnings go to standard error."""
    kube_batch = is_kube_batch(objects)
    found = [config_text(file_text(conf), conf)] if conf else objects.configurations
    if not found:
        texts = [KUBE_BATCH] if kube_batch else [DEFAULT] if is_volcano(objects) else [KUBE_DEFAULT]
        if texts == [DEFAULT] and any(pod.spec.scheduler_name in (None, "", PLAIN) and not pod.spec.node_name for pod in objects.of("Pod")):
            texts.append(KUBE_DEFAULT)  # one scheduler places gangs and plain pods, as in pumice up
        found = [config_text(text, "built-in configuration") for text in texts]
    policy, warnings = read_configurations(found, plugins(plugins_dir), strict=strict, actions=actions(plugins_dir), release=release)
    for warning in warnings:
        say(warning, err=True)
    return replace(policy, shadow_groups=kube_batch if shadow is None else shadow)


def load(inputs: Inputs, now: float, seed: int | None = None) -> tuple[Cluster, Policy]:
    """The cluster and the policy that the options name. A seed shuffles the nodes, so that ties are broken differently."""
    if inputs.recording is not None:
        from pumice.inputs.recording.replay import state_at

        if seed is not None:
            raise InputError("a recording keeps the order of its nodes; leave it out", where="--seed")
        played = state_at(inputs.recording, warn, now)
        return played.cluster, recorded_policy(played.begin, inputs.conf, inputs.plugins_dir, inputs.strict)
    objects = inputs.read(now)
    if seed is not None:
        from random import Random

        nodes = [item for item in objects.items if item[0] == "Node"]
        Random(seed).shuffle(nodes)
        objects.items = nodes + [item for item in objects.items if item[0] != "Node"]
    policy = inputs.policy(objects)
    cluster = _cluster_of(objects, policy)
    _take_in_events(cluster, objects)
    garbage_collection.settle()
    return cluster, policy


def _cluster_of(objects: Objects, policy: Policy) -> Cluster:
    """The state with these objects, as defaults complete them, and with PodGroups for gangs of other projects."""
    names = schedulers_of(policy)
    if objects.gangs and policy.places_gangs:
        from pumice.inputs.gangs_in_files import grouped

        objects.items = grouped(
            objects, objects.items, {VOLCANO, *names} - {*(policy.profiles.by_name if policy.profiles is not None else ())}
        )
    cluster = Cluster((*names, KUBE_BATCH_NAME) if is_kube_batch(objects) else names)
    cluster.shadow_groups = policy.shadow_groups
    cluster.lacking = objects.lacking()
    for kind, item in complete(objects.items):
        try:
            cluster.put(kind, item)
        except Exception as error:
            raise InputError(f"cannot be taken in: {type(error).__name__}: {error}", subject=f"{kind} {item.metadata.name}") from error  # type: ignore[attr-defined]
    if objects.workloads or objects.gangs:
        know_objects(cluster, FromManifests([*objects.workloads, *objects.gangs]))
    return cluster


def _take_in_events(cluster: Cluster, objects: Objects) -> None:
    """Take in what Events among the objects say of evictions, of refused pods and of forecasts."""
    take_in_evictions(cluster, objects.items)
    if any(isinstance(item, Event) and item.reason == FAILED_CREATE for _, item in objects.items):
        from pumice.answers.pods_not_made import take_in_refusals  # answers are not needed for scheduling alone

        take_in_refusals(cluster, objects.items)
    if any(isinstance(item, Event) and item.reason == FORECAST for _, item in objects.items):
        from pumice.answers.forecast_events import take_in_forecasts  # nor are these

        take_in_forecasts(cluster, objects.items)


def recorded_policy(begin: Begin, conf: str | None, plugins_dir: str | None, strict: bool = False) -> Policy:
    """The policy of the recorded cycles, or that of the file `conf` if there is one. Raises InputError."""
    found = [config_text(text, "the recorded configuration") for text in begin.configurations]
    recorded = read_release(begin.release) if begin.release else DEFAULT_RELEASE
    return load_policy(Objects(configurations=found), conf, plugins_dir, strict, begin.shadow_groups, recorded)


def warn(text: str) -> None:
    say(f"warning: {text}", err=True)


def cluster_at(remote: Remote, now: float) -> tuple[Cluster, Policy]:
    """The state of a live cluster, and the policy that is configured in it."""
    return load(Inputs((), None, None, False, None, True, "", "", remote=remote), now)
