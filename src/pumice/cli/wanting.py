"""From the options of `pumice up` to what is wanted: nodes and other objects, the policy, the stages."""

from __future__ import annotations

from pathlib import Path

from pumice.api.errors import InputError
from pumice.api.read import ConfigText
from pumice.cli.cluster_file import given
from pumice.cli.embedded import Wanted
from pumice.config.reading import KUBE_DEFAULT, config_text, read_configurations
from pumice.config.volcano import DEFAULT
from pumice.framework.policy import Policy
from pumice.plugins.registry import plugins
from pumice.sim.node_pools import nodes_of, pools_of
from pumice.sim.stage import read_stages


def wanted(
    data: Path | None,
    *,
    nodes: str | None,
    files: tuple[str, ...],
    speed: float,
    pause: bool,
    stages: Path | None,
    conf: tuple[str, ...],
    plugins_dir: str | None,
    host: str,
    port: int,
    recover: bool,
    archive: Path | None,
) -> Wanted:
    """Raises InputError."""
    return Wanted(
        policy=policy_of(conf, plugins_dir),
        stages=read_stages(stages),
        objects=list(nodes_of(pools_of(nodes))) if nodes is not None else (),
        given=[one for path in files for one in given(path)],
        speed=0.0 if pause else speed,
        host=host,
        port=port,
        data=data,
        recover=recover,
        archive=archive,
    )


def policy_of(conf: tuple[str, ...] = (), plugins_dir: str | None = None) -> Policy:
    """Volcano's part and kube-scheduler's part, each built in if not given: gangs and plain pods are placed by one scheduler."""
    given: list[ConfigText] = []
    for path in conf:
        try:
            given.append(config_text(Path(path).read_text(encoding="utf-8"), path))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=path) from None
    built_in = [config_text(text, "built-in configuration") for text in (DEFAULT, KUBE_DEFAULT)]
    absent = [text for text in built_in if all((text.source is None) != (other.source is None) for other in given)]
    policy, _ = read_configurations([*absent, *given], plugins(plugins_dir))
    return policy
