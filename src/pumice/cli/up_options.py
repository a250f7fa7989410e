"""From the options of `pumice up` to what is wanted: nodes and other objects, the policy, the stages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from pumice.api.manifests import ConfigText
from pumice.cli.clusters import read_cluster_file
from pumice.cli.embedded import UpRequest
from pumice.cli.inputs import read_file
from pumice.cli.up import NODES
from pumice.cluster.nodes.node_agent import nodes_of, pools_of
from pumice.cluster.nodes.stage import read_stages
from pumice.extensions import actions, plugins
from pumice.scheduler.config.configurations import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.policy import Policy


def wanted(
    data: Path | None,
    *,
    nodes: str | None,
    files: tuple[str, ...],
    submitted: str | None,
    speed: float,
    pause: bool,
    stages: Path | None,
    conf: tuple[str, ...],
    plugins_dir: str | None,
    host: str,
    port: int,
    recover: bool,
    archive: Path | None,
    record: str,
) -> UpRequest:
    """Raises InputError."""
    begin = [read_cluster_file(path) for path in files]
    later = [read_cluster_file(submitted)] if submitted else []
    found = [text for file in (*begin, *later) for text in file.configurations]
    if nodes is None and archive is None and not any(one.obj["kind"] == "Node" for file in (*begin, *later) for one in file.objects):
        nodes = NODES
    load = partial(policy_of, conf, plugins_dir, found)
    return UpRequest(
        policy=load(),
        stages=read_stages(stages),
        objects=list(nodes_of(pools_of(nodes))) if nodes is not None else (),
        given=[one for file in begin for one in file.objects],
        submitted=[one for file in later for one in file.objects],
        conf=[Path(path) for path in conf],
        load=load,
        speed=0.0 if pause else speed,
        host=host,
        port=port,
        data=data,
        recover=recover,
        archive=archive,
        record=record,
    )


def policy_of(conf: Sequence[str] = (), plugins_dir: str | None = None, found: Sequence[ConfigText] = ()) -> Policy:
    """Volcano's part and kube-scheduler's part: of --conf, else as found among the objects, else built in. One scheduler places gangs and
    plain pods. Raises InputError."""
    given = [*found, *(config_text(read_file(path), path) for path in conf)]
    built_in = [config_text(text, "built-in configuration") for text in (DEFAULT, KUBE_DEFAULT)]
    policy, notes = read_configurations([*built_in, *given], plugins(plugins_dir), actions=actions(plugins_dir))
    for note in notes:
        click.echo(note, err=True)
    return policy
