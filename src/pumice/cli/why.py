"""`pumice why`: why a job, a pod, a queue or a node is as it is: the answer in one line, and below it the whole chain of reasons."""

from functools import partial

import click
from msgspec.structs import replace

from pumice.answers import why as why_of
from pumice.answers.answer_text import page
from pumice.answers.subject import called
from pumice.cli.inputs import Inputs, input_options, load, namespace_option
from pumice.cli.tables import json_text, say
from pumice.live.scheduler.http_world import HttpWorld


@click.command()
@click.argument("subject")
@input_options
@namespace_option
@click.option("--now", help="The instant of the cycle, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("-o", "output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def why(inputs: Inputs, subject: str, now: str | None, output: str) -> None:
    """Why SUBJECT waits, or runs where it does.

    SUBJECT is job/NAME, deployment/NAME, pod/NAME, podgroup/NAME, queue/NAME or node/NAME. A job or pod of another namespace is
    job/NAMESPACE/NAME or NAMESPACE/NAME, or job/NAME with -n NAMESPACE.

    Reads files with -f, else a live cluster, to which nothing is written.
    """
    moment, given = inputs.moment(now), inputs.or_cluster()
    named = given.named(subject)
    cluster, policy = load(replace(given, about=named), moment)
    answer = why_of(cluster, policy, moment, named, HttpWorld(), advise=True)
    text = page(answer, partial(called, cluster))
    say(json_text(answer) if output == "json" else text)
