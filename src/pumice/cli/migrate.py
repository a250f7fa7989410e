"""`pumice migrate`: print gangs in another dialect, and say what that cannot say."""

import click
import msgspec

from pumice.cli.manifests_to_send import manifests
from pumice.cli.tables import say
from pumice.cluster.migration import migrated


@click.command()
@click.option(
    "-f", "files", type=click.Path(), multiple=True, required=True, help="A file, a folder, or - for standard input. May be repeated."
)
@click.option("--to", type=click.Choice(["native", "volcano"]), required=True, help="The dialect to print.")
@click.option("--scheduler-name", help="The schedulerName that the members get. Default: the one that they have.")
def migrate(files: tuple[str, ...], to: str, scheduler_name: str | None) -> None:
    """Print Volcano's PodGroups as Kubernetes' own (Workload, PodGroup, schedulingGroup), or the other way round. What cannot be translated
    is told on standard error, in a line each."""
    done = migrated(manifests(files), to, scheduler_name, lambda line: say(line, err=True))
    click.echo("---\n".join(msgspec.yaml.encode(each).decode() for each in done), nl=False)
