"""`pumice lint`: what will not do what it seems to say, in a configuration, in queues and in the objects of a cluster."""

import click

from pumice.answers.lint import Level, lint as findings_of
from pumice.answers.lint.sarif import sarif
from pumice.answers.subject import called
from pumice.cli.inputs import Inputs, input_options, load
from pumice.cli.tables import json_text, say
from pumice.live.scheduler.http_world import HttpWorld


@click.command()
@input_options
@click.option("-n", "--namespace", help="Only findings about this namespace, and about what belongs to none.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Findings about all namespaces. The default without -n.")
@click.option("--now", help="The instant of the cycle, such as 2026-01-01T12:00:00Z. Default: now.")
@click.option("-o", "output", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True)
def lint(inputs: Inputs, everywhere: bool, now: str | None, output: str) -> None:
    """Find mistakes in the configuration, the queues and the cluster: each with its effect and its remedy. Exit code 1 if one is an error.

    Reads files with -f, else a live cluster, to which nothing is written.
    """
    moment = inputs.moment(now)
    cluster, policy = load(inputs.or_cluster(), moment)
    findings = findings_of(cluster, policy, moment, HttpWorld())
    if inputs.namespace and not everywhere:
        findings = [each for each in findings if each.subject.count("/") < 2 or each.subject.split("/")[1] == inputs.namespace]
    if output == "text":
        for finding in findings:
            say(called(cluster, f"{finding.level}: {finding.text} [{finding.rule}]"))
        say(f"{len(findings)} found" if findings else "fine: nothing found")
    else:
        say(json_text(findings if output == "json" else sarif(findings, inputs.conf or next(iter(inputs.files), "cluster"))))
    if any(finding.level is Level.ERROR for finding in findings):
        raise SystemExit(1)
