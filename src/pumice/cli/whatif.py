"""`pumice whatif`: what would let a job start now; or what a change of nodes, queues or configuration, or new objects, would do."""

from functools import partial

import click
from msgspec.structs import replace

from pumice.answers import compare, whatif as whatif_of
from pumice.answers.answer_text import differences, options
from pumice.answers.changes import ClusterChange, make_all
from pumice.answers.completed_objects import newcomers
from pumice.answers.request_changes import Drain, MoreObjects, QueueField
from pumice.answers.subject import called
from pumice.answers.trial_cluster import TrialCluster
from pumice.api.manifests import Objects
from pumice.cli.inputs import Inputs, input_options, load, load_policy, namespace_option
from pumice.cli.tables import json_text, say
from pumice.live.scheduler.http_world import HttpWorld
from pumice.scheduler.framework.policy import Policy


@click.command()
@click.argument("subject", required=False)
@input_options
@namespace_option
@click.option("--submit", "submitted", type=click.Path(), multiple=True, help="A file of objects that are not there yet.")
@click.option("--drain", "drained", multiple=True, metavar="NODE", help="A node that takes no more pods, and loses those it has.")
@click.option(
    "--queue", "fields", multiple=True, metavar="QUEUE.FIELD=VALUE", help="Such as research.weight=3 or research.capability.cpu=16."
)
@click.option("--now", help="The instant of the cycle, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def whatif(
    inputs: Inputs,
    subject: str | None,
    submitted: tuple[str, ...],
    drained: tuple[str, ...],
    fields: tuple[str, ...],
    now: str | None,
    output: str,
) -> None:
    """What would let SUBJECT start. Without a SUBJECT: what --drain, --queue, --submit or --conf would change in the next cycles.

    SUBJECT is job/NAME, deployment/NAME, pod/NAME or podgroup/NAME. One of another namespace is job/NAMESPACE/NAME or NAMESPACE/NAME, or
    job/NAME with -n NAMESPACE.

    Reads files with -f, else a live cluster, to which nothing is written.
    """
    moment = inputs.moment(now)
    given = inputs.or_cluster()
    if subject is not None:
        if submitted or drained or fields:
            raise click.UsageError("name a subject, or changes: not both")
        named = given.named(subject)
        cluster, policy = load(replace(given, about=named), moment)
        answer = whatif_of(cluster, policy, moment, named, HttpWorld())
        say(json_text(answer) if output == "json" else options(answer, partial(called, cluster)))
        return
    if not (submitted or drained or fields or inputs.conf):
        raise click.UsageError("say what is asked: a subject such as job/NAME, or changes with --submit, --drain, --queue or --conf")
    cluster, policy = load(replace(given, conf=None), moment)
    changes: list[ClusterChange] = [Drain(name.removeprefix("node/")) for name in drained] + [QueueField.read(text) for text in fields]
    if submitted:
        changes.append(MoreObjects(tuple(newcomers(replace(given, files=submitted, from_cluster=False).read(moment).items, cluster))))
    difference = compare(cluster, policy, moment, changes, _other(given, moment), HttpWorld())
    with TrialCluster(cluster) as trial:
        make_all(trial, changes)  # they may be about jobs that are not there yet
        text = differences(difference, partial(called, cluster))
    say(json_text(difference) if output == "json" else text)


def _other(inputs: Inputs, now: float) -> Policy | None:
    if inputs.conf is None:
        return None
    return load_policy(Objects(), inputs.conf, inputs.plugins_dir, inputs.strict, inputs.shadow, inputs.release)
