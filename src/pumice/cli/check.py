"""`pumice check`: whether objects and configuration are right, and whether the jobs can ever run. Nothing is scheduled."""

import time
from collections import Counter

import click
from msgspec.structs import replace

from pumice.answers.completed_objects import newcomers
from pumice.answers.subject import called
from pumice.answers.submission_check import bounds
from pumice.api.manifests import Objects
from pumice.cli.inputs import Inputs, input_options, load, warn
from pumice.cli.tables import say
from pumice.scheduler.framework.policy import Policy


@click.command()
@input_options
@click.option("-n", "--namespace", help="The namespace of objects that state none. Default: default.")
@click.option("--against", type=click.Path(), multiple=True, help="Files of the cluster that the jobs are meant for.")
def check(inputs: Inputs, against: tuple[str, ...]) -> None:
    """Check objects and configuration; a warning about the configuration is an error here.

    With --against, or --from-cluster: can the jobs of the files ever run there? Exit code 1 if one cannot.
    """
    now = time.time()
    inputs = replace(inputs, into=inputs.namespace or "default")
    objects = replace(inputs, from_cluster=inputs.from_cluster and not inputs.files).read(now, omit=False)
    policy = replace(inputs, strict=True).policy(objects)
    if inputs.files and (against or inputs.from_cluster):
        _fit(inputs, against, objects, now)
        return
    _warn_of_topologies(objects, policy)
    kinds = Counter(kind for kind, _ in objects.items)
    counts = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    say(f"fine: {counts or 'no objects'}")


def _fit(inputs: Inputs, against: tuple[str, ...], objects: Objects, now: float) -> None:
    cluster, policy = load(replace(inputs, files=against, into="default"), now)
    _warn_of_topologies(objects, policy)
    for kind, item in newcomers(objects.items, cluster):
        cluster.put(kind, item)
    bounded = bounds(objects.items, cluster, policy, now)
    for fit in bounded:
        say(called(cluster, fit.line))
    if any(fit.bound is not None for fit in bounded):
        raise SystemExit(1)


def _warn_of_topologies(objects: Objects, policy: Policy) -> None:
    for group in objects.of("PodGroup"):
        if why := policy.why_topology_is_unheeded(group):
            warn(f"PodGroup {group.metadata.namespace or 'default'}/{group.metadata.name}: {why}")
