"""The options of `pumice up`, turned into one request: nodes and other objects, the objects of files, the policy, the stages."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from pumice.api import Object
from pumice.api.files import file_text
from pumice.api.manifests import ConfigText
from pumice.cli.cluster_file import FileObject, read_cluster_file
from pumice.cli.inputs import release_of
from pumice.cli.tables import say
from pumice.cluster.nodes.node_pools import nodes_of, pools_of
from pumice.cluster.nodes.stage import Stages, read_stages
from pumice.extensions import actions, plugins
from pumice.scheduler.config import KUBE_DEFAULT, config_text, read_configurations
from pumice.scheduler.config.volcano_conf import DEFAULT
from pumice.scheduler.framework.feature_gates import DEFAULT as DEFAULT_RELEASE, MINORS, Release
from pumice.scheduler.framework.policy import Policy


class UpRequest(msgspec.Struct, frozen=True):
    policy: Policy
    stages: Stages
    nodes: Sequence[Object] = ()  #: nodes of pools that exist from the start
    given: Sequence[FileObject] = ()  #: objects from files that exist from the start
    submitted: Sequence[FileObject] = ()  #: objects to create once all parts are up
    conf: Sequence[Path] = ()  #: the files that `load` reads
    load: Callable[[], Policy] | None = None  #: reads the policy anew. Raises InputError
    configured: str = "the built-in one"  #: where the policy comes from, in words
    plugins_dir: str | None = None
    release: Release = DEFAULT_RELEASE  #: of Kubernetes
    speed: float = 1.0
    host: str = "127.0.0.1"
    port: int = 0
    plain: bool = False
    data: Path | None = None
    recover: bool = False  #: go on without what is damaged in `data`
    archive: Path | None = None  #: a file from `pumice export` with the cluster to begin with
    record: str = ""  #: the folder for recordings; empty for none
    prometheus: str = ""  #: the URL of a Prometheus server


def wanted(
    data: Path | None,
    usual_nodes: str,
    *,
    nodes: str | None,
    files: tuple[str, ...],
    submitted: str | None,
    speed: float,
    pause: bool,
    stages: Path | None,
    conf: tuple[str, ...],
    plugins_dir: str | None,
    kubernetes_version: str | None = None,
    feature_gates: str = "",
    archive: Path | None,
    **others: Any,
) -> UpRequest:
    """The request that the options make, with `usual_nodes` if neither they nor the files have any. `others` are fields of the request.
    Raises InputError."""
    begin = [read_cluster_file(path) for path in files]
    later = [read_cluster_file(submitted)] if submitted else []
    found = [text for file in (*begin, *later) for text in file.configurations]
    if nodes is None and archive is None and not any(one.obj["kind"] == "Node" for file in (*begin, *later) for one in file.objects):
        nodes = usual_nodes
    release = release_of(kubernetes_version or (f"1.{MINORS[-1]}" if feature_gates else None), feature_gates)
    load = partial(policy_of, conf, plugins_dir, found, release)
    return UpRequest(
        policy=load(),
        stages=read_stages(stages),
        nodes=list(nodes_of(pools_of(nodes))) if nodes is not None else (),
        given=[one for file in begin for one in file.objects],
        submitted=[one for file in later for one in file.objects],
        conf=[Path(path) for path in conf],
        load=load,
        configured=", ".join(dict.fromkeys([*(text.where for text in found), *conf])) or "the built-in one",
        plugins_dir=str(Path(plugins_dir).resolve()) if plugins_dir else None,
        release=release,
        speed=0.0 if pause else speed,
        data=data,
        archive=archive,
        **others,
    )


def policy_of(
    conf: Sequence[str] = (), plugins_dir: str | None = None, found: Sequence[ConfigText] = (), release: Release = DEFAULT_RELEASE
) -> Policy:
    """The policy of one scheduler for gangs and plain pods. Its two parts, Volcano's and kube-scheduler's, come from --conf, else from the
    configurations found among the objects, else they are built in. Raises InputError."""
    given = [*found, *(config_text(file_text(path), path) for path in conf)]
    built_in = [config_text(text, "built-in configuration") for text in (DEFAULT, KUBE_DEFAULT)]
    policy, notes = read_configurations([*built_in, *given], plugins(plugins_dir), actions=actions(plugins_dir), release=release)
    for note in notes:
        say(note, err=True)
    return policy
